"""``ktriage metadata-log copy`` on simulated clusters: what it writes, says and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backends.metadata_log.directory import DIRECTORY
from console.new_files import locked
from tests.unit.cli.command_process import Caller

SCENARIO = ("--simulate", "stale-long-tail")
COPY = ("ktriage", "metadata-log", "copy", "--to", "copy")
SEGMENT = Path("copy") / DIRECTORY / "00000000000000000000.log"


def test_the_timeline_of_the_copy_is_that_of_the_cluster(call: Caller, tmp_path: Path) -> None:
    ended = call(*COPY, *SCENARIO)
    assert ended.status == 0, ended
    assert "records of the metadata log of " in ended.out
    assert (tmp_path / SEGMENT).stat().st_size > 0
    events = [
        json.loads(call("ktriage", "timeline", *source, "--last", "0", "--output", "json").out)["events"]
        for source in (SCENARIO, ("--metadata-dir", "copy"))
    ]
    assert events[0] == events[1] != []


def test_json_says_what_was_copied_and_a_second_run_copies_nothing_twice(
    call: Caller, tmp_path: Path
) -> None:
    told = json.loads(call(*COPY, *SCENARIO, "--output", "json").out)
    assert told["schema"] == "ktriage.metadata-log-copy/1"
    assert told["clusterId"] == "simulated.stale-long-tail.1"
    assert (told["directory"], told["snapshots"]) == ("copy", 0)
    assert told["offsets"] == told["nextOffset"] == told["highWatermark"] > 0
    data = (tmp_path / SEGMENT).read_bytes()
    again = json.loads(call(*COPY, *SCENARIO, "--output", "json").out)
    assert (again["offsets"], again["nextOffset"]) == (0, told["nextOffset"])
    assert (tmp_path / SEGMENT).read_bytes() == data


def test_a_torn_end_is_cut_off_and_said(call: Caller, tmp_path: Path) -> None:
    call(*COPY, *SCENARIO)
    data = (tmp_path / SEGMENT).read_bytes()
    (tmp_path / SEGMENT).write_bytes(data[:-7])
    ended = call(*COPY, *SCENARIO)
    assert ended.status == 0
    assert "at the end were no whole batch, and were cut off" in ended.err
    assert (tmp_path / SEGMENT).read_bytes() == data


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--simulate", "disk-failure"), "holds the metadata log of cluster simulated.stale-long-tail.1"),
        ((*SCENARIO, "--seed", "2"), "this one is simulated.stale-long-tail.2. Give a new directory"),
        ((*SCENARIO, "--follow"), "nothing happens in a simulated cluster between two commands"),
        ((), "no cluster is named"),
    ],
)
def test_bad_input_gets_one_line_and_changes_nothing(
    call: Caller, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    call(*COPY, *SCENARIO)
    data = (tmp_path / SEGMENT).read_bytes()
    ended = call(*COPY, *options)
    assert (ended.status, ended.out) == (2, "")
    assert said in ended.err
    assert len(ended.err.splitlines()) == 1
    assert (tmp_path / SEGMENT).read_bytes() == data


def test_a_directory_that_another_run_writes_to_is_refused(call: Caller, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    other = locked(tmp_path / "copy")
    ended = call(*COPY, *SCENARIO)
    assert (ended.status, ended.err) == (2, "ktriage: copy: another run is writing to it\n")
    assert other >= 0
