"""Log dirs of a simulated broker, written as Kafka lays them out: scanned, taken as evidence, and rescued from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.command_process import Caller

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
        and "is of broker 3: it was read, and adds no offset (by epochs and offsets, not by content)"
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
    assert nobody.status == 2 and "stale-long-tail has no broker 9" in nobody.err
    assert not (tmp_path / "disk-9").exists()
