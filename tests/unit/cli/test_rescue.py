"""``ktriage rescue`` on the stale long tail: what the right election cuts off is on disk before it is held."""

from __future__ import annotations

import json
import shlex
import signal
from pathlib import Path
from typing import Any

import pytest

from backends.base.errors import BackendError
from backends.simulator.adapter import SimulatorBackend
from console.cli.base.run import Run
from console.jobs.rescue import rescue_first, rescue_outlook, rescue_run
from console.jobs.rescue.rescue_read import Rescued, rescue_plan
from console.rescue_files.rescue_directory import Room
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


def test_what_is_cut_off_is_read_first_without_being_asked_for(planned: Caller, tmp_path: Path) -> None:
    """Where to, how much and how long is said before; the journal has it in this order."""
    ended = planned("ktriage", "apply", "plan.json", *AGREED, *TAIL)
    assert ended.status == 0, ended
    (told,) = (line for line in ended.out.splitlines() if "Read first:" in line)
    (saved,) = (tmp_path / "state" / "ktriage").glob("*/rescues/*")
    assert (
        "500 offsets of 1 partition from broker 1, 48.8 KiB, about 1 s," in told and f"Into {saved} " in told
    )
    assert "(not with --no-rescue)" in told and ended.out.index(told) < ended.out.index("1 elected")
    assert f"next: ktriage restore {saved} --to-source --dry-run" in ended.err
    journal = planned("ktriage", "journal", *TAIL).out
    assert journal.index("Z rescue") < journal.index("Z elect")


def test_who_declines_the_rescue_is_told_what_it_means_and_the_journal_has_the_reason(
    planned: Caller, tmp_path: Path
) -> None:
    ended = planned("ktriage", "apply", "plan.json", "--no-rescue", *AGREED, *TAIL)
    assert ended.status == 0 and "next: ktriage verify plan.json" in ended.err, ended
    assert "Nothing is read first (--no-rescue): what is cut off of 1 partition is gone for good" in ended.out
    assert not list((tmp_path / "state" / "ktriage").glob("*/rescues"))
    journal = planned("ktriage", "journal", *TAIL).out.splitlines()
    note = next(n for n, row in enumerate(journal) if "Z not read before the elections: what they" in row)
    assert journal[note].endswith("cut off of 1 partition") and "  reason: a test" in journal[:note]
    assert "elections of 1 partition" in journal[note + 1], "a note has no result"


def test_a_rescue_that_has_no_room_is_refused_before_anything_is_asked_or_sent(
    planned: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rescue_outlook, "room_for", lambda _path, _branches: Room(2 << 30, 1 << 30))
    ended = planned("ktriage", "apply", "plan.json", *AGREED, *TAIL)
    assert ended.status == 2 and "needs about 2.0 GiB, and its disk has room for 1.0 GiB" in ended.err, ended
    assert (
        "nothing was sent. --rescue DIR names a directory on a larger disk; --no-rescue elects" in ended.err
    )
    assert not list((tmp_path / "state" / "ktriage").glob("*/rescues/*"))
    assert "Z elect" not in planned("ktriage", "journal", *TAIL).out
    assert planned("ktriage", "apply", "plan.json", "--no-rescue", *AGREED, *TAIL).status == 0


def test_where_nothing_can_be_read_nothing_is_made_and_nothing_is_asked_for_it(
    call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broker 3 is silent, and the two that answer hold the same: 2,000 losses without a bound."""
    monkeypatch.chdir(tmp_path)
    offline = ("--simulate", "offline-2000")
    planned = call("ktriage", "plan", "--strategy", "aggressive", "plan.json", *offline)
    assert planned.status == 0 and "2,000 to elect" in planned.out

    async def never(*_: object) -> None:
        raise AssertionError("a rescue of nothing asks")

    monkeypatch.setattr(rescue_outlook, "planned_branches", never)
    monkeypatch.setattr(rescue_first, "rescue_plan", never)
    ended = call("ktriage", "apply", "plan.json", *AGREED, *offline)
    assert ended.status == 0 and "2,000 elected" in ended.out and "next: ktriage verify" in ended.err, ended
    assert "before broker 3 is started, read its disk" in ended.out
    assert not list((tmp_path / "state" / "ktriage").glob("*/rescues"))


@pytest.mark.parametrize(
    "elects",
    [
        ("recover", "--all-offline-partitions", "--automated-recovery"),
        ("elect", "--election-type", "longest-log", "--strategy", "aggressive", "--topic", "payments"),
        ("elect", "--election-type", "designated", "--path-to-json-file", "leaders.json"),
        ("elect", "--election-type", "unclean", "--topic", "payments"),
    ],
    ids=lambda words: words[2],
)
def test_every_command_that_elects_reads_first_or_says_why_not(
    call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elects: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "leaders.json").write_text(
        '{"partitions": [{"topic": "payments", "partition": 0, "designatedLeader": 2}]}'
    )
    words = (*elects, *(("--partition", "0") if elects[-1] == "payments" else ()))
    refused = call("ktriage", *words, "--no-rescue", *TAIL)
    assert refused.status == 2 and "--no-rescue needs --reason TEXT" in refused.err
    ended = call("ktriage", *words, "--rescue", "saved", *TAIL)
    assert ended.status == 0, ended
    (manifest,) = (tmp_path / "saved").glob("*/*/manifest.json")
    offsets = 300 if "unclean" in words else 500  # Kafka takes broker 1, which stands first
    assert f"{offsets} offsets of 1 partition from broker" in ended.out + ended.err
    fields = json.loads(manifest.read_text())
    assert fields["whole"] and fields["endOffset"] - fields["startOffset"] == offsets
    assert " saved" in next(line for line in ended.err.splitlines() if line.startswith("next: "))


def test_a_recovery_leaves_out_what_it_could_not_read_and_says_how_to_go_on(
    call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unreadable(*_: object, **__: object) -> object:
        raise BackendError("broker-1: connection refused")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(SimulatorBackend, "read_batches", unreadable)
    monkeypatch.setattr(rescue_run, "PAUSES", ())
    words = ("recover", "--all-offline-partitions", "--automated-recovery", "--rescue", "saved")
    ended = call("ktriage", *words, *TAIL)
    assert ended.status == 1 and "nothing was sent" in ended.out, ended
    (line,) = (line for line in ended.err.splitlines() if line.startswith("not recovered: payments-0"))
    assert "its rescue is not whole" in line and "applying the plan again reads it again" in line
    assert "--elect-unrescued" in line and "--no-rescue" in line
    (go_on,) = (line for line in ended.err.splitlines() if line.startswith("next: "))
    assert " apply " in go_on and " --rescue saved " in go_on
    told = call("ktriage", *shlex.split(go_on)[2:], "--elect-unrescued", *AGREED)
    assert "1 elected" in told.out, told


def test_a_review_leads_to_the_rescue_that_was_begun(planned: Caller) -> None:
    review = planned("ktriage", "review", "plan.json")
    assert "next: ktriage apply plan.json --simulate stale-long-tail" in review.err
    assert planned("ktriage", "rescue", "read", "plan.json", "--to", "rescue", *TAIL).status == 0
    assert "--rescue rescue " in planned("ktriage", "review", "plan.json").err, (
        "it holds a rescue of this plan"
    )
    again = planned("ktriage", "plan", "--strategy", "aggressive", "other.json", *TAIL)
    assert again.status == 0
    assert "--rescue" not in planned("ktriage", "review", "other.json").err, "that one is of another plan"


def test_after_the_election_there_is_nothing_left_to_read(planned: Caller) -> None:
    assert planned("ktriage", "apply", "plan.json", *AGREED, *TAIL).status == 0
    ended = planned("ktriage", "rescue", "read", "plan.json", "--to", "saved", *TAIL)
    assert ended.status == 4 and "already online" in ended.err


@pytest.mark.parametrize("rate", ["0", "fast", "-1", "5 miles"])
def test_a_rate_that_cannot_be_read_is_one_line(planned: Caller, rate: str) -> None:
    ended = planned("ktriage", "rescue", "read", "plan.json", "--to", "saved", f"--rate={rate}", *TAIL)
    assert ended.status == 2 and "50MB" in ended.err
