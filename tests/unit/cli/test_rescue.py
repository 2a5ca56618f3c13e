"""``ktriage rescue`` on the stale long tail: what the right election cuts off is on disk before it is held."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.command_process import Caller

TAIL = ("--simulate", "stale-long-tail")
AGREED = ("--yes", "--reason", "a test")


@pytest.fixture
def planned(call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Caller:
    """A plan that elects broker 2 and cuts off 500 records of broker 1."""
    monkeypatch.chdir(tmp_path)
    assert call("ktriage", "plan", "--strategy", "aggressive", "plan.json", *TAIL).status == 0
    return call


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


def test_without_a_rescue_the_journal_says_so(planned: Caller) -> None:
    assert planned("ktriage", "apply", "plan.json", *AGREED, *TAIL).status == 0
    assert "Z no-rescue" in planned("ktriage", "journal", *TAIL).out


def test_after_the_election_there_is_nothing_left_to_read(planned: Caller) -> None:
    assert planned("ktriage", "apply", "plan.json", *AGREED, *TAIL).status == 0
    ended = planned("ktriage", "rescue", "read", "plan.json", "--to", "saved", *TAIL)
    assert ended.status == 4 and "already online" in ended.err


@pytest.mark.parametrize("rate", ["0", "fast", "-1", "5 miles"])
def test_a_rate_that_cannot_be_read_is_one_line(planned: Caller, rate: str) -> None:
    ended = planned("ktriage", "rescue", "read", "plan.json", "--to", "saved", f"--rate={rate}", *TAIL)
    assert ended.status == 2 and "50MB" in ended.err
