"""Log dirs of a simulated broker, written as Kafka lays them out: scanned, taken as evidence, and rescued from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from backends.log_segments.segment_reader import SegmentReader
from backends.log_segments.segment_source import SegmentFile
from tests.unit.cli.command_process import Caller
from tests.unit.log_segments.segments import old_message

TAIL = ("--simulate", "stale-long-tail")
AGREED = ("--yes", "--reason", "a test")


@pytest.fixture
def run(call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Caller:
    monkeypatch.chdir(tmp_path)
    return call


def disk_of(run: Caller, broker: int) -> str:
    """A copy of the broker's log dir, as it is now."""
    ended = run("ktriage", "simulate", "disk", "stale-long-tail", str(broker), "--to", f"disk-{broker}")
    assert ended.status == 0, ended
    return str(ended.out.strip())


def payments(document: str) -> dict[str, Any]:
    return next(one for one in json.loads(document)["partitions"] if one["topic"] == "payments")


@pytest.mark.parametrize("broker", ["1", "2", "3"])
def test_a_scan_of_the_written_dirs_finds_what_the_simulator_tells(run: Caller, broker: str) -> None:
    told = payments(run("ktriage", "simulate", "disk", "stale-long-tail", broker).out)
    found = payments(run("ktriage", "disk", "scan", "--output", "json", disk_of(run, int(broker))).out)
    unlike = {"logDir", "size", "lastTimestampMs"}
    assert {name: found[name] for name in told if name not in unlike} == {
        name: told[name] for name in told if name not in unlike
    }


def test_what_an_election_cut_off_comes_back_from_a_copy_of_the_disk(run: Caller) -> None:
    copy = disk_of(run, 1)
    assert run("ktriage", "plan", "--strategy", "aggressive", "plan.json", *TAIL).status == 0
    assert run("ktriage", "apply", "plan.json", *AGREED, *TAIL).status == 0
    read = run("ktriage", "rescue", "read", "--to", "saved", "--from-disk", copy, *TAIL)
    assert read.status == 0 and "1 of 1 branch read as a whole" in read.out and "500 offsets" in read.out, (
        read
    )
    assert run("ktriage", "rescue", "verify", "saved").status == 0
    back = run("ktriage", "restore", "saved", "--to-source", *AGREED, *TAIL)
    assert back.status == 0 and "500 records written back; 500 counted" in back.out, back


def test_a_torn_log_is_no_whole_one_and_what_lies_behind_the_tear_is_counted(
    run: Caller, tmp_path: Path
) -> None:
    copy = disk_of(run, 1)
    assert run("ktriage", "plan", "--strategy", "aggressive", "plan.json", *TAIL).status == 0
    assert run("ktriage", "apply", "plan.json", *AGREED, *TAIL).status == 0
    (segment,) = (tmp_path / copy / "payments-0").glob("*.log")
    size = segment.stat().st_size
    with segment.open("ab") as file:
        file.write(b"x" * 2048)
    read = run("ktriage", "rescue", "read", "--to", "saved", "--from-disk", copy, *TAIL)
    assert read.status == 1, read
    assert (
        "0 of 1 branch read as a whole" in read.out
        and "1 branch of logs that could be read in part" in read.out
    )
    assert "read in part: the logs of 1 partition on 1 (its disk:" in read.out
    assert f"2.0 KiB behind that are not read ({segment.name} from byte {size:,} on)" in read.out
    assert "of a log that was read in part" in read.out
    shown = run("ktriage", "rescue", "show", "saved")
    assert "read in part: the logs of 1 partition on 1" in shown.out


def test_folders_that_are_no_logs_of_replicas_are_counted_and_one_that_is_renamed_is_read(
    run: Caller, tmp_path: Path
) -> None:
    copy = disk_of(run, 1)
    assert run("ktriage", "plan", "--strategy", "aggressive", "plan.json", *TAIL).status == 0
    assert run("ktriage", "apply", "plan.json", *AGREED, *TAIL).status == 0
    folder = tmp_path / copy / "payments-0"
    mark = f"payments-0.{'1' * 32}"
    shutil.copytree(folder, folder.with_name(f"{mark}-future"))
    deleted = folder.rename(folder.with_name(f"{mark}-delete"))
    command = ("ktriage", "rescue", "read", "--topic", "payments", "--from-disk", copy, *TAIL)
    refused = run(*command, "--to", "nothing")
    assert refused.status == 2 and "holds no partition of payments; left out" in refused.err, refused
    assert "1 deleted folder" in refused.err and "1 future folder" in refused.err
    deleted.rename(folder.with_name(f"{mark}-stray"))
    read = run(*command, "--to", "saved")
    assert read.status == 0 and "1 of 1 branch read as a whole" in read.out, read
    assert "left out, and not in the rescue: 1 future folder (for a move between log dirs)" in read.out


def test_messages_of_old_formats_are_named_for_each_partition(run: Caller, tmp_path: Path) -> None:
    copy = disk_of(run, 1)
    assert run("ktriage", "plan", "--strategy", "aggressive", "plan.json", *TAIL).status == 0
    assert run("ktriage", "apply", "plan.json", *AGREED, *TAIL).status == 0
    (segment,) = (tmp_path / copy / "payments-0").glob("*.log")
    old = b"".join(old_message(1, offset, b"value") for offset in range(1000))
    batches = segment.read_bytes()
    with SegmentFile(segment) as file:
        reader = SegmentReader(file)
        newer = next(one.position for one in reader if one.header.base_offset >= 1000)
    segment.write_bytes(old + batches[newer:])
    read = run("ktriage", "rescue", "read", "--to", "saved", "--from-disk", copy, *TAIL)
    assert read.status == 1, read
    assert (
        "1,000 messages of formats 0 and 1, before offset 1000, are neither compared nor rescued" in read.out
    )


def test_a_disk_that_adds_nothing_is_named(run: Caller) -> None:
    wrong, right = disk_of(run, 2), disk_of(run, 3)
    assert run("ktriage", "plan", "--strategy", "aggressive", "plan.json", *TAIL).status == 0
    read = ("rescue", "read", "plan.json", *TAIL)
    ended = run("ktriage", *read, "--to", "first", "--from-disk", wrong)
    assert (
        ended.status == 1
        and "is of broker 2, which answers: its answer counts, the disk adds no offset" in ended.out
    ), ended
    ended = run("ktriage", *read, "--to", "second", "--from-disk", right)
    assert (
        ended.status == 0
        and "is of broker 3: it was read, and adds no offset (1,300 offsets compared, by epoch and offset, not by"
        " content)"
        in ended.out
    ), ended


def test_where_a_partition_has_no_leader_a_disk_needs_a_plan_first(run: Caller, tmp_path: Path) -> None:
    copy = disk_of(run, 3)
    ended = run("ktriage", "rescue", "read", "--to", "saved", "--from-disk", copy, *TAIL)
    assert ended.status == 1 and "payments-0: it has no leader" in ended.err, ended
    assert "next: ktriage plan --topic payments " in ended.err and ended.out == "", ended
    assert not (tmp_path / "saved").exists()


def test_a_silent_broker_whose_disk_told_the_plan_that_it_holds_nothing_else_is_not_missing(
    run: Caller, tmp_path: Path
) -> None:
    scanned = run("ktriage", "disk", "scan", "--output", "json", disk_of(run, 3))
    (tmp_path / "broker-3.json").write_text(scanned.out)
    for evidence, unread in (((), [3]), (("--evidence", "broker-3.json"), [])):
        plan = f"plan-{len(evidence)}.json"
        made = run("ktriage", "plan", "--strategy", "aggressive", *evidence, plan, *TAIL)
        assert made.status == 0, made
        saved = ("--to", f"saved-{len(evidence)}", "--output", "json")
        read = json.loads(run("ktriage", "rescue", "read", plan, *saved, *TAIL).out)
        assert [one["broker"] for one in read["unread"]] == unread


def test_a_dir_that_is_there_and_a_broker_that_is_not_are_one_line_each(run: Caller, tmp_path: Path) -> None:
    disk_of(run, 3)
    again = run("ktriage", "simulate", "disk", "stale-long-tail", "3", "--to", "disk-3")
    assert again.status == 2 and "--to disk-3: cannot be written: File exists" in again.err
    nobody = run("ktriage", "simulate", "disk", "stale-long-tail", "9", "--to", "disk-9")
    assert nobody.status == 2 and "stale-long-tail has no broker or controller 9" in nobody.err
    assert not (tmp_path / "disk-9").exists()
