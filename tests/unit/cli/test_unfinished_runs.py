"""What an earlier run left half done, or is still doing: the next one is held back until that is finished."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from backends.base.answers import Election, Outcome, Reassignment
from backends.base.protocol import Recorder
from console.jobs.heal import keep_logs
from console.journal.change_kinds import KEEP_LOG
from console.journal.journal import Journal, JournalRun
from console.journal.planned_elections import PLANNED
from console.journal.run_records import read_runs
from console.journal.unfinished_entries import unfinished
from recovery.assignment_order import WrittenOrder
from recovery.membership.quorum import Quorum, QuorumReplica
from recovery.membership.voters import ReplicaKey, Voter, VoterSet
from recovery.model import Unknown, Why
from tests.unit.cli.command_process import Caller, typing
from tests.unit.cli.memory_backend import CLUSTER_ID, MemoryBackend, cluster_of, offline
from tests.unit.cli.planned_orders import AGREED, ANY, planned, sent, tp


def interrupted(
    rows: tuple[WrittenOrder, ...],
    plan: str = "",
    name: str = "killed",
    keeps: Sequence[dict[str, object]] = (),
    directories: Sequence[str] = (),
) -> None:
    """What a run that was killed between reorder and revert leaves in the journal."""
    run = JournalRun(name, ("ktriage", "apply"), "ada", "here", 1, "", "1", directories)
    with Journal.open(CLUSTER_ID, run, lambda: datetime(2026, 1, 1, tzinfo=UTC)) as journal:
        if keeps:
            journal.before(KEEP_LOG, {"planId": "", "moves": keeps})
        if plan:
            journal.before(PLANNED, {"file": plan, "elections": {}})
        entry = journal.before("reorder", {"rows": rows})
        journal.after(entry, {"applied": [row.tp for row in rows]})


def reordered(partition: int) -> WrittenOrder:
    return WrittenOrder(tp(partition), "orders-id", (1, 2, 3), (2, 1, 3))


def test_an_unfinished_run_holds_the_next_one_back_until_it_is_finished(call: Caller) -> None:
    backend = cluster_of(4)
    interrupted(tuple(reordered(number) for number in range(4)))
    backend.states[tp(0)] = offline("orders", 0, (2, 1, 3))
    backend.states[tp(1)] = offline("orders", 1, (3, 1, 2))
    del backend.states[tp(2)]
    recover = ("kafka-unclean-recovery", *ANY, "--all-offline-partitions", "--automated-recovery")
    held = call.on(backend)(*recover)
    assert held.status == 1
    assert "may have left 4 assignments in the order of an election" in held.err
    assert "ktriage resume --bootstrap-server kafka:9092" in held.err
    assert sent(backend) == 0

    finished = call("ktriage", "resume", *ANY, "--output", "json")
    assert finished.status == 1, "somebody else's change and a deleted topic are told"
    told = {row["partition"]: row["order"] for row in json.loads(finished.out)["assignments"]}
    assert told == {
        0: "reverted",
        1: "changed by somebody else",
        2: "changed by somebody else",
        3: "in its own order already",
    }
    # What the killed run had asked for may come after the look: the fourth is written too, and nobody else's.
    assert {row.tp for row in backend.reverted} == {tp(0), tp(3)}
    assert backend.states[tp(0)].replicas == (1, 2, 3)

    assert unfinished(CLUSTER_ID).nothing
    assert call("ktriage", "resume", *ANY).status == 0
    assert call(*recover).status == 0


def test_after_a_killed_apply_the_next_command_elects_the_rest_of_its_plan(call: Caller) -> None:
    backend = cluster_of(2)
    plan = planned(call, backend)
    interrupted((reordered(0),), str(call.home / plan))
    backend.states[tp(0)] = offline("orders", 0, (2, 1, 3))
    finished = call("ktriage", "resume", *ANY)
    assert finished.status == 0
    assert f"next: ktriage apply {call.home / plan}" in finished.err
    assert "next: ktriage status" in call("ktriage", "resume", *ANY).err, (
        "what is finished is not named again"
    )


@pytest.mark.parametrize(("kept", "words"), [(3, " --keep-log-of 3"), (2, "")])
def test_the_rest_of_a_killed_apply_keeps_the_logs_that_it_was_to_keep(
    call: Caller, kept: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broker 3 is down still, and 2 is up again: its log cannot be kept any more."""
    monkeypatch.setattr(MemoryBackend, "replica_mover", lambda _: None)  # nobody leads, so nothing is moved
    monkeypatch.setattr(keep_logs, "FIRST_PAUSE", 0.001)
    backend = cluster_of(2)
    plan = planned(call, backend)
    backend.logs = {broker: known for broker, known in backend.logs.items() if broker != 3}
    after = [broker for broker in (1, 2, 3) if broker != kept]
    keep = {"topic": "orders", "partition": 0, "topicId": "orders-id", "before": [1, 2, 3], "after": after}
    interrupted((reordered(0),), str(call.home / plan), keeps=[{**keep, "bytes": 1, "leaderEpoch": 4}])
    backend.states[tp(0)] = offline("orders", 0, (2, 1, 3))
    ended = call("ktriage", "resume", *ANY)
    assert f"next: ktriage apply {call.home / plan}{words} --bootstrap-server" in ended.err, ended


def test_no_broker_is_taken_out_while_the_order_of_its_election_stands(
    call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keep_logs, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(MemoryBackend, "replica_mover", lambda _: pytest.fail("a replica is moved"))
    backend = cluster_of(1)
    backend.moving = Unknown(Why.NOT_ALLOWED, "needs ALTER on the cluster")
    keep = {"topic": "orders", "partition": 0, "topicId": "orders-id", "before": [1, 2, 3], "after": [1, 2]}
    interrupted((reordered(0),), keeps=[{**keep, "bytes": 1, "leaderEpoch": 4}])
    backend.states[tp(0)] = offline("orders", 0, (2, 1, 3))
    ended = call.on(backend)("ktriage", "resume", *ANY)
    assert ended.status == 1
    assert "next: ktriage resume" in ended.err
    assert unfinished(CLUSTER_ID).of(KEEP_LOG)


def test_the_journal_tells_why_an_order_was_reverted(call: Caller) -> None:
    backend = cluster_of(1)
    interrupted((reordered(0),))
    backend.states[tp(0)] = offline("orders", 0, (2, 1, 3))
    assert call.on(backend)("ktriage", "resume", *ANY, "--reason", "incident 4711").status == 0
    assert read_runs(CLUSTER_ID)[-1].header["reason"] == "incident 4711"


def test_a_plan_whose_partitions_all_have_a_leader_is_verified_and_not_applied_again(call: Caller) -> None:
    backend = cluster_of(2)
    plan = planned(call, backend)
    interrupted((reordered(0),), str(call.home / plan))
    for number, order in ((0, (2, 1, 3)), (1, (1, 2, 3))):
        backend.states[tp(number)] = offline("orders", number, order)._replace(leader=2, leader_epoch=5)
    assert f"next: ktriage verify {call.home / plan}" in call("ktriage", "resume", *ANY).err


def test_a_plan_that_was_deleted_is_not_named_by_resume(call: Caller) -> None:
    call.on(cluster_of(2))
    interrupted((reordered(0),), str(call.home / "gone.json"))
    assert "next: ktriage status" in call("ktriage", "resume", *ANY).err


@pytest.mark.parametrize(("answer", "status"), [("yes", 0), ("no", 1), ("", 1)])
def test_on_a_terminal_it_offers_to_finish_the_earlier_run_first(
    call: Caller, answer: str, status: int
) -> None:
    interrupted((reordered(0),))
    recover = ("recover", *ANY, "--all-offline-partitions", "--automated-recovery")
    ended = typing(
        call.home, [sys.executable, "-m", "tests.unit.cli.stoppable_jobs", "never", *recover], answer
    )
    assert ended.status == status, str(ended)
    assert "may have left 1 assignment in the order of an election: orders-0" in ended.err
    assert ("3 elections: 3 elected" in ended.out) == (answer == "yes")
    assert unfinished(CLUSTER_ID).nothing == (answer == "yes")


def test_an_order_is_not_reverted_where_it_is_not_known_whether_replicas_are_moving(call: Caller) -> None:
    backend = cluster_of(1)
    interrupted((reordered(0),))
    backend.states[tp(0)] = offline("orders", 0, (2, 1, 3))
    backend.moving = Unknown(Why.NOT_ALLOWED, "needs DESCRIBE on Cluster:kafka-cluster")
    ended = call.on(backend)("ktriage", "resume", *ANY)
    assert ended.status == 1
    assert "not reverted: orders-0" in ended.err
    assert backend.reverted == []
    assert not unfinished(CLUSTER_ID).nothing, "the next run is told again"


def test_an_order_in_a_topic_that_was_made_again_is_not_ours_to_revert(call: Caller) -> None:
    backend = cluster_of(2)
    interrupted((reordered(0), reordered(1)._replace(topic_id="a topic that is still there")))
    backend.states[tp(0)] = offline("orders", 0, (2, 1, 3))._replace(topic_id="another")
    backend.states[tp(1)] = offline("orders", 1, (2, 1, 3))._replace(topic_id="a topic that is still there")
    ended = call.on(backend)("ktriage", "resume", *ANY)
    assert ended.status == 1 and "deleted and created again" in ended.err
    assert [row.tp for row in backend.reverted] == [tp(1)] and unfinished(CLUSTER_ID).nothing


class RevertsFew(MemoryBackend):
    """It reverts so many orders, and then no more."""

    revertible = 2

    async def revert_orders(self, rows: Sequence[WrittenOrder], recorder: Recorder) -> tuple[Election, ...]:
        if len(self.reverted) < self.revertible:
            return await super().revert_orders(rows, recorder)
        return tuple(Election(row.tp, Outcome.FAILED, -1, -1, "no answer", reverted=False) for row in rows)


def reordered_twice(revertible: int = 2) -> RevertsFew:
    """The second run took the first one's order for the original."""
    backend = RevertsFew(cluster_of(1).states)
    backend.revertible = revertible
    for name, before, order in (("first", (1, 2, 3), (2, 1, 3)), ("second", (2, 1, 3), (3, 2, 1))):
        interrupted((WrittenOrder(tp(0), "orders-id", before, order),), name=name)
    backend.states[tp(0)] = offline("orders", 0, (3, 2, 1))
    return backend


def test_of_two_runs_that_reordered_one_partition_the_newer_is_undone_first(call: Caller) -> None:
    backend = reordered_twice()
    assert call.on(backend)("ktriage", "resume", *ANY).status == 0
    assert backend.states[tp(0)].replicas == (1, 2, 3)
    assert unfinished(CLUSTER_ID).nothing


def test_of_two_orders_one_that_is_not_reverted_leaves_the_partition_open(call: Caller) -> None:
    """The newer is undone, the older not: nothing may be closed."""
    backend = reordered_twice(revertible=1)
    assert call.on(backend)("ktriage", "resume", *ANY).status == 1
    assert backend.states[tp(0)].replicas == (2, 1, 3)
    assert [order.run_id for order in unfinished(CLUSTER_ID).orders] == ["first"]


def test_of_two_orders_the_newer_that_is_not_reverted_leaves_the_partition_open(call: Caller) -> None:
    """By the older one the assignment seems to be somebody else's, which is nothing to wait for."""
    backend = reordered_twice(revertible=0)
    assert call.on(backend)("ktriage", "resume", *ANY).status == 1
    assert [order.run_id for order in unfinished(CLUSTER_ID).orders] == ["first", "second"]


def test_somebody_elses_reassignment_is_left_alone_and_stops_no_other_recovery(call: Caller) -> None:
    """It does not end while the partition is offline: nothing else could ever be recovered from here."""
    backend = cluster_of(2)
    interrupted((reordered(0),))
    backend.states[tp(0)] = offline("orders", 0, (2, 1, 3))
    backend.moving = (Reassignment(tp(0), (2, 1, 3), (), (3,)),)
    ended = call.on(backend)("ktriage", "resume", *ANY)
    assert ended.status == 1
    assert "not reverted: orders-0: a reassignment is in progress" in ended.err
    assert "--cancel" in ended.err and "it was [1, 2, 3]" in ended.err
    assert backend.reverted == []
    recover = ("kafka-unclean-recovery", *ANY, "--all-offline-partitions", "--automated-recovery")
    assert call(*recover).status == 0


def test_a_run_in_progress_keeps_others_out(call: Caller) -> None:
    backend = cluster_of(1)
    plan = planned(call, backend)
    run = JournalRun("other", ("ktriage", "apply"), "ada", "here", 1, "", "1")
    with Journal.open(CLUSTER_ID, run, lambda: datetime(2026, 1, 1, tzinfo=UTC)):
        ended = call("ktriage", "apply", *ANY, plan, *AGREED)
    assert ended.status == 1
    assert sent(backend) == 0
    assert len(ended.err.splitlines()) == 1


DELETED = reordered(0)._replace(topic_id="a-topic-that-is-not-here")


def quorum_of(*directories: str) -> Quorum:
    """Nodes with those directories, as DescribeQuorum lists them; the last is a broker."""
    keys = [ReplicaKey(100 + number, directory) for number, directory in enumerate(directories)]
    voters = VoterSet(tuple(Voter(key, ()) for key in keys[:-1]))
    progress = tuple(QuorumReplica(key, 10, 1, 1) for key in keys)
    return Quorum(CLUSTER_ID, keys[0], 1, voters, 10, 10, 1, progress)


def test_what_was_left_on_another_cluster_with_the_same_id_is_left_to_it(call: Caller) -> None:
    """Two clusters with the default id of an image: this one has none of the topics, so nothing of it is here."""
    backend = cluster_of(1)
    interrupted((DELETED,))
    told = call.on(backend)("ktriage", "status", *ANY)
    assert "left out: 1 run in the journal of memory-cluster names only topics" in told.err, told
    assert "next: ktriage resume" not in told.err and "may have left" not in told.err, told
    resumed = call.on(backend)("ktriage", "resume", *ANY)
    assert resumed.status == 0 and sent(backend) == 0, resumed
    assert "names only topics that this cluster does not have" in resumed.out, resumed
    recover = ("kafka-unclean-recovery", *ANY, "--all-offline-partitions", "--automated-recovery")
    elected = call.on(backend)(*recover)
    assert "finish" not in elected.err and sent(backend) > 0, elected
    assert [order.written.topic_id for order in unfinished(CLUSTER_ID).orders] == [DELETED.topic_id], (
        "still open where it was left"
    )


def test_a_run_on_nodes_of_this_cluster_is_finished_although_its_topics_were_deleted_since(
    call: Caller,
) -> None:
    """One node is enough: the others were replaced since."""
    backend = cluster_of(1)
    backend.described = quorum_of("controller-disk", "a new disk", "a new broker")
    interrupted((DELETED,), directories=("controller-disk", "another-disk"))
    told = call.on(backend)("ktriage", "status", *ANY)
    assert "next: ktriage resume" in told.err and "left out" not in told.err, told
    resumed = call.on(backend)("ktriage", "resume", *ANY)
    assert "the topic was deleted and created again" in resumed.err, resumed
    assert unfinished(CLUSTER_ID).nothing
    assert "resume" not in call.on(backend)("ktriage", "status", *ANY).err


def test_a_run_on_nodes_that_this_cluster_does_not_have_was_on_another_one(call: Caller) -> None:
    backend = cluster_of(1)
    backend.described = quorum_of("controller-disk", "broker-disk")
    interrupted((DELETED,), directories=("another-disk",))
    for command in ("status", "resume", "replicas", "journal", "handover"):
        told = call.on(backend)("ktriage", command, *ANY)
        assert "1 run in the journal of memory-cluster was on another cluster" in told.out + told.err, told
        assert "deleted since" not in told.err and "next: ktriage resume" not in told.err, told
    assert not unfinished(CLUSTER_ID).nothing, "still open where it was left"


def test_a_change_records_the_directories_of_the_nodes(call: Caller) -> None:
    backend = cluster_of(1)
    backend.described = quorum_of("controller-disk", "broker-disk")
    recover = ("kafka-unclean-recovery", *ANY, "--all-offline-partitions", "--automated-recovery")
    assert call.on(backend)(*recover).status == 0
    assert read_runs(CLUSTER_ID)[-1].directories == {"controller-disk", "broker-disk"}


def test_a_run_on_these_topics_is_still_to_be_finished(call: Caller) -> None:
    backend = cluster_of(1)
    interrupted((reordered(0),))
    told = call.on(backend)("ktriage", "status", *ANY)
    assert "next: ktriage resume" in told.err and "left out" not in told.err, told
