"""A state directory that several people share, on one host or on several."""

from __future__ import annotations

import errno
import json
import os
import platform
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from console.errors import InputError
from console.journal.errors import JournalError, JournalLocked
from console.journal.journal import Journal, cluster_directory, running
from console.journal.run_records import read_runs, read_unsettled_runs, remember_settled
from console.journal.state_access import SHARED, access_of
from tests.unit.journal.runs import CLUSTER, Clock, row, run

OWNER = "lock.owner"
GROUP = 20_000


@pytest.fixture
def root() -> Iterator[Path]:
    """As an administrator makes it: install -d -m 2770 -g GROUP DIR. Everybody may get as far as that."""
    outer = Path(tempfile.mkdtemp(prefix="ktriage-shared-"))
    outer.chmod(0o755)
    made = outer / "state"
    made.mkdir()
    if os.geteuid() == 0:
        os.chown(made, -1, GROUP)
    made.chmod(0o2770)
    yield made
    shutil.rmtree(outer)


@pytest.fixture
def strict_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


def journal(root: Path, run_id: str = "run-1", host: str = "ops1") -> Journal:
    return Journal.open(CLUSTER, replace(run(run_id), host=host), Clock(), root, access_of(root))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("strict_umask")
def test_the_group_may_read_and_write_whatever_the_umask(root: Path) -> None:
    with journal(root) as written:
        assert mode(written.path) == 0o660
        assert mode(written.path.parent) == 0o2770
        assert {mode(path) for path in written.path.parent.iterdir()} == {0o660}
        assert {path.stat().st_gid for path in written.path.parent.iterdir()} == {root.stat().st_gid}
    with journal(root, "run-2") as second:
        remember_settled(second.path)
    assert mode(second.path.parent / "settled") == 0o660


def test_a_directory_of_ones_own_stays_ones_own(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir(mode=0o700)
    with journal(own) as written:
        assert (mode(written.path), mode(written.path.parent)) == (0o600, 0o700)


@pytest.mark.parametrize(
    ("bits", "said"),
    [(0o2777, "everybody can write"), (0o770, "chmod 2770"), (0o2772, "everybody can write")],
)
def test_a_directory_that_is_not_safe_to_share_is_refused(root: Path, bits: int, said: str) -> None:
    root.chmod(bits)
    with pytest.raises(InputError, match=said) as refused:
        access_of(root)
    assert str(root) in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_a_lock_that_is_a_link_to_another_file_is_not_followed(root: Path) -> None:
    journal(root).close()
    lock, other = cluster_directory(CLUSTER, root) / "lock", root / "precious"
    other.write_text("precious")
    lock.unlink()
    lock.symlink_to(other)
    with pytest.raises(JournalError):
        journal(root, "run-2")
    assert other.read_text() == "precious"


def test_a_run_on_another_host_keeps_this_one_out_and_is_named(root: Path) -> None:
    """No lock of the kernel says so: on many mounts it does not reach the other host."""
    with journal(root, host="ops2") as theirs:
        owner = theirs.path.parent / OWNER
        told = owner.read_text()
    assert not owner.exists(), "a run that ends lets go"
    owner.write_text(told)
    with pytest.raises(JournalLocked) as locked:
        journal(root, "run-2", host="ops1")
    assert "pid 4711 of ann on ops2 since" in str(locked.value)
    assert str(owner) in str(locked.value), "what to remove once that run is known to have ended"
    assert owner.read_text() == told, "it is never taken silently"
    found = running(CLUSTER, root)
    assert found is not None
    assert (found.host, found.run_id) == ("ops2", "run-1")
    owner.unlink()
    journal(root, "run-3").close()


def test_an_owner_that_has_not_said_who_it_is_is_respected(root: Path) -> None:
    journal(root).close()
    (cluster_directory(CLUSTER, root) / OWNER).write_text("")
    with pytest.raises(JournalLocked, match="name is not in the lock file yet"):
        journal(root, "run-2")


def test_a_killed_run_of_this_host_keeps_nobody_out(root: Path) -> None:
    here = platform.node()
    with journal(root, host=here) as written:
        left = {name: (written.path.parent / name).read_text() for name in ("lock", OWNER)}
    for name, text in left.items():
        (written.path.parent / name).write_text(text)
    assert running(CLUSTER, root) is None
    with journal(root, "run-2", here):
        assert json.loads((written.path.parent / OWNER).read_text())["run"] == "run-2"


def test_two_runs_of_this_host_exclude_each_other(root: Path) -> None:
    with journal(root):
        with pytest.raises(JournalLocked, match="pid 4711 of ann on ops1"):
            journal(root, "run-2")
        assert (cluster_directory(CLUSTER, root) / OWNER).exists()


@pytest.mark.parametrize("nth", [1, 2], ids=["owner file", "lock file"])
def test_a_full_disk_leaves_no_owner_file_that_would_keep_every_host_out(
    root: Path, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    written, writes = os.write, 0

    def full(descriptor: int, content: bytes) -> int:
        nonlocal writes
        writes += 1
        if writes == nth:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return written(descriptor, content)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(JournalError, match="No space left on device"):
        journal(root, host="ops1")
    assert not (cluster_directory(CLUSTER, root) / OWNER).exists()
    journal(root, "run-2", host="ops2").close()


def as_user(uid: int, work: Callable[[], None]) -> None:
    """Runs ``work`` in a process of that user, who is in the group, and shows its failure."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([GROUP])
            os.setgid(uid)
            os.setuid(uid)
            os.umask(0o077)
            work()
            os._exit(0)
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to become other users")
def test_two_users_see_each_others_runs_and_exclude_each_other(root: Path) -> None:
    def first() -> None:
        with journal(root) as written:
            written.before("reorder", {"rows": (row(0),)})

    def second() -> None:
        (before,) = read_unsettled_runs(CLUSTER, root)
        assert before.run_id == "run-1"
        with journal(root, "run-2") as written:
            remember_settled(written.path)
            done = os.fork()
            if done == 0:
                try:
                    journal(root, "run-3")
                except JournalLocked:
                    os._exit(0)
                os._exit(1)
            assert os.waitpid(done, 0)[1] == 0

    as_user(10_001, first)
    as_user(10_002, second)
    as_user(10_001, lambda: journal(root, "run-4").close())
    assert [told.run_id for told in read_runs(CLUSTER, root)] == ["run-1", "run-2", "run-4"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to become other users")
def test_a_user_who_may_not_write_there_is_not_told_of_another_run(root: Path) -> None:
    as_user(10_001, lambda: journal(root).close())
    for directory in (root, cluster_directory(CLUSTER, root)):
        directory.chmod(0o2750)

    def second() -> None:
        with pytest.raises(
            JournalError, match=r"lock.owner: cannot be created: Permission denied"
        ) as refused:
            journal(root, "run-2")
        assert not isinstance(refused.value, JournalLocked)

    as_user(10_002, second)


def test_what_is_shared_is_told_apart_from_what_is_not(root: Path) -> None:
    assert access_of(root) == SHARED
