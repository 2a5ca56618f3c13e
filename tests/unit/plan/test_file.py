"""The plan's file: made new, never overwritten, whole or not there, and readable errors."""

from __future__ import annotations

import os
import resource
from dataclasses import replace
from pathlib import Path

import pytest

from console.errors import InputError
from console.new_files import write_new
from console.plan_files import default_name, read, read_targets
from recovery.plan.values import BarePlan, Plan
from recovery.plan.write import to_json
from tests.unit.journal.killed_process import killed_at, listened
from tests.unit.plan.plans import HEADER, story
from tests.unit.plan.test_targets import NAMED, SPECIFICATION

WHOLE = to_json(story())


def names(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


def test_a_plan_is_written_and_read_back_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    write_new(path, WHOLE)
    assert read(path) == story()
    assert names(tmp_path) == ["plan.json"]


def test_a_plan_of_the_first_version_is_read_as_before(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    write_new(path, WHOLE.replace('"formatVersion": 2', '"formatVersion": 1'))
    assert '"formatVersion": 1' in path.read_text()
    assert read(path) == story()


def test_a_file_that_exists_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text("mine")
    with pytest.raises(InputError, match=r"plan\.json: it exists, and is never overwritten"):
        write_new(path, WHOLE)
    assert path.read_text() == "mine"
    assert names(tmp_path) == ["plan.json"]


def test_a_dangling_link_is_not_followed(tmp_path: Path) -> None:
    path, target = tmp_path / "plan.json", tmp_path / "elsewhere"
    path.symlink_to(target)
    with pytest.raises(InputError, match="it exists"):
        write_new(path, WHOLE)
    assert not target.exists()


def test_of_two_writers_at_once_one_wins_and_the_other_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other writer comes in the moment between the first look and the naming; only here can it be placed."""
    path = tmp_path / "plan.json"
    fsync = os.fsync

    def other_first(descriptor: int) -> None:
        path.touch()
        path.write_text("theirs")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", other_first)
    with pytest.raises(InputError, match="it exists, and is never overwritten"):
        write_new(path, WHOLE)
    assert path.read_text() == "theirs"
    assert names(tmp_path) == ["plan.json"]


def test_killed_at_any_step_there_is_a_whole_file_or_none(tmp_path: Path) -> None:
    outcomes = set()
    step = 0
    alive = False
    while not alive:
        step += 1
        path = tmp_path / f"{step}" / "plan.json"
        path.parent.mkdir()
        alive = not killed_at(step, lambda path=path: write_new(path, WHOLE))  # type: ignore[misc]  # bound now
        if path.exists():
            assert path.read_text() == WHOLE
        outcomes.add(path.exists())
        if not path.exists():
            write_new(path, WHOLE)
            assert path.read_text() == WHOLE
    assert outcomes == {True, False}
    assert step > 5


def test_the_disk_has_the_text_before_the_name_and_the_name_before_it_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power loss cannot be had in a test: the order of the calls stands for it."""
    calls: list[str] = []
    for name in ("fsync", "link"):
        monkeypatch.setattr(os, name, listened(calls, name, getattr(os, name)))
    write_new(tmp_path / "plan.json", WHOLE)
    assert calls == ["fsync", "link", "fsync"]


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
        with pytest.raises(InputError, match=r"plan\.json: cannot be written: File too large"):
            write_new(path, WHOLE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert names(tmp_path) == []


def test_a_directory_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none/plan\.json: cannot be written: No such file or directory"):
        write_new(tmp_path / "none" / "plan.json", WHOLE)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no such file"),
        (b"", "the file is empty"),
        (b"\xff\xfe", "not UTF-8 text (byte 0)"),
        (b'{"partitions": [', "not JSON"),
        (b'{"partitions": [{"topic": "t"}]}', "partitions[0].partition: is missing"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line_with_its_name(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    path = tmp_path / "plan.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)


def test_a_directory_in_place_of_a_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        read(tmp_path)


def test_a_byte_order_mark_is_no_hindrance(tmp_path: Path) -> None:
    path = tmp_path / "bare.json"
    path.write_bytes(b'\xef\xbb\xbf{"partitions": [{"topic": "t", "partition": 0, "designatedLeader": 1}]}')
    assert isinstance(read(path), BarePlan)


def test_the_tools_input_file_is_read_and_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "input.json"
    path.write_text(SPECIFICATION)
    assert read_targets(path) == NAMED
    path.write_text("{partitions: []}")
    with pytest.raises(InputError, match=r"input\.json: partitions: the file names no partition"):
        read_targets(path)


def test_the_proposed_name_tells_cluster_and_time_and_is_a_file_name() -> None:
    assert default_name(story()) == "ktriage-plan-cluster-1-20260131T120000Z-plan-1.json"
    odd = Plan(replace(HEADER, cluster_id="../a b/" + "x" * 300, plan_id="0123456789"), story().rows)
    name = default_name(odd)
    assert "/" not in name
    assert len(name) < 100
    assert name.endswith("-01234567.json")
