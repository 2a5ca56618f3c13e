"""Log dirs and their replicas, and the cluster that a disk failure is computed from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from recovery.controller.prediction import PartitionView
from recovery.controller.registration import Registration
from recovery.controller.rules import ControllerRules, strategy_of, with_strategy
from recovery.model import Broker, PartitionState, Standing, TopicPartition, Unknown
from recovery.standing import standing

WHOLE_BROKER = ""

PartitionsByDir = Mapping[int, Mapping[str, frozenset[TopicPartition]]]
"""Broker to log dir to the partitions that have a replica there."""


class LogDirPlace(NamedTuple):
    """A log dir of a broker; WHOLE_BROKER for all of them."""

    broker: int
    path: str

    def __str__(self) -> str:
        return f"{self.broker}:{self.path}" if self.path else f"broker {self.broker}"


class DiskError(ValueError):
    """A log dir that does not exist; one line with those that do."""


@dataclass(frozen=True, slots=True)
class DiskCluster:
    """Everything that a disk's failure is computed from.

    ``min_isr`` is effective, by topic; 1 is taken where it is Unknown or missing. ``unclean`` are the topics whose
    unclean.leader.election.enable is true. ``metadata_dirs`` maps brokers to the dir of their metadata log: losing
    it stops the broker. ``failed`` are the dirs that have failed already.
    """

    states: tuple[PartitionState, ...]
    brokers: Mapping[int, Broker]
    replica_dirs: PartitionsByDir
    min_isr: Mapping[str, int | Unknown]
    rules: ControllerRules
    unclean: frozenset[str] = frozenset()
    metadata_dirs: Mapping[int, str] | None = None
    failed: tuple[LogDirPlace, ...] = ()

    def effective_min_isr(self, state: PartitionState) -> int:
        found = self.min_isr.get(state.topic, 1)
        return 1 if isinstance(found, Unknown) else min(found, max(1, len(state.replicas)))

    def view(self, state: PartitionState) -> PartitionView:
        """One partition as its controller sees it."""
        standings: dict[int, Standing] = {b: standing(state, b, self.brokers) for b in state.replicas}
        registration = Registration(
            state.replicas,
            state.isr,
            state.leader,
            state.leader_epoch,
            elr=state.elr or (),
            last_known_elr=state.last_known_elr or (),
        )
        rules = with_strategy(self.rules, strategy_of(state.topic in self.unclean))
        return PartitionView(registration, standings, self.effective_min_isr(state), rules)


class DiskOutcome(StrEnum):
    """What happens to a partition with a replica on a failing disk, the worst first."""

    LAST_COPY = "last copy lost"
    OFFLINE = "offline"
    SURVIVOR = "a surviving copy lost"
    """The partition has no leader already, so the controller would do nothing. Fewer copies may then be left
    for a recovery.
    """
    UNDER_MIN_ISR = "under min ISR"
    NEW_LEADER = "new leader"
    FEWER = "one replica fewer"
    UNNOTICED = "not noticed yet"
    """The disk has failed, and its broker has not noticed it."""
