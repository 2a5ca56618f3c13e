"""Moves of replicas that do not go as planned: stopped, killed, changed by others, slowed down by others.

The cluster is in memory: a copy takes as many looks as a test wants, and every throttle is seen.
"""

# ruff: noqa: ARG002  # the signatures are the protocols'

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from backends.base.answers import ClusterInfo, LogDir, LogDirReplica, Reassignment
from backends.base.errors import Unreachable
from backends.base.protocol import Backend
from backends.base.replica_moves import Configured, ConfiguredKind, Throttles
from console.change.access import backend_access
from console.change.change import Change, run_change
from console.change.finish_earlier import FinishEarlier, finishers
from console.change.unfinished_orders import unfinished_here
from console.errors import NotDone
from console.jobs.heal.heal_replicas import HealedReplicas, HealLimits, HealReplicas
from console.jobs.heal.heal_survey import HealSelection
from console.jobs.heal.move_batches import MoveEnd
from console.jobs.heal.unregister_broker import UnregisterBroker
from console.journal.change_kinds import HEAL
from console.journal.unfinished_entries import unfinished
from console.output.screen import Screen
from console.program import Program
from console.signals import StopRequest, Supervisor
from recovery.membership.quorum import Quorum
from recovery.model import Broker, PartitionState, TopicPartition, Unknown, Why
from tests.unit.cli.command_process import environment
from tests.unit.cli.memory_backend import CLUSTER_ID, MemoryBackend
from tests.unit.membership.quorums import quorum as quorum_of

SIZE, ROOM = 1_000, 1_000_000
RATE = 5_000
ORDERS = Configured(ConfiguredKind.TOPIC, "orders")


def partition(number: int, replicas: tuple[int, ...] = (3, 1, 2)) -> PartitionState:
    isr = tuple(broker for broker in replicas if broker != 3)
    return PartitionState("orders", number, "orders-id", isr[0], 4, replicas, isr, (), (), (3,))


@dataclass
class CopyingCluster(MemoryBackend):
    """Brokers 1, 2, 4 and 5 are up, 3 is fenced. A copy is done after ``looks`` looks; None: never.

    ``each_look`` is called at each look while something is copied.
    """

    looks: int | None = 2
    up: set[int] = field(default_factory=lambda: {1, 2, 4, 5})
    copying: dict[TopicPartition, tuple[tuple[int, ...], int]] = field(default_factory=dict)
    set_now: dict[Configured, dict[str, str]] = field(default_factory=dict)
    ever_set: set[Configured] = field(default_factory=set)
    refuses_throttle: Configured | None = None
    each_look: Callable[[], None] = lambda: None
    loses_answers: bool = False
    voters: tuple[int, ...] | None = None
    virtual_time = None

    async def cluster(self) -> ClusterInfo:
        brokers = tuple(Broker(b, "localhost", 9000 + b, None, b not in self.up) for b in range(1, 6))
        return ClusterInfo(CLUSTER_ID, brokers, 1, True)

    async def log_dirs(
        self, brokers: Sequence[int] | None = None
    ) -> Mapping[int, tuple[LogDir, ...] | Unknown]:
        return {
            broker: (LogDir(broker, "/kafka", None, ROOM, ROOM, self._held(broker)),) for broker in self.up
        }

    def _held(self, broker: int) -> tuple[LogDirReplica, ...]:
        states = [state for state in self.states.values() if broker in state.replicas]
        return tuple(LogDirReplica(state.tp, SIZE, 0, False) for state in states)

    async def reassignments(
        self, partitions: Sequence[TopicPartition] | None = None
    ) -> tuple[Reassignment, ...] | Unknown:
        if self.copying:
            self.each_look()
        for tp, (target, seen) in list(self.copying.items()):
            self.copying[tp] = (target, seen + 1)
            if self.looks is not None and seen >= self.looks:
                del self.copying[tp]
                self.states[tp] = self.states[tp]._replace(replicas=target, isr=target)
        return tuple(self._reassignment(tp, target) for tp, (target, _) in self.copying.items())

    def _reassignment(self, tp: TopicPartition, target: tuple[int, ...]) -> Reassignment:
        before = self.states[tp].replicas
        adding = tuple(broker for broker in target if broker not in before)
        removing = tuple(broker for broker in before if broker not in target)
        return Reassignment(tp, (*target, *removing), adding, removing)

    def throttle_reader(self) -> CopyingCluster:
        return self

    def replica_mover(self) -> CopyingCluster:
        return self

    async def throttles(self, named: Sequence[Configured]) -> Mapping[Configured, Throttles | Unknown]:
        silent = Unknown(Why.NOT_ANSWERED, "connection refused")
        up = {str(broker) for broker in self.up}
        return {
            one: silent
            if one.kind is ConfiguredKind.BROKER and one.name not in up
            else dict(self.set_now.get(one, {}))
            for one in named
        }

    async def alter_configs(
        self, values: Mapping[Configured, Mapping[str, str | None]]
    ) -> Mapping[Configured, str | None]:
        told: dict[Configured, str | None] = {}
        for one, changes in values.items():
            told[one] = "needs ALTER_CONFIGS" if one == self.refuses_throttle else None
            if one == self.refuses_throttle:
                continue
            self.ever_set.add(one)
            now = self.set_now.setdefault(one, {})
            for name, value in changes.items():
                if value is None:
                    now.pop(name, None)
                else:
                    now[name] = value
        return told

    async def reassign(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None], *, other_factor: bool = False
    ) -> Mapping[TopicPartition, str | None]:
        for tp, target in targets.items():
            state = self.states[tp]
            if target is None:
                if self.copying.pop(tp, None) is not None:  # Kafka leaves the replicas in another order
                    self.states[tp] = state._replace(replicas=(*state.replicas[1:], state.replicas[0]))
            elif set(target) == set(state.replicas):
                self.states[tp] = state._replace(replicas=target)
            else:
                self.copying[tp] = (target, 0)
        if self.loses_answers:
            raise Unreachable("no answer")
        return dict.fromkeys(targets)

    async def unregister(self, broker: int) -> None:
        raise AssertionError(f"unregistered {broker}")

    async def quorum(self) -> Quorum | Unknown:
        return Unknown(Why.NOT_OFFERED, "a test") if self.voters is None else quorum_of(*self.voters)

    @property
    def throttled(self) -> list[Configured]:
        return [one for one, values in self.set_now.items() if values]


class Nobody:
    """Agreed beforehand; what is said is in ``said``."""

    progress = None
    asks = False

    def __init__(self) -> None:
        self.said: list[str] = []

    def says(self, *lines: str) -> None:
        self.said += lines

    def unrecorded(self, line: str) -> None:
        self.said.append(line)

    def finds(self, found: Any) -> None: ...

    def reverted(self, settled: Any) -> None: ...

    def shows(self, prepared: Any) -> None: ...

    async def reverts_first(self, found: Any) -> bool:
        return False

    async def answers(self, question: Any, prepared: Any) -> str:
        raise AssertionError("nobody is asked")

    async def gives_reason(self) -> str:
        raise AssertionError("nobody is asked")


@pytest.fixture(autouse=True)
def at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for key, value in environment(tmp_path).items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr("console.jobs.heal.move_batches.pause.__defaults__", (0.0,))


@pytest.fixture
def cluster() -> CopyingCluster:
    states = [partition(number) for number in range(4)]
    return CopyingCluster({state.tp: state for state in states})


def run(change: Change[Any, Any, Any], cluster: CopyingCluster, stop: StopRequest | None = None) -> Any:
    program = Program("ktriage", ("ktriage",), Screen(time.monotonic), Supervisor(lambda _signum: ""))
    return asyncio.run(
        run_change(
            change,
            backend_access(cluster, lambda: None),
            CLUSTER_ID,
            Nobody(),
            invocation=program,
            stop=StopRequest() if stop is None else stop,
            resume_command="ktriage resume",
        )
    )


def heal(rate: int | None = RATE, batch: int = 2, *, undo: bool = False) -> HealReplicas:
    selection = HealSelection(frozenset({3}), None, confirmed=True)
    return HealReplicas(selection, "in memory", "a test", HealLimits(rate, batch), undo=undo)


RESUME: FinishEarlier[Backend] = FinishEarlier(unfinished_here, finishers)


def ends(healed: HealedReplicas) -> list[MoveEnd]:
    return [one.end for one in sorted(healed.ended, key=lambda one: one.move.tp)]


def test_every_partition_is_moved_and_the_throttle_is_gone(cluster: CopyingCluster) -> None:
    healed = run(heal(), cluster)
    assert ends(healed) == [MoveEnd.MOVED] * 4
    assert all(3 not in state.replicas and len(state.replicas) == 3 for state in cluster.states.values())
    assert ORDERS in cluster.ever_set
    assert cluster.throttled == []
    assert unfinished(CLUSTER_ID).nothing


def test_only_new_replicas_are_slowed_down(cluster: CopyingCluster) -> None:
    seen: list[dict[str, str]] = []
    cluster.each_look = lambda: seen.append(dict(cluster.set_now[ORDERS]))
    run(heal(), cluster)
    followers = seen[0]["follower.replication.throttled.replicas"].split(",")
    assert {one.split(":")[1] for one in followers} <= {"4", "5"}
    assert len(followers) == 4


def test_a_broker_that_is_down_too_needs_no_throttle(cluster: CopyingCluster) -> None:
    """It copies nothing, and nobody can tell whether it has one."""
    cluster.up.remove(2)
    assert ends(run(heal(), cluster)) == [MoveEnd.MOVED] * 4
    assert {one.name for one in cluster.ever_set} == {"orders", "1", "4", "5"}


def test_other_moves_than_those_that_a_person_agreed_to_are_not_sent(cluster: CopyingCluster) -> None:
    """Broker 5 dies between the question on the screen and its answer."""
    agreed = asyncio.run(heal(None).prepare(cluster, CLUSTER_ID, Nobody()))
    cluster.up.remove(5)
    before = dict(cluster.states)
    with pytest.raises(NotDone, match="would be others now than those that were shown; nothing was sent"):
        run(replace(heal(None), compared=agreed), cluster)
    assert (cluster.states, cluster.copying) == (before, {})
    cluster.up.add(5)
    assert ends(run(replace(heal(None), compared=agreed), cluster)) == [MoveEnd.MOVED] * 4


def test_a_voter_is_not_unregistered(cluster: CopyingCluster) -> None:
    """Its vote would stay, for a node that nobody can start any more."""
    cluster.states.clear()
    cluster.voters = (1, 3, 4)
    change = UnregisterBroker(3, "in memory", "a test", lambda *words: " ".join(words))
    with pytest.raises(NotDone, match=r"node 3 is a voter of the metadata quorum: replace it first"):
        run(change, cluster)
    cluster.voters = None
    with pytest.raises(NotDone, match=r"whether node 3 is a voter is not known \(not offered"):
        run(change, cluster)
    cluster.voters = (1, 4, 5)
    with pytest.raises(AssertionError, match="unregistered 3"):
        run(change, cluster)


def test_a_signal_cancels_what_is_copied_and_leaves_the_rest(cluster: CopyingCluster) -> None:
    cluster.looks = None
    stop = StopRequest()
    cluster.each_look = lambda: stop.came(signal.SIGINT)
    before = dict(cluster.states)
    healed = run(heal(), cluster, stop)
    assert ends(healed) == [MoveEnd.CANCELLED, MoveEnd.CANCELLED, MoveEnd.NOT_BEGUN, MoveEnd.NOT_BEGUN]
    assert cluster.states == before, "in the order of before, too"
    assert (cluster.copying, cluster.throttled) == ({}, [])
    assert unfinished(CLUSTER_ID).nothing


def test_a_move_without_an_answer_is_watched_all_the_same(cluster: CopyingCluster) -> None:
    cluster.loses_answers = True
    assert ends(run(heal(), cluster)) == [MoveEnd.MOVED] * 4


LAST = TopicPartition("orders", 3)


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (partition(3, (2, 1, 3)), "the assignment is [2, 1, 3] now"),
        (partition(3)._replace(topic_id="another"), "the topic was deleted and created again"),
        (None, "the partition cannot be seen any more"),
    ],
)
def test_what_somebody_else_changed_is_left_and_named(
    cluster: CopyingCluster, state: PartitionState | None, said: str
) -> None:
    def others() -> None:
        if state is None:
            cluster.states.pop(LAST, None)
        else:
            cluster.states[LAST] = state

    cluster.each_look = others
    healed = run(heal(), cluster)
    assert ends(healed) == [*[MoveEnd.MOVED] * 3, MoveEnd.CHANGED]
    assert [one.why for one in healed.ended if one.move.tp == LAST] == [said]
    assert LAST not in cluster.copying


def test_what_somebody_else_moves_meanwhile_is_not_begun(cluster: CopyingCluster) -> None:
    never = -1_000
    cluster.each_look = lambda: cluster.copying.update({LAST: ((1, 2, 5), never)})
    healed = run(heal(), cluster)
    assert ends(healed) == [*[MoveEnd.MOVED] * 3, MoveEnd.NOT_BEGUN]
    whys = [one.why for one in healed.ended if one.move.tp == LAST]
    assert whys == ["it is being reassigned by somebody else"]


def test_nothing_more_is_begun_once_the_broker_is_back(cluster: CopyingCluster) -> None:
    cluster.each_look = lambda: cluster.up.add(3)
    healed = run(heal(), cluster)
    assert ends(healed) == [MoveEnd.MOVED, MoveEnd.MOVED, MoveEnd.NOT_BEGUN, MoveEnd.NOT_BEGUN]
    assert "broker 3 is back" in healed.ended[-1].why


def test_a_throttle_of_somebody_else_is_neither_overwritten_nor_removed(cluster: CopyingCluster) -> None:
    theirs = {"leader.replication.throttled.replicas": "7:1"}
    cluster.set_now[ORDERS] = dict(theirs)
    with pytest.raises(NotDone, match="topic orders has a throttle already"):
        run(heal(), cluster)
    assert (cluster.copying, cluster.set_now[ORDERS]) == ({}, theirs)
    assert ends(run(heal(rate=None), cluster)) == [MoveEnd.MOVED] * 4
    assert cluster.set_now[ORDERS] == theirs


def test_where_the_throttle_cannot_be_set_nothing_is_moved(cluster: CopyingCluster) -> None:
    cluster.refuses_throttle = ORDERS
    with pytest.raises(NotDone, match="needs ALTER_CONFIGS; no replica was moved"):
        run(heal(), cluster)
    assert (cluster.copying, cluster.throttled) == ({}, [])
    assert unfinished(CLUSTER_ID).nothing


def killed_while_copying(cluster: CopyingCluster) -> None:
    """The process is gone between two looks."""

    def dies() -> None:
        raise SystemExit

    cluster.looks, cluster.each_look = None, dies
    with pytest.raises(SystemExit):
        run(heal(), cluster)
    cluster.each_look = lambda: None


def test_after_a_kill_resume_waits_for_the_copies_and_removes_the_throttle(cluster: CopyingCluster) -> None:
    killed_while_copying(cluster)
    assert cluster.throttled
    with pytest.raises(NotDone, match="finish it first: ktriage resume"):
        run(heal(), cluster)
    cluster.looks = 5
    ending = run(RESUME, cluster)
    assert "2 partitions moved, 2 not moved" in ending.lines[0]
    assert not ending.conclusion.unfinished
    assert ending.conclusion.next == ("heal", "apply", "--broker-id", "3", "--gone-for-good")
    assert cluster.throttled == []
    assert unfinished(CLUSTER_ID).nothing
    assert run(RESUME, cluster).lines == ()


def test_a_resume_that_is_stopped_leaves_the_throttle_to_the_copies(cluster: CopyingCluster) -> None:
    killed_while_copying(cluster)
    stop = StopRequest()
    cluster.each_look = lambda: stop.came(signal.SIGINT)
    ending = run(RESUME, cluster, stop)
    assert "2 still being copied, so its throttle stays" in ending.lines[0]
    assert ending.conclusion.next == ("resume",)
    assert cluster.throttled
    assert unfinished(CLUSTER_ID).of(HEAL)


def test_after_a_kill_undo_cancels_the_copies_and_closes_the_run(cluster: CopyingCluster) -> None:
    before = dict(cluster.states)
    killed_while_copying(cluster)
    healed = run(heal(undo=True), cluster)
    assert ends(healed) == [MoveEnd.CANCELLED] * 2
    assert cluster.states == before
    assert cluster.throttled == []
    assert unfinished(CLUSTER_ID).nothing


def test_undo_moves_back_only_to_a_broker_that_is_up(cluster: CopyingCluster) -> None:
    before = {tp: state.replicas for tp, state in cluster.states.items()}
    run(heal(), cluster)
    left = run(heal(undo=True), cluster)
    assert (left.sent, len(left.prepared.left)) == (False, 4)
    assert "broker 3 is not up" in left.prepared.left[0].why
    cluster.up.add(3)
    assert ends(run(heal(undo=True), cluster)) == [MoveEnd.MOVED] * 4
    assert {tp: state.replicas for tp, state in cluster.states.items()} == before
    assert cluster.throttled == []
