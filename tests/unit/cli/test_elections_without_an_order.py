"""Elections that were not answered and needed no new order: what is said of them, and how long resume waits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from backends.base.answers import Election, Outcome
from backends.base.errors import ElectionInDoubt
from backends.base.protocol import Recorder
from console.change.unfinished_orders import settle_first
from console.journal.journal import Journal, JournalRun
from console.journal.unfinished_entries import unfinished
from console.signals import StopRequest
from recovery.assignment_order import WrittenOrder
from recovery.model import TopicPartition
from tests.unit.cli.command_process import Caller
from tests.unit.cli.memory_backend import CLUSTER_ID, MemoryBackend, offline
from tests.unit.cli.planned_orders import ANY, sent, tp
from tests.unit.cli.test_unanswered_requests import LeaderLater, NeverLed
from tests.unit.cli.test_unfinished_runs import reordered


def election_in_doubt(seconds_ago: float, *, killed: bool = False) -> None:
    """A run whose election was not answered, and whose chosen replica stood first already. ``killed``: before it
    could record that.
    """
    at = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    run = JournalRun("killed", ("ktriage", "apply"), "ada", "here", 1, "", "1")
    rows = (WrittenOrder(tp(0), "orders-id", (2, 1, 3), (2, 1, 3)),)
    with Journal.open(CLUSTER_ID, run, lambda: at) as journal:
        entry = journal.before("elect", {"rows": rows})
        if not killed:
            journal.after(entry, {"unknown": {tp(0): "no answer"}})


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("killed", [False, True])
def test_resume_waits_for_an_election_that_needed_no_new_order_and_writes_nothing(
    call: Caller, killed: bool
) -> None:
    backend = LeaderLater({tp(0): offline("orders", 0, (2, 1, 3))})
    election_in_doubt(30, killed=killed)
    ended = call.on(backend)("ktriage", "resume", *ANY)
    assert "1 partition (orders-0): a request of the earlier run may still be carried out" in ended.err
    assert (ended.status, backend.readings, backend.reverted) == (0, 4, [])
    assert "led by 2: the election of 2 may have been carried out" in ended.out
    assert unfinished(CLUSTER_ID).nothing


def test_an_election_in_doubt_is_named_and_holds_up_no_other_recovery(call: Caller) -> None:
    backend = MemoryBackend({tp(0): offline("orders", 0, (2, 1, 3)), tp(1): offline("orders", 1)})
    election_in_doubt(30)
    shown = call.on(backend)("ktriage", "status", *ANY)
    assert "no answer to the election of 1 partition: orders-0" in shown.err
    recover = ("kafka-unclean-recovery", *ANY, "--all-offline-partitions", "--automated-recovery")
    call.on(backend)(*recover)
    assert sent(backend) > 0


@pytest.mark.parametrize(("seconds_ago", "left"), [(600, 0), (30, 1)], ids=["dead", "alive"])
async def test_a_dead_election_is_closed_where_the_next_run_reverts_an_order_first(
    call: Caller, seconds_ago: float, left: int
) -> None:
    backend = MemoryBackend({tp(0): offline("orders", 0), tp(1): offline("orders", 1, (2, 1, 3))})
    call.on(backend)
    election_in_doubt(seconds_ago, killed=True)
    run = JournalRun("later", ("ktriage", "apply"), "ada", "here", 1, "", "1")
    with Journal.open(CLUSTER_ID, run, lambda: datetime.now(UTC)) as journal:
        journal.after(journal.before("reorder", {"rows": (reordered(1),)}), {"applied": [tp(1)]})
        found = unfinished(CLUSTER_ID)
        settled = await settle_first(backend, found, journal, StopRequest(), put_back=True, resume="resume")
        assert [row.tp for row in settled.rows] == [tp(1)]
        assert len(unfinished(CLUSTER_ID).elections) == left and not unfinished(CLUSTER_ID).orders


class Silent(MemoryBackend):
    """Kafka's own elections are not answered."""

    async def elect(
        self, preferred: bool, partitions: Sequence[TopicPartition] | None, recorder: Recorder
    ) -> tuple[Election, ...]:
        kind = "preferred" if preferred else "unclean"
        named = "all" if partitions is None else list(partitions)
        entry = recorder.before("elect", {"election": kind, "partitions": named})
        recorder.after(entry, {"unknown": dict.fromkeys(partitions or (), "closed"), "error": "closed"})
        raise ElectionInDoubt("closed; the election may still be carried out")


ONE = ("--topic", "orders", "--partition", "0")
EVERY = ("--all-topic-partitions",)


def elect(call: Caller, backend: MemoryBackend, kind: str, *words: str) -> str:
    ended = call.on(backend)("kafka-elect-leaders", *ANY, "--election-type", kind, *words)
    assert ended.status != 0, ended
    return ended.err


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("words", [ONE, (*EVERY, "--yes")], ids=["named", "all"])
def test_resume_waits_for_an_unclean_election_of_kafkas_own_kind(
    call: Caller, words: tuple[str, ...]
) -> None:
    first = Silent({tp(0): offline("orders", 0), tp(1): offline("orders", 1)._replace(leader=1)})
    err = elect(call, first, "unclean", *words)
    assert "ktriage resume --bootstrap-server kafka:9092 waits for it, and says who leads then" in err
    assert [(one.written.tp, one.kind) for one in unfinished(CLUSTER_ID).elections] == [(tp(0), "unclean")]

    backend = LeaderLater({tp(0): offline("orders", 0)})
    shown = call.on(backend)("ktriage", "status", *ANY)
    assert "no answer to the election of 1 partition: orders-0" in shown.err
    assert "elect of 1 partition, unclean" in call("ktriage", "journal", *ANY).out
    ended = call("ktriage", "resume", *ANY)
    assert "1 partition (orders-0): a request of the earlier run may still be carried out" in ended.err
    assert "order is reverted" not in ended.err, "nothing was written"
    assert "led by 2: the unclean election may have been carried out" in ended.out
    assert ended.status == 0 and backend.reverted == []
    assert unfinished(CLUSTER_ID).nothing


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("words", [ONE, EVERY], ids=["named", "all"])
def test_resume_waits_for_a_preferred_election_until_the_preferred_replica_leads(
    call: Caller, words: tuple[str, ...]
) -> None:
    """orders-1 is led by its preferred replica: it needs no election."""
    led = offline("orders", 0, (2, 1, 3))._replace(leader=1)
    elect(call, Silent({tp(0): led, tp(1): offline("orders", 1)._replace(leader=1)}), "preferred", *words)
    backend = LeaderLater({tp(0): led, tp(1): led._replace(partition=1)})
    ended = call.on(backend)("ktriage", "resume", *ANY)
    assert (ended.status, backend.readings, backend.reverted) == (0, 4, [])
    assert (
        "orders-0" in ended.out and "led by 2: the preferred election may have been carried out" in ended.out
    )
    assert "orders-1" not in ended.out
    assert unfinished(CLUSTER_ID).nothing


@pytest.mark.usefixtures("no_pauses", "short_doubt")
def test_resume_says_that_a_dead_election_elected_nobody(call: Caller) -> None:
    backend = NeverLed({tp(0): offline("orders", 0)})
    elect(call, Silent(backend.states), "unclean", *ONE)
    ended = call.on(backend)("ktriage", "resume", *ANY)
    assert ended.status == 0 and backend.readings > 1
    assert "nobody leads, and the election can no longer be carried out" in ended.out
    assert unfinished(CLUSTER_ID).nothing


class TimedOut(MemoryBackend):
    """The controller did not carry out the preferred election of the partition in time."""

    async def elect(
        self, preferred: bool, partitions: Sequence[TopicPartition] | None, recorder: Recorder
    ) -> tuple[Election, ...]:
        assert preferred
        entry = recorder.before("elect", {"election": "preferred", "partitions": list(partitions or ())})
        recorder.after(entry, {"applied": [], "refused": {}, "unknown": {tp(0): "REQUEST_TIMED_OUT"}})
        return (Election(tp(0), Outcome.FAILED, 1, 4, "REQUEST_TIMED_OUT", in_doubt=True),)


def test_a_partition_whose_election_timed_out_at_the_controller_is_left_to_resume(call: Caller) -> None:
    backend = TimedOut({tp(0): offline("orders", 0, (2, 1, 3))._replace(leader=1)})
    ended = call.on(backend)("ktriage", "elect", *ANY, "--election-type", "preferred", *ONE)
    assert ended.status == 1
    assert ended.err.splitlines()[-1] == "next: ktriage resume --bootstrap-server kafka:9092"
    assert [one.written.tp for one in unfinished(CLUSTER_ID).elections] == [tp(0)]
    told = json.loads(
        call("ktriage", "elect", *ANY, "--election-type", "preferred", *ONE, "--output", "json").out
    )
    assert [one["inDoubt"] for one in told["elections"]] == [True]


def test_of_very_many_partitions_the_first_are_listed_and_the_others_counted(call: Caller) -> None:
    """The next command must not scroll away below thousands of lines."""
    led = {tp(n): offline("orders", n)._replace(leader=2, leader_epoch=5) for n in range(50)}
    elect(call, Silent({one: offline(*one) for one in led}), "unclean", *EVERY, "--yes")
    ended = call.on(MemoryBackend(led))("ktriage", "resume", *ANY)
    assert ended.status == 0 and ended.out.count("the unclean election may have been carried out") == 20
    assert ended.out.splitlines()[-1] == "… and 30 more (--output json shows all)"
    assert unfinished(CLUSTER_ID).nothing
