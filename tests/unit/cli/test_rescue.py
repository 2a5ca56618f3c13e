"""``ktriage rescue`` on the stale long tail: what the right election cuts off is on disk before it is held."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from backends.simulator.adapter import SimulatorBackend
from console.cli.base.run import Run
from console.operations.rescue import rescue_first
from console.operations.rescue.rescue_read import Rescued, rescue_plan
from console.signals import Stopped
from tests.unit.cli.command_process import Caller
from tests.unit.cli.stale_long_tail import AGREED, TAIL


def test_what_is_cut_off_is_read_before_the_election(planned: Caller, tmp_path: Path) -> None:
    ended = planned("ktriage", "apply", "plan.json", "--rescue", "saved", *AGREED, *TAIL, "--output", "json")
    assert ended.status == 0, ended
    rescue = json.loads(ended.out)["rescue"]
    (branch,) = rescue["branches"]
    assert (branch["broker"], branch["startOffset"], branch["endOffset"], branch["whole"]) == (
        1,
        1000,
        1500,
        True,
    )
    assert [one["broker"] for one in rescue["unread"]] == [3]
    (manifest,) = (tmp_path / "saved").glob("*/*/manifest.json")
    assert json.loads(manifest.read_text())["whole"] is True
    journal = planned("ktriage", "journal", *TAIL).out
    assert journal.index("Z rescue") < journal.index("Z elect")


def test_a_rescue_that_is_stopped_tells_the_command_that_goes_on(
    planned: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> None:
        raise Stopped(signal.SIGINT, in_flight=False)

    monkeypatch.setattr(Run, "read", stopped)
    ended = planned("ktriage", "rescue", "read", "plan.json", "--to", "saved", *TAIL)
    assert ended.status == 130 and "next: ktriage rescue read plan.json --to saved" in ended.err, ended


def test_a_finished_rescue_is_not_read_again(planned: Caller) -> None:
    assert planned("ktriage", "rescue", "read", "plan.json", "--to", "saved", *TAIL).status == 0
    again = planned("ktriage", "rescue", "read", "plan.json", "--to", "saved", *TAIL)
    assert again.status == 0 and "1 by an earlier run" in again.out


def test_a_directory_with_something_else_is_left_alone_and_nothing_is_sent(
    planned: Caller, tmp_path: Path
) -> None:
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "mine").write_text("x")
    ended = planned("ktriage", "apply", "plan.json", "--rescue", "saved", *AGREED, *TAIL)
    assert ended.status == 2 and "holds no rescue" in ended.err
    assert "Z elect" not in planned("ktriage", "journal", *TAIL).out


def test_a_disk_that_cannot_be_read_stops_the_rescue_before_it_begins(
    planned: Caller, tmp_path: Path
) -> None:
    ended = planned(
        "ktriage", "rescue", "read", "plan.json", "--to", "saved", "--from-disk", str(tmp_path), *TAIL
    )
    assert ended.status == 2 and "is no log dir" in ended.err
    ended = planned("ktriage", "rescue", "read", "--to", "saved", *TAIL)
    assert ended.status == 2 and "give a plan, or --from-disk DIR" in ended.err
    assert not (tmp_path / "saved").exists()


def test_a_rescue_of_another_plan_is_never_written_over(planned: Caller) -> None:
    assert planned("ktriage", "rescue", "read", "plan.json", "--to", "saved", *TAIL).status == 0
    assert planned("ktriage", "plan", "--strategy", "aggressive", "other.json", *TAIL).status == 0
    ended = planned("ktriage", "rescue", "read", "other.json", "--to", "saved", *TAIL)
    assert ended.status == 2 and "holds the rescue of plan" in ended.err


def test_a_partition_whose_rescue_is_not_whole_is_not_elected(planned: Caller, tmp_path: Path) -> None:
    """An earlier run left a segment that was damaged since."""
    assert planned("ktriage", "rescue", "read", "plan.json", "--to", "saved", *TAIL).status == 0
    (segment,) = (tmp_path / "saved").glob("*/*/*.log")
    data = bytearray(segment.read_bytes())
    data[-1] ^= 1
    segment.write_bytes(data)
    (segment.parent / "manifest.json").unlink()
    ended = planned("ktriage", "apply", "plan.json", "--rescue", "saved", *AGREED, *TAIL)
    assert ended.status == 1 and "its rescue is not whole" in ended.err and "nothing was sent" in ended.out
    told = planned("ktriage", "apply", "plan.json", "--rescue", "saved", "--elect-unrescued", *AGREED, *TAIL)
    assert told.status == 1 and "1 elected" in told.out


@pytest.mark.parametrize("damage", ["changed", "missing"])
def test_an_earlier_rescue_that_is_no_longer_whole_elects_nobody(
    planned: Caller, tmp_path: Path, damage: str
) -> None:
    """Its manifest still says that all of it was read."""
    assert planned("ktriage", "rescue", "read", "plan.json", "--to", "saved", *TAIL).status == 0
    (segment,) = (tmp_path / "saved").glob("*/*/*.log")
    if damage == "missing":
        segment.unlink()
    else:
        segment.write_bytes(segment.read_bytes()[:-1] + b"x")
    read = planned("ktriage", "rescue", "read", "plan.json", "--to", "saved", *TAIL)
    assert read.status == 1 and f"saved/{segment.relative_to(tmp_path / 'saved')}" in read.err, read
    ended = planned("ktriage", "apply", "plan.json", "--rescue", "saved", *AGREED, *TAIL)
    assert ended.status == 1 and "its rescue is not whole" in ended.err and "nothing was sent" in ended.out
    assert "give a new directory" in ended.err
    again = planned("ktriage", "apply", "plan.json", "--rescue", "anew", *AGREED, *TAIL)
    assert again.status == 0 and "1 elected" in again.out


def test_a_cluster_that_changes_while_it_is_read_makes_the_row_stale(
    planned: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broker 3 is in the ELR: when it is back, it leads, and there is nothing to elect."""

    async def meanwhile(backend: SimulatorBackend, *rest: Any) -> Rescued:
        rescued = await rescue_plan(backend, *rest)
        backend.simulation.world.start_broker(3)
        await backend.advance(30)
        return rescued

    monkeypatch.setattr(rescue_first, "rescue_plan", meanwhile)
    ended = planned("ktriage", "apply", "plan.json", "--rescue", "saved", *AGREED, *TAIL)
    assert "1 of 1 branch read as a whole" in ended.out, ended
    assert "1 elected" not in ended.out and "nothing was sent" in ended.out, ended
    (row,) = (line for line in ended.out.splitlines() if line.startswith("payments-0  already online"))
    assert "led by 3" in row


def test_a_rescue_is_nobody_elses_to_read(planned: Caller, tmp_path: Path) -> None:
    assert planned("ktriage", "rescue", "read", "plan.json", "--to", "saved", *TAIL).status == 0
    made = [tmp_path / "saved", *(tmp_path / "saved").rglob("*")]
    assert {path.stat().st_mode & 0o777 for path in made if path.is_dir()} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in made if path.is_file()} == {0o600}


def test_without_a_rescue_the_journal_says_so(planned: Caller) -> None:
    assert planned("ktriage", "apply", "plan.json", *AGREED, *TAIL).status == 0
    journal = planned("ktriage", "journal", *TAIL).out.splitlines()
    note = next(n for n, row in enumerate(journal) if "Z not read before the elections: what they" in row)
    assert journal[note].endswith("cut off of 1 partition")
    assert "elections of 1 partition" in journal[note + 1], "a note has no result"


def test_a_review_leads_to_an_election_that_reads_first_what_it_cuts_off(planned: Caller) -> None:
    review = planned("ktriage", "review", "plan.json")
    assert "next: ktriage apply plan.json --rescue rescue --simulate stale-long-tail" in review.err
    assert planned("ktriage", "rescue", "read", "plan.json", "--to", "rescue", *TAIL).status == 0
    assert "--rescue rescue " in planned("ktriage", "review", "plan.json").err, (
        "it holds a rescue of this plan"
    )
    again = planned("ktriage", "plan", "--strategy", "aggressive", "other.json", *TAIL)
    assert again.status == 0
    assert "--rescue rescue-2 " in planned("ktriage", "review", "other.json").err, (
        "that one is of another plan"
    )


def test_who_is_not_asked_reads_that_nothing_is_read_first(planned: Caller) -> None:
    ended = planned("ktriage", "apply", "plan.json", *AGREED, *TAIL)
    assert ended.status == 0
    assert "what the elections cut off is not read first, and cannot be had afterwards" in ended.out


def test_after_the_election_there_is_nothing_left_to_read(planned: Caller) -> None:
    assert planned("ktriage", "apply", "plan.json", *AGREED, *TAIL).status == 0
    ended = planned("ktriage", "rescue", "read", "plan.json", "--to", "saved", *TAIL)
    assert ended.status == 4 and "already online" in ended.err


@pytest.mark.parametrize("rate", ["0", "fast", "-1", "5 miles"])
def test_a_rate_that_cannot_be_read_is_one_line(planned: Caller, rate: str) -> None:
    ended = planned("ktriage", "rescue", "read", "plan.json", "--to", "saved", f"--rate={rate}", *TAIL)
    assert ended.status == 2 and "50MB" in ended.err
