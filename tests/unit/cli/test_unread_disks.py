"""On the stale long tail broker 3 is silent at the election: its disk is a point until it is read or waived."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from backends.base.answers import ClusterInfo
from backends.simulator.adapter import SimulatorBackend
from recovery.membership.quorum_health import QuorumHealth
from tests.unit.cli.command_process import Caller, command_line, environment, typing
from tests.unit.cli.stale_long_tail import AGREED, TAIL

FIRST = "before broker 3 is started, read its disk (ktriage rescue read"
PAGE = ("--since", "1h")


def points(planned: Caller) -> list[dict[str, Any]]:
    ended = planned("ktriage", "verify", "plan.json", *TAIL, "--output", "json")
    return list(json.loads(ended.out)["unreadDisks"])


@pytest.mark.long
def test_a_disk_that_was_read_is_no_point_any_more(elected: Caller) -> None:
    assert points(elected) == [
        {"broker": 3, "topic": "payments", "partition": 0, "state": "not started since"}
    ]
    for command in (
        ("verify", "plan.json"),
        ("journal",),
        ("status",),
        ("report", *PAGE),
        ("handover", *PAGE),
    ):
        ended = elected("ktriage", *command, *TAIL)
        told = (ended.out + ended.err).lower()
        sentences = (
            "before broker 3 is started, read its disk",
            "read the disk of broker 3 before it starts",
        )
        assert any(sentence in told for sentence in sentences), command
    assert elected("ktriage", "simulate", "disk", "stale-long-tail", "3", "--to", "disk-3").status == 0
    ended = elected("ktriage", "rescue", "read", "--to", "saved-3", "--from-disk", "disk-3/log-dir-0", *TAIL)
    assert ended.status == 0, ended
    assert points(elected) == []
    for command in (("verify", "plan.json"), ("journal",), ("status",), ("handover", *PAGE)):
        assert FIRST not in elected("ktriage", *command, *TAIL).out, command
    report = elected("ktriage", "report", *PAGE, *TAIL).out
    assert "The disk of broker 3 was read into saved-3: 1 partition" in report and FIRST not in report


def shown(planned: Caller, *words: str) -> str:
    ended = planned("ktriage", *words, *TAIL)
    return ended.out + ended.err


EVERYWHERE = (("status",), ("verify", "plan.json"), ("journal",), ("handover", *PAGE), ("report", *PAGE))


@pytest.mark.parametrize("up", [False, True], ids=["down", "up with its stray"])
def test_a_broker_whose_log_is_kept_may_be_started_and_its_stray_is_the_point(
    planned: Caller, monkeypatch: pytest.MonkeyPatch, up: bool
) -> None:
    applied = shown(planned, "apply", "plan.json", "--keep-log-of", "3", *AGREED)
    assert "start it, read the log" in applied and "before broker 3 is started" not in applied, applied
    asked = returns(planned, monkeypatch) if up else partial(shown, planned)
    now = (
        "roker 3 is up without a replica of payments-0"
        if up
        else "roker 3 has no replica of payments-0 any more"
    )
    for words in EVERYWHERE:
        told = asked(*words)
        assert "before broker 3" not in told.lower() and "read the disk" not in told, told
        assert (words == ("journal",) or now in told) and "--gone-for-good" not in told, told
    assert "keep-log of broker 3: 1 partition" in asked("journal")
    state = "set aside as -stray" if up else "not a replica any more"
    assert f'"state":"{state}"' in asked("verify", "plan.json", "--output", "json")


@pytest.mark.parametrize(("answer", "keeps"), [("payments keep", True), ("payments", False)])
def test_the_question_offers_to_keep_the_log_of_a_silent_broker(
    planned: Caller, answer: str, keeps: bool
) -> None:
    line = command_line("ktriage", "apply", "plan.json", "--reason", "a test", *TAIL)
    ended = typing(planned.home, line, answer)
    assert ended.status == 0 and "type 'payments keep' instead to keep the log of broker 3" in ended.err, (
        ended
    )
    assert ("when it starts it keeps its log" in ended.out) is keeps, ended
    assert ("no replica of payments-0" in shown(planned, "status")) is keeps


def test_who_is_up_has_no_log_to_keep_and_the_plan_can_be_applied_without_that(planned: Caller) -> None:
    told = shown(planned, "apply", "plan.json", "--keep-log-of", "1", *AGREED)
    assert (
        "broker 1 answers: it follows the new leader at once. Without --keep-log-of the partition is elected"
        in told
    )
    assert "next: ktriage apply plan.json --simulate" in told, told


def test_a_kept_log_that_was_waived_is_not_to_be_read_any_more_and_the_replica_can_be_assigned(
    planned: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown(planned, "apply", "plan.json", "--keep-log-of", "3", *AGREED)
    before = shown(planned, "handover", *PAGE)
    assert "rescue read --to DIR --from-disk LOG_DIR" in before
    assert "rescue waive" not in before, "nobody pastes away the warning that a disk was not read"
    shown(planned, "rescue", "waive", "--broker-id", "3", "--reason", "burned")
    told = shown(planned, "verify", "plan.json")
    assert "the log of broker 3 needs no reading any more: assign the replica again" in told, told
    assert "ktriage heal assign-again: when broker 3 is up" in told and "a log that is kept" not in told
    assert "next: ktriage heal" not in told, "broker 3 is down: nothing can be assigned to it"
    assert "heal assign-again" not in shown(planned, "handover", *PAGE)
    back = returns(planned, monkeypatch)
    assert "next: ktriage heal assign-again" in back("verify", "plan.json")
    assert "ktriage heal assign-again --simulate" in back("handover", *PAGE)


def test_a_broker_is_not_unregistered_without_a_word_of_the_log_that_it_keeps(planned: Caller) -> None:
    shown(planned, "apply", "plan.json", "--keep-log-of", "3", *AGREED)
    words = ("heal", "unregister", "--broker-id", "3", "--gone-for-good", "--dry-run")
    told = shown(planned, *words)
    assert "the disks of broker 3 were not read before the elections of payments-0" in told, told
    assert "payments-0 lost the replica on broker 3, so that its log is kept" in told, told
    document = json.loads(planned("ktriage", *words, *TAIL, "--output", "json").out)
    payments = [{"topic": "payments", "partition": 0}]
    assert (document["unreadDisks"], document["withoutReplica"]) == (payments, payments)


def test_verify_takes_the_rescue_that_the_journal_names(elected: Caller) -> None:
    assert "--rescue DIR" not in shown(elected, "verify", "plan.json")
    assert "Read and saved: 500 offsets" in shown(elected, "report", *PAGE)


def test_a_rescue_that_was_refused_is_no_open_point(planned: Caller) -> None:
    (planned.home / "full").mkdir()
    (planned.home / "full" / "file").touch()
    told = shown(planned, "apply", "plan.json", "--rescue", "full", *AGREED)
    assert "it is not empty and holds no rescue" in told
    assert "he rescue in" not in shown(planned, "handover", *PAGE)


def test_an_unclean_election_says_what_it_lost_and_whose_disk_is_to_be_read(planned: Caller) -> None:
    words = ("elect", "--election-type", "unclean", "--all-topic-partitions", *AGREED)
    told = shown(planned, *words)
    assert "300 or more, no upper limit known (300 NEWER than anything it has)" in told, told
    assert FIRST in told.partition("1 election: 1 elected")[2]


@pytest.mark.long
def test_an_apply_that_died_before_its_election_says_resume_first_and_nothing_against_it(
    planned: Caller,
) -> None:
    apply = ("apply", "plan.json", "--keep-log-of", "3", *AGREED, *TAIL)
    died = subprocess.run(
        [sys.executable, "-m", "tests.live.killed_command", "planned-elections", *apply],
        env=environment(planned.home),
        cwd=planned.home,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert died.returncode == -signal.SIGKILL, died
    for words in (("status",), ("handover", *PAGE)):
        told = shown(planned, *words)
        assert "Do not start broker 3 before ktriage resume has looked" in told
        assert "is cut off when it starts" not in told and "read the disk" not in told, told
        assert "Then: The logs differ." in told and "Do first: The" not in told, told
        assert "ktriage resume --simulate" in told
    assert "Do first: finish the run that was interrupted (ktriage resume)" in shown(planned, "status")
    assert "1 result not recorded, nobody leads now" in shown(planned, "report", *PAGE)
    assert [point["state"] for point in points(planned)] == ["nobody was elected"]
    assert shown(planned, "resume") and "resume" not in shown(planned, "status")


def test_a_disk_read_for_the_plan_before_the_election_is_no_point(planned: Caller) -> None:
    assert planned("ktriage", "simulate", "disk", "stale-long-tail", "3", "--to", "disk-3").status == 0
    words = ("rescue", "read", "plan.json", "--to", "saved", "--from-disk", "disk-3/log-dir-0")
    assert planned("ktriage", *words, *TAIL).status == 0
    assert planned("ktriage", "apply", "plan.json", "--rescue", "saved", *AGREED, *TAIL).status == 0
    assert points(planned) == []


def test_a_disk_that_nobody_will_read_is_waived_with_a_reason(elected: Caller) -> None:
    refused = elected("ktriage", "rescue", "waive", "--broker-id", "2", "--reason", "x", *TAIL)
    assert refused.status == 2 and "there is nothing to waive" in refused.err, refused
    pasted = elected("ktriage", "rescue", "waive", "--broker-id", "3", "--reason", "WHY", *TAIL)
    assert pasted.status == 2 and "say why in your own words" in pasted.err and points(elected) != []
    words = ("rescue", "waive", "--broker-id", "3", "--reason", "its disk burned")
    ended = elected("ktriage", *words, *TAIL)
    assert ended.status == 0 and "the disk of broker 3 is not to be read any more" in ended.out, ended
    assert points(elected) == []
    report = elected("ktriage", "report", *PAGE, *TAIL).out
    assert "The disk of broker 3 is not to be read any more: 1 partition" in report
    assert "its disk burned" in report


def returns(call: Caller, monkeypatch: pytest.MonkeyPatch, *, away_again: bool = False) -> Callable[..., str]:
    """What each command says after the return of broker 3."""
    opened = SimulatorBackend.open
    (state,) = (call.home / "state" / "ktriage" / "simulations").glob("*.json")
    before = state.read_bytes()

    async def after_its_return(cluster: SimulatorBackend) -> ClusterInfo:
        await opened(cluster)
        world = cluster.simulation.world
        world.start_broker(3)
        await cluster.advance(30)
        if away_again:
            world.kill_broker(3)
            await cluster.advance(30)
        return await cluster.cluster()

    monkeypatch.setattr(SimulatorBackend, "open", after_its_return)

    def asked(*words: str) -> str:
        state.write_bytes(before)  # the return is no event that a run replays
        return shown(call, *words)

    return asked


def test_of_a_broker_that_fetches_the_metadata_quorum_status_does_not_say_before_it_is_started(
    elected: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert FIRST in shown(elected, "quorum", "status")
    monkeypatch.setattr(QuorumHealth, "running", frozenset({1, 3}))
    assert FIRST not in shown(elected, "quorum", "status")


@pytest.mark.long
@pytest.mark.parametrize("away_again", [False, True], ids=["up", "killed again"])
def test_a_broker_that_came_back_unread_is_told_as_such(
    elected: Caller, monkeypatch: pytest.MonkeyPatch, away_again: bool
) -> None:
    """Also where it is down again: the metadata log shows that it registered in between."""
    asked = returns(elected, monkeypatch, away_again=away_again)

    assert '"state":"came back unread"' in asked("verify", "plan.json", "--output", "json")
    gone = "roker 3 came back unread: what it alone held of payments-0 is gone"
    assert gone in asked("verify", "plan.json")
    assert gone in asked("report", *PAGE) and gone in asked("handover", *PAGE)
    assert "before broker 3" not in asked("status")
