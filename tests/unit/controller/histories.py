"""Random histories of a small cluster: what may happen, and the invariants looked at after each event."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations, permutations
from typing import NamedTuple

from hypothesis import strategies as st

from recovery.controller import broker_changes
from recovery.controller.alter_partition import AlterPartition, IsrMember
from recovery.controller.cluster_image import BrokerRegistration, ClusterImage, Effect, Layered
from recovery.controller.elect_leaders import ElectionRequest, elect_leaders
from recovery.controller.invariants import Excuse, Violation, state_violations, step_violations
from recovery.controller.reassignment import cancel, reassign
from recovery.controller.registration import LeaderRecoveryState, PartitionChange, Registration, merge
from recovery.controller.rules import ControllerRules, UncleanRecoveryStrategy
from recovery.controller.topic_changes import ConfigLevel, change_min_isr
from recovery.controller.transition_targets import ElectionKind
from recovery.model import TopicPartition
from tests.unit.controller.clusters import alter_partition, cluster, healthy

BROKERS = 5


class Event(NamedTuple):
    """Something that happens: to ``broker``, or to partition ``broker`` modulo their number, with ``chosen``."""

    kind: str
    broker: int
    chosen: tuple[int, ...] = ()


def events(*, reassignments: bool) -> st.SearchStrategy[Event]:
    """Any event, each kind as often as another. One table, so that an event is one draw."""
    kinds = sorted(kind for kind in _HAPPENS if reassignments or kind not in _REASSIGNMENTS)
    return st.sampled_from(
        [
            Event(kind, broker, chosen if kind in _WITH_A_CHOICE else ())
            for kind in kinds
            for broker in range(BROKERS)
            for chosen in _CHOICES
        ]
    )


class History:
    """A cluster of five brokers and two partitions, and what is wrong with it after each event.

    ``forgets_elr`` breaks the rules on purpose.
    """

    def __init__(
        self,
        rules: ControllerRules,
        strategy: UncleanRecoveryStrategy,
        min_isr: int,
        *,
        forgets_elr: bool = False,
    ) -> None:
        partitions = {
            TopicPartition("foo", 0): healthy(0, 1, 2),
            TopicPartition("foo", 1): healthy(2, 3, 4)._replace(directories=("a", "b", "a")),
        }
        self.image = cluster(partitions, _registered(), rules=rules, min_isr=min_isr)
        self.image = replace(self.image, strategies=Layered(strategy))
        self.forgets_elr = forgets_elr
        self.reassigned = False

    def step(self, event: Event) -> list[Violation]:
        """Let it happen; what is broken afterwards, in any partition."""
        before = self.image
        effect = _HAPPENS[event.kind](before, event)
        if self.forgets_elr:
            effect = _without_elr(before, effect)
        self.image = effect.image
        self.reassigned = self.reassigned or event.kind in _REASSIGNMENTS
        return [
            violation
            for tp in before.partitions
            for violation in self._violations(before, effect, tp, _EXCUSES.get(event.kind, frozenset()))
        ]

    def _violations(
        self, before: ClusterImage, effect: Effect, tp: TopicPartition, excuses: frozenset[Excuse]
    ) -> Iterator[Violation]:
        elr = before.rules.elr
        was, after = before.partitions[tp], effect.image.partitions[tp]
        change = effect.changes.get(tp)
        if change is not None and _unclean(was, change):
            excuses |= {Excuse.UNCLEAN_ELECTION}
        if was.reassigning or after.reassigning:
            excuses |= {Excuse.REASSIGNMENT}
        min_isr = before.effective_min_isr(tp.topic)
        yield from step_violations(was, change, after, min_isr, elr=elr, excuses=excuses)
        # What a reassignment leaves in the ELR stays there when it is done.
        lasting = frozenset({Excuse.REASSIGNMENT} if self.reassigned else ())
        min_isr = effect.image.effective_min_isr(tp.topic)
        yield from state_violations(after, min_isr, elr=elr, excuses=lasting)


def _registered() -> dict[int, BrokerRegistration]:
    return {broker: BrokerRegistration(100 + broker, directories=("a", "b")) for broker in range(BROKERS)}


def _unclean(was: Registration, change: PartitionChange) -> bool:
    if change.leader in (None, was.leader) or change.leader == -1:
        return False
    known = {*was.isr, *was.elr}
    recovering = change.leader_recovery_state is LeaderRecoveryState.RECOVERING
    return recovering or (change.leader not in known and change.isr == (change.leader,))


def _without_elr(before: ClusterImage, effect: Effect) -> Effect:
    changes = {tp: change._replace(elr=()) for tp, change in effect.changes.items()}
    merged = {tp: merge(before.partitions[tp], change) for tp, change in changes.items()}
    image = replace(effect.image, partitions={**effect.image.partitions, **merged})
    return Effect(image, changes)


def _partition(image: ClusterImage, event: Event) -> TopicPartition:
    return TopicPartition("foo", event.broker % len(image.partitions))


def _fence(image: ClusterImage, event: Event) -> Effect:
    return broker_changes.fence(image, event.broker)


def _unfence(image: ClusterImage, event: Event) -> Effect:
    return broker_changes.unfence(image, event.broker)


def _shut_down(image: ClusterImage, event: Event) -> Effect:
    return broker_changes.begin_controlled_shutdown(image, event.broker)


def _restart_cleanly(image: ClusterImage, event: Event) -> Effect:
    epoch = image.brokers[event.broker].epoch
    return broker_changes.register(image, event.broker, epoch + 100, epoch, ("a", "b"))


def _restart_uncleanly(image: ClusterImage, event: Event) -> Effect:
    epoch = image.brokers[event.broker].epoch
    return broker_changes.register(image, event.broker, epoch + 100, directories=("a", "b"))


def _lose_directory(image: ClusterImage, event: Event) -> Effect:
    return broker_changes.directories_offline(image, event.broker, ["a"])


def _new_isr(image: ClusterImage, event: Event) -> Effect:
    tp = _partition(image, event)
    registration = image.partitions[tp]
    wanted = (registration.leader, *(broker for broker in event.chosen if broker != registration.leader))
    isr = tuple(IsrMember(broker) for broker in wanted)
    request = AlterPartition(
        registration.leader, registration.leader_epoch, registration.partition_epoch, isr
    )
    return alter_partition(image, tp, request).effect


def _elect(kind: ElectionKind) -> Callable[[ClusterImage, Event], Effect]:
    def elect(image: ClusterImage, event: Event) -> Effect:
        wanted = {_partition(image, event): event.chosen[0] if event.chosen else -1}
        return elect_leaders(image, ElectionRequest(kind, wanted)).effect

    return elect


def _periodic(image: ClusterImage, _: Event) -> Effect:
    return broker_changes.elect_uncleanly_where_leaderless(image, limit=1000)


def _reassign(image: ClusterImage, event: Event) -> Effect:
    return reassign(image, _partition(image, event), event.chosen).effect


def _cancel(image: ClusterImage, event: Event) -> Effect:
    return cancel(image, _partition(image, event)).effect


def _min_isr(image: ClusterImage, event: Event) -> Effect:
    return change_min_isr(image, ConfigLevel.TOPIC, event.broker + 1, "foo").effect


_HAPPENS: dict[str, Callable[[ClusterImage, Event], Effect]] = {
    "fence": _fence,
    "unfence": _unfence,
    "controlled shutdown": _shut_down,
    "clean restart": _restart_cleanly,
    "unclean restart": _restart_uncleanly,
    "directory fails": _lose_directory,
    "new ISR": _new_isr,
    "preferred election": _elect(ElectionKind.PREFERRED),
    "unclean election": _elect(ElectionKind.UNCLEAN),
    "designated election": _elect(ElectionKind.DESIGNATED),
    "periodic election": _periodic,
    "reassign": _reassign,
    "cancel": _cancel,
    "min ISR": _min_isr,
}
_CHOICES = [
    *(chosen for size in range(3) for chosen in permutations(range(BROKERS), size)),
    *(chosen for size in (3, 4) for chosen in combinations(range(BROKERS), size)),
]
_WITH_A_CHOICE = frozenset({"new ISR", "reassign", "designated election"})
_REASSIGNMENTS = frozenset({"reassign", "cancel"})
_EXCUSES = {
    "reassign": frozenset({Excuse.REASSIGNMENT}),
    "cancel": frozenset({Excuse.REASSIGNMENT}),
    "unclean restart": frozenset({Excuse.UNCLEAN_SHUTDOWN}),
    "min ISR": frozenset({Excuse.MIN_ISR_CHANGED}),
}
