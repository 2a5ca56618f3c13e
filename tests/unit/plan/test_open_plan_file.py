"""What is opened as a plan by somebody at the console may be anything: a device, a pipe, a file without end."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

import pytest

from console import plan_files
from console.errors import InputError
from console.plan_file_checks import read_part
from console.plan_files import read, read_regular
from recovery.plan.write import digest, to_json
from tests.unit.plan.plans import story


def on() -> bool:
    return False


def test_a_regular_file_is_read_as_ever(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(to_json(story()))
    assert read_regular(path, on) == story()


def test_a_pipe_that_nobody_writes_to_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(InputError, match=r"pipe: a pipe, not a plan file"):
        read_regular(path, on)


@pytest.mark.parametrize(("path", "what"), [("/dev/zero", "a device"), ("/dev", "a directory")])
def test_what_is_no_file_is_named(path: str, what: str) -> None:
    with pytest.raises(InputError, match=what):
        read_regular(Path(path), on)


def test_a_link_to_a_plan_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(to_json(story()))
    (tmp_path / "link").symlink_to(path)
    assert read_regular(tmp_path / "link", on) == story()


def test_a_file_larger_than_any_plan_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "segment.log"
    with path.open("wb") as file:
        file.truncate(plan_files.LIMIT_BYTES + 1)
    for reading in (read, lambda p: read_regular(p, on)):
        with pytest.raises(InputError, match=r"larger than 1,024 MiB"):
            reading(path)


def test_what_tells_no_size_ends_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe, which a command may be given, or a file that grows: read to the limit, and no further."""
    monkeypatch.setattr(plan_files, "LIMIT_BYTES", 1 << 20)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    endless = threading.Thread(target=_fill, args=(path,), daemon=True)
    endless.start()
    with pytest.raises(InputError, match=r"larger than 1 MiB"):
        read(path)
    endless.join(60)
    assert not endless.is_alive()


def _fill(path: Path) -> None:
    with contextlib.suppress(BrokenPipeError), path.open("wb", buffering=0) as file:
        while True:
            file.write(b" " * 65_536)


def test_what_is_no_text_is_refused_at_its_first_bytes() -> None:
    with pytest.raises(InputError, match=r"/dev/zero: not text \(byte 0 is NUL\)"):
        read(Path("/dev/zero"))


def test_reading_ends_soon_when_it_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(b" " * (3 * plan_files.CHUNK_BYTES))
    asked = 0

    def given_up() -> bool:
        nonlocal asked
        asked += 1
        return asked == 2

    with pytest.raises(InputError, match=r"given up"):
        read_regular(path, given_up)
    assert asked == 2


def test_a_plan_that_was_not_reviewed_is_refused_without_telling_what_would_pass(tmp_path: Path) -> None:
    """Who could copy the digest from the message would need no second person."""
    path = tmp_path / "plan.json"
    path.write_text(to_json(story()))
    with pytest.raises(InputError, match="this is not the file that was reviewed") as refused:
        read_part(path, digest="0" * 64)
    assert digest(story()) not in str(refused.value)
    assert read_part(path, digest=digest(story())) == story()
