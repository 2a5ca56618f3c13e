"""``quorum rebuild`` and its way back on disks that are really full, page by page: the old log or the new one
stands there, what is said of it is true, and with room the same command finishes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from backends.metadata_log import rebuilt_directory
from console.errors import NotDone
from console.jobs.quorum.quorum_rebuild import apply_rebuild, undo_rebuild
from recovery.membership.quorum_rebuild import RebuildPlan
from tests.unit.membership.rebuilt_disks import blank_controller, contents, disks, made, silent

__all__ = ["disks"]  # the fixture

pytestmark = pytest.mark.long
PAGE = os.sysconf("SC_PAGE_SIZE")
FULL = "No space left"


class SmallDisk:
    """A file system in memory, of 8 MB, of which ``left`` pages can be made the only free ones."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path / "filler"
        path.mkdir()
        argv = ["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(path)]
        mounted = subprocess.run(argv, capture_output=True, text=True, check=False)
        if mounted.returncode:
            pytest.skip(f"this machine does not let us mount a file system: {mounted.stderr.strip()}")

    def leave(self, left: int) -> None:
        self.empty()
        free = os.statvfs(self.path)
        with self._filler.open("wb") as filler:
            filler.write(b"x" * (free.f_bavail * free.f_frsize - left * PAGE))

    def empty(self) -> None:
        self._filler.unlink(missing_ok=True)

    def unmount(self) -> None:
        argv = ["umount", "--lazy", str(self.path)]
        subprocess.run(argv, check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    made_disk = SmallDisk(tmp_path / "small")
    yield made_disk
    made_disk.unmount()


@pytest.fixture
def no_spare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the room that is asked for before anything is written, so that the writes themselves fail."""
    monkeypatch.setattr(rebuilt_directory, "_SPARE", -(1 << 30))


def state(plan: RebuildPlan) -> dict[str, bytes] | None:
    target = Path(plan.target)
    return contents(target) if target.exists() else None


def until_it_fits(disk: SmallDisk, work: Callable[[], object], check: Callable[[str], None]) -> int:
    """Does the work with 0, 1, 2, … free pages, until there is room; ``check`` gets what each failure said."""
    for left in range(200):
        disk.leave(left)
        try:
            work()
        except NotDone as error:
            assert FULL in str(error), error
            check(str(error))
        else:
            return left
    raise AssertionError("it never fitted")


@pytest.mark.parametrize("into", [False, True])
@pytest.mark.parametrize("full", ["the back-up", "the log dir"])
def test_a_disk_that_is_full_at_any_page_leaves_the_old_log_or_the_new_one(
    disks: Path, disk: SmallDisk, no_spare: None, full: str, into: bool
) -> None:
    changed: dict[str, Any] = {"into": blank_controller(disks), "dead": (100, 101, 102)} if into else {}
    if full == "the back-up":
        plan = made(disks, backup=disk.path / "backup", **changed)
    else:
        moved = Path(changed.get("into", disks / "node-100"))
        shutil.move(moved, disk.path / moved.name)
        moved.symlink_to(disk.path / moved.name)
        plan = made(disks, **changed)
    before, said = state(plan), list[str]()

    def apply() -> None:
        apply_rebuild(plan, "a test", silent)

    def check(told: str) -> None:
        said.append(told)
        assert ("the log is as it was" in told) == (state(plan) == before), told

    until_it_fits(disk, apply, check)
    assert said, "no write failed"
    after = state(plan)
    assert after != before
    disk.empty()
    assert apply_rebuild(plan, "a test", silent).files.already
    assert state(plan) == after

    failed = list[str]()

    def undo() -> None:
        undo_rebuild(plan, "a test")

    def check_undo(told: str) -> None:
        failed.append(told)
        assert "give the command again" in told
        assert state(plan) in (before, after, None), told

    until_it_fits(disk, undo, check_undo)
    # Of a controller that was blank nothing is put back: what is there is moved, and needs room only elsewhere.
    assert failed or (into and full == "the log dir"), "no write failed"
    assert state(plan) == before
    disk.empty()
    apply()
    assert state(plan) == after


def test_a_log_dir_without_room_is_not_written(disks: Path, disk: SmallDisk) -> None:
    shutil.move(disks / "node-100", disk.path / "node-100")
    (disks / "node-100").symlink_to(disk.path / "node-100")
    plan = made(disks)
    before = state(plan)
    with pytest.raises(NotDone, match="its disk has no room for"):
        apply_rebuild(plan, "a test", silent)
    assert state(plan) == before
