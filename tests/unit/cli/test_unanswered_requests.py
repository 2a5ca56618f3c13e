"""Elections and orders that were sent and not answered: what resume waits for, and what it reverts when."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

import pytest

from backends.base.answers import Partitions, Reassignment
from backends.base.errors import Unreachable
from console.change import change
from console.journal.journal import Journal, JournalRun
from console.journal.run_records import EntryBegun, read_runs
from console.journal.unfinished_entries import unfinished
from recovery import requests_in_doubt
from recovery.assignment_order import WrittenOrder
from recovery.requests_in_doubt import ELECTION_ALIVE_FOR
from tests.command_server import Ended
from tests.unit.cli.command_process import Caller, environment
from tests.unit.cli.conftest import SteadyTime
from tests.unit.cli.memory_backend import CLUSTER_ID, MemoryBackend, cluster_of, offline
from tests.unit.cli.planned_orders import ANY, sent, tp
from tests.unit.cli.test_unfinished_runs import reordered


def left_in_doubt(
    seconds_ago: float, ended: Mapping[str, object] = MappingProxyType({}), order: WrittenOrder | None = None
) -> None:
    """A run that wrote an order, sent an election and had no answer, so many seconds ago."""
    at = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    run = JournalRun("killed", ("ktriage", "apply"), "ada", "here", 1, "", "1")
    rows = (order or reordered(0),)
    with Journal.open(CLUSTER_ID, run, lambda: at) as journal:
        journal.after(journal.before("reorder", {"rows": rows}), {"applied": [tp(0)]})
        entry = journal.before("elect", {"rows": rows})
        if ended:
            journal.after(entry, ended)


def left_in_doubt_without_an_order(seconds_ago: float) -> None:
    """The same where the chosen replica stood first already."""
    at = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    run = JournalRun("killed", ("ktriage", "apply"), "ada", "here", 1, "", "1")
    with Journal.open(CLUSTER_ID, run, lambda: at) as journal:
        journal.before("elect", {"rows": (reordered(0),)})


class LeaderLater(MemoryBackend):
    """Somebody leads every partition from the fourth reading of the states on."""

    readings = 0

    def at_reading(self, number: int) -> None:
        """Nothing happens."""

    async def partitions(self, topics: Sequence[str] | None = None) -> Partitions:
        if topics is None:  # all of them are read first, to see whether it is the cluster of the journal
            return await super().partitions(topics)
        self.readings += 1
        self.at_reading(self.readings)
        if self.readings >= 4:
            self.states = {tp: state._replace(leader=2, leader_epoch=5) for tp, state in self.states.items()}
        return await super().partitions(topics)


class SilentForAMoment(LeaderLater):
    """No broker answers the third reading."""

    def at_reading(self, number: int) -> None:
        assert self.reverted == []
        if number == 3:
            raise Unreachable("broker 1 does not answer")


@pytest.mark.parametrize("ended", [{}, {"unknown": {tp(0): "no answer"}}])
def test_while_an_election_may_still_be_carried_out_the_chosen_one_stays_first(
    call: Caller, ended: dict[str, object]
) -> None:
    backend = cluster_of(1)
    backend.states[tp(0)] = offline("orders", 0, (2, 1, 3))
    left_in_doubt(30, ended)
    recover = ("kafka-unclean-recovery", *ANY, "--all-offline-partitions", "--automated-recovery")
    assert call.on(backend)(*recover).status == 1, "nothing else is sent meanwhile"
    assert sent(backend) == 0
    assert backend.reverted == []


def interrupt_waiting(call: Caller, *words: str) -> Ended:
    """Runs ``resume`` on three partitions without a leader in the order 1, 2, 3; sends SIGINT while it waits."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.unit.cli.stoppable_jobs", "never", "resume", *ANY, *words],
        env=environment(call.home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        err = "".join(until(process.stderr, "waiting for it"))
        process.send_signal(signal.SIGINT)
        out, more = process.communicate(timeout=60)
    return Ended(process.returncode, out, err + more)


def until(lines: Iterable[str], what: str) -> Iterator[str]:
    for line in lines:
        yield line
        if what in line:
            return
    raise AssertionError(f"{what!r} was not said")


@pytest.mark.parametrize("ended", [{}, {"unknown": {tp(0): "no answer"}}])
def test_resume_waits_and_control_c_says_what_to_run_later(call: Caller, ended: dict[str, object]) -> None:
    left_in_doubt(30, ended, WrittenOrder(tp(0), "orders-id", (2, 1, 3), (1, 2, 3)))
    stopped = interrupt_waiting(call)
    assert stopped.status == 128 + signal.SIGINT, stopped
    assert "may be carried out until" in stopped.err and "broker 1 stays first until then" in stopped.err
    assert stopped.err.splitlines()[-1].strip() == "ktriage resume --bootstrap-server kafka:9092"
    assert "1 still open" in stopped.out
    assert len(unfinished(CLUSTER_ID).orders) == 1
    assert actions() == ["reorder", "elect"]


def actions() -> list[str]:
    """What the journal's runs were about to send, in order."""
    events = (event for run in read_runs(CLUSTER_ID) for event in run.events)
    return [event.action for event in events if isinstance(event, EntryBegun)]


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("kind", [LeaderLater, SilentForAMoment])
def test_resume_waits_until_somebody_leads_also_where_no_broker_answers_for_a_moment(
    call: Caller, kind: type[LeaderLater]
) -> None:
    backend = kind({tp(0): offline("orders", 0, (2, 1, 3))})
    left_in_doubt(30)
    ended = call.on(backend)("ktriage", "resume", *ANY)
    assert ended.status == 0, ended
    assert backend.readings == 4
    assert "Ctrl-C ends the wait" in ended.err
    assert backend.states[tp(0)].replicas == (1, 2, 3)
    assert unfinished(CLUSTER_ID).nothing


class WrittenLate(LeaderLater):
    """The unanswered write is carried out between the first and the second reading."""

    def at_reading(self, number: int) -> None:
        if number == 2:
            self.states[tp(0)] = offline("orders", 0, (2, 1, 3))


@pytest.mark.usefixtures("no_pauses", "short_doubt")
def test_resume_reverts_the_order_also_where_the_unanswered_write_comes_while_it_waits(
    call: Caller,
) -> None:
    backend = WrittenLate(cluster_of(1).states)
    written(0.0, UNANSWERED, reverted=1)
    ended = call.on(backend)("ktriage", "resume", *ANY)
    assert "1 partition (orders-0): a request of the earlier run may still be carried out" in ended.err
    assert ended.status == 0, ended
    assert backend.readings == 2
    assert backend.states[tp(0)].replicas == (1, 2, 3)
    assert unfinished(CLUSTER_ID).nothing


def written(seconds_ago: float, *ends: Mapping[str, object] | None, reverted: int = 0) -> None:
    """A killed run that wrote an order once for each of the ``ends``; None: killed before it was answered. The
    first ``reverted`` were reverted.
    """
    at = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    run = JournalRun("unanswered", ("ktriage", "apply"), "ada", "here", 1, "", "1")
    rows = (reordered(0),)
    with Journal.open(CLUSTER_ID, run, lambda: at) as journal:
        for number, end in enumerate(ends):
            entry = journal.before("reorder", {"rows": rows})
            if end is not None:
                journal.after(entry, end)
            if number < reverted:
                journal.after(journal.before("revert", {"rows": rows}), {"applied": [tp(0)]})


UNANSWERED: Mapping[str, object] = {"unknown": {tp(0): "no answer"}}
ANSWERED: Mapping[str, object] = {"applied": [tp(0)]}


def test_the_next_command_says_until_when_a_request_without_an_answer_may_be_carried_out(
    call: Caller,
) -> None:
    backend = cluster_of(1)
    sent_at = datetime.now(UTC)
    written(0.0, UNANSWERED, reverted=1)
    held = call.on(backend)(
        "kafka-unclean-recovery", *ANY, "--all-offline-partitions", "--automated-recovery"
    )
    told = re.search(r"may be carried out until (\d\d:\d\d:\d\d) UTC \((\S+)\)", held.err)
    assert held.status == 1 and told is not None, held.err
    until = datetime.fromisoformat(f"{told[2]}T{told[1]}+00:00")
    assert timedelta(seconds=149) <= until - sent_at <= timedelta(seconds=200)


@pytest.mark.parametrize("reordered_first", [True, False])
def test_once_that_time_has_passed_a_command_that_only_reads_says_so(
    call: Caller, *, reordered_first: bool
) -> None:
    """Until ``resume`` has run: what became of the request is not known before."""
    if reordered_first:
        left_in_doubt(3600, {"unknown": {tp(0): "no answer"}})
    else:
        left_in_doubt_without_an_order(3600)
    for command in ("status", "journal"):
        ended = call.on(cluster_of(1))("ktriage", command, *ANY)
        assert "that time has passed, and resume checks what became of" in ended.err, ended
        assert "could be carried out until" in ended.err and "may be carried out" not in ended.err
        assert "an earlier run (ada@here" in ended.err, "in a shared state directory it may be a colleague's"


@pytest.mark.usefixtures("no_pauses", "short_doubt")
def test_killed_before_the_answer_to_the_order_resume_waits_for_the_write(call: Caller) -> None:
    backend = WrittenLate(cluster_of(1).states)
    written(0.0, None)
    ended = call.on(backend)("ktriage", "resume", *ANY)
    assert "1 partition (orders-0): a request of the earlier run may still be carried out" in ended.err
    assert ended.status == 0, ended
    assert backend.reverted == [reordered(0)], "its own order was not written meanwhile"
    assert backend.states[tp(0)].replicas == (1, 2, 3)
    assert unfinished(CLUSTER_ID).nothing


class NeverLed(MemoryBackend):
    """Reads its partitions at most so often: a whole wait needs some dozens of readings."""

    readings = 0

    async def partitions(self, topics: Sequence[str] | None = None) -> Partitions:
        self.readings += topics is not None
        assert self.readings < 1_000, "the wait goes on by the clock that was set back"
        return await super().partitions(topics)


@pytest.mark.usefixtures("no_pauses", "short_doubt")
@pytest.mark.parametrize("request_sent", ["election", "order"])
def test_a_clock_that_was_set_back_since_the_run_does_not_make_the_wait_longer(
    call: Caller, request_sent: str
) -> None:
    """Its requests seem to have been sent in an hour."""
    backend = NeverLed(cluster_of(1).states)
    if request_sent == "election":
        backend.states[tp(0)] = offline("orders", 0, (2, 1, 3))
        left_in_doubt(-3600)
    else:
        written(-3600, UNANSWERED, reverted=1)
    ended = call.on(backend)("ktriage", "resume", *ANY)
    assert ended.status == 0, ended
    assert "waiting for it" in ended.err
    assert backend.states[tp(0)].replicas == (1, 2, 3)
    assert unfinished(CLUSTER_ID).nothing


@pytest.mark.usefixtures("no_pauses", "short_doubt")
@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_set_during_the_wait_changes_nothing(
    call: Caller, monkeypatch: pytest.MonkeyPatch, short_doubt: SteadyTime, hours: int
) -> None:
    """Set forward, it does not end the wait while the election may still come."""
    backend = NeverLed({tp(0): offline("orders", 0, (2, 1, 3))})

    def now() -> datetime:
        return datetime.now(UTC) + timedelta(hours=hours if backend.readings else 0)

    monkeypatch.setattr(change, "now", now)
    left_in_doubt(0.0)
    ended = call.on(backend)("ktriage", "resume", *ANY)
    assert ended.status == 0, ended
    assert short_doubt.seconds >= ELECTION_ALIVE_FOR
    assert backend.states[tp(0)].replicas == (1, 2, 3)
    assert unfinished(CLUSTER_ID).nothing


def test_killed_before_the_answer_resume_does_not_wait_where_the_written_order_stands(call: Caller) -> None:
    backend = cluster_of(1)
    written(0.0, None)
    backend.states[tp(0)] = offline("orders", 0, (2, 1, 3))
    ended = call.on(backend)("ktriage", "resume", *ANY)
    assert ended.status == 0 and "waiting" not in ended.err
    assert backend.states[tp(0)].replicas == (1, 2, 3)
    assert unfinished(CLUSTER_ID).nothing


@pytest.mark.usefixtures("no_pauses", "short_doubt")
@pytest.mark.parametrize("last", [ANSWERED, UNANSWERED, None])
def test_the_order_that_stands_may_be_another_write_than_the_unanswered_one(
    call: Caller, last: Mapping[str, object] | None
) -> None:
    """Killed in the second attempt; the first attempt's write comes once resume has reverted the second's."""

    class FirstComesLate(MemoryBackend):
        readings = 0

        async def partitions(self, topics: Sequence[str] | None = None) -> Partitions:
            self.readings += topics is not None
            if self.readings == 3:
                self.states[tp(0)] = offline("orders", 0, (2, 1, 3))
            return await super().partitions(topics)

    backend = FirstComesLate({tp(0): offline("orders", 0, (2, 1, 3))})
    written(0.0, UNANSWERED, last, reverted=1)
    ended = call.on(backend)("ktriage", "resume", *ANY)
    assert ended.status == 0, ended
    assert "waiting for it" in ended.err
    assert backend.readings > 3 and backend.states[tp(0)].replicas == (1, 2, 3)
    assert unfinished(CLUSTER_ID).nothing


@pytest.mark.usefixtures("no_pauses")
def test_a_wait_that_ends_with_a_leader_does_not_end_that_for_an_unanswered_write(
    call: Caller, short_doubt: SteadyTime
) -> None:
    """The election in doubt keeps the second order first; the first attempt's write is in doubt too."""
    backend = LeaderLater({tp(0): offline("orders", 0, (2, 1, 3))})
    written(0.0, UNANSWERED, reverted=1)
    left_in_doubt(0.0)
    ended = call.on(backend)("ktriage", "resume", *ANY)
    assert ended.status == 0, ended
    assert short_doubt.seconds >= ELECTION_ALIVE_FOR
    assert unfinished(CLUSTER_ID).nothing


@pytest.mark.usefixtures("no_pauses", "short_doubt")
def test_what_somebody_else_does_meanwhile_is_not_closed_before_the_write_is_dead(call: Caller) -> None:
    """The late write would end their reassignment; then the order is still the run's to revert."""

    class EndsTheirs(MemoryBackend):
        readings = 0

        async def partitions(self, topics: Sequence[str] | None = None) -> Partitions:
            self.readings += topics is not None
            if self.readings == 2:
                self.moving = ()
                self.states[tp(0)] = offline("orders", 0, (2, 1, 3))
            return await super().partitions(topics)

    backend = EndsTheirs(cluster_of(1).states, moving=(Reassignment(tp(0), (1, 2, 3), (), (3,)),))
    written(0.0, UNANSWERED, reverted=1)
    ended = call.on(backend)("ktriage", "resume", *ANY)
    assert ended.status == 0, ended
    assert backend.states[tp(0)].replicas == (1, 2, 3)
    assert unfinished(CLUSTER_ID).nothing


def test_an_unanswered_write_is_forgotten_once_it_is_certainly_dead(
    call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    call.on(cluster_of(1))
    written(30, UNANSWERED, reverted=1)
    assert [order.written.tp for order in unfinished(CLUSTER_ID).orders] == [tp(0)]
    monkeypatch.setattr(requests_in_doubt, "ELECTION_ALIVE_FOR", 0.0)
    assert unfinished(CLUSTER_ID).nothing, "the order was reverted when no write could come any more"


def test_once_it_leads_the_order_is_put_back(call: Caller) -> None:
    backend = cluster_of(1)
    backend.states[tp(0)] = offline("orders", 0, (2, 1, 3))._replace(leader=2, leader_epoch=5)
    left_in_doubt(30)
    ended = call.on(backend)("ktriage", "resume", *ANY)
    assert ended.status == 0
    assert "waiting" not in ended.err
    assert backend.states[tp(0)].replicas == (1, 2, 3)


@pytest.mark.parametrize(
    ("seconds_ago", "ended"),
    [(600, {}), (600, {"unknown": {tp(0): "no answer"}}), (30, {"refused": {tp(0): "not sent"}})],
)
def test_once_it_is_certainly_dead_the_order_is_put_back(
    call: Caller, seconds_ago: float, ended: dict[str, object]
) -> None:
    backend = cluster_of(1)
    backend.states[tp(0)] = offline("orders", 0, (2, 1, 3))
    left_in_doubt(seconds_ago, ended)
    assert call.on(backend)("ktriage", "resume", *ANY).status == 0
    assert backend.states[tp(0)].replicas == (1, 2, 3)


def test_resume_does_not_wait_for_an_election_whose_order_somebody_put_back(call: Caller) -> None:
    backend = cluster_of(1)
    left_in_doubt(30)
    ended = call.on(backend)("ktriage", "resume", *ANY)
    assert ended.status == 0 and "waiting" not in ended.err, ended
    assert unfinished(CLUSTER_ID).nothing
