"""Which rules a controller follows: the defaults are those of shipped Apache Kafka 4.3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache

from recovery.model import PartitionState, Unknown, Why


class UncleanRecoveryStrategy(StrEnum):
    """KIP-966 ``unclean.recovery.strategy``. No release reads it: shipped Kafka has
    ``unclean.leader.election.enable``, which :func:`strategy_of` maps as the KIP does.
    """

    NONE = "None"
    BALANCED = "Balanced"
    AGGRESSIVE = "Aggressive"


def strategy_of(unclean_leader_election_enable: bool) -> UncleanRecoveryStrategy:
    """The strategy that ``unclean.leader.election.enable`` stands for (KIP-966, "Unclean recovery")."""
    if unclean_leader_election_enable:
        return UncleanRecoveryStrategy.AGGRESSIVE
    return UncleanRecoveryStrategy.BALANCED


@dataclass(frozen=True, slots=True)
class ControllerRules:
    """Switches between what shipped Kafka does and what the documents say, or older releases did.

    - ``elr``: the feature ``eligible.leader.replicas.version`` is 1.
    - ``last_known_elr_members``: LastKnownELR holds every member that left the ELR uncleanly (KIP-966). As
      shipped it holds one id, the last leader.
    - ``dead_last_known_leader_elected``: before 4.1 the last known leader was elected dead or alive, which kept
      any other replica from being elected (KAFKA-19522).
    - ``strategy``: see :func:`strategy_of`.
    - ``recovery_manager``: KIP-966 ``unclean.recovery.manager.enabled``. Unclean elections are then left to
      :mod:`recovery.controller.unclean_recovery`, which asks the replicas for their logs. In no release.
    - ``kip966_reassignment``: a reassignment completes, or is cancelled, only with an ISR of min ISR, and leaves
      in the ELR only replicas of the final set (KIP-966, "Other behaviors"). As shipped neither holds.
    - ``reassignment_waits_for_all``: before 4.3 a reassignment completed only when the whole target was in the
      ISR; since then the added replicas suffice, unless the replication factor shrinks.
    - ``kip966_min_isr_change``: a new ``min.insync.replicas`` empties the ELR where the ISR reaches it. As shipped
      *any* change of it empties ELR and LastKnownELR, offline partitions' too.
    - ``leader_epoch_bump_on_isr_shrink``: metadata versions before 3.6 (KAFKA-15021).
    - ``leader_recovery``: the leader recovery state exists, since metadata version 3.2.
    """

    elr: bool = True
    last_known_elr_members: bool = False
    dead_last_known_leader_elected: bool = False
    strategy: UncleanRecoveryStrategy = UncleanRecoveryStrategy.BALANCED
    recovery_manager: bool = False
    kip966_reassignment: bool = False
    reassignment_waits_for_all: bool = False
    kip966_min_isr_change: bool = False
    leader_epoch_bump_on_isr_shrink: bool = False
    leader_recovery: bool = True

    @property
    def elects_last_known_leader(self) -> bool:
        """Whether an empty ISR and ELR elect the one LastKnownELR member by itself (KIP-966, "Delivery plan")."""
        return (
            self.elr
            and not self.last_known_elr_members
            and not self.recovery_manager
            and self.strategy is not UncleanRecoveryStrategy.NONE
        )

    @property
    def elects_uncleanly(self) -> bool:
        """Whether the controller elects the first live replica by itself when ISR and ELR offer nobody."""
        return self.strategy is UncleanRecoveryStrategy.AGGRESSIVE and not self.recovery_manager


KIP_966 = ControllerRules(
    last_known_elr_members=True,
    recovery_manager=True,
    kip966_reassignment=True,
    kip966_min_isr_change=True,
)
"""The whole of KIP-966, with the unclean recovery manager on."""


def shipped(release: tuple[int, int], *, elr: bool) -> ControllerRules:
    """The rules of an Apache Kafka release (major, minor) with the ELR feature on or off."""
    return ControllerRules(
        elr=elr,
        dead_last_known_leader_elected=release < (4, 1),
        reassignment_waits_for_all=release < (4, 3),
    )


@cache
def with_strategy(rules: ControllerRules, strategy: UncleanRecoveryStrategy) -> ControllerRules:
    """``rules`` for a topic whose strategy is ``strategy``."""
    return replace(rules, strategy=strategy)


def effective_min_isr(configured: int, replication_factor: int) -> int:
    """min(min.insync.replicas, replication factor) (KIP-966, "Additional High Watermark advancement")."""
    return min(configured, replication_factor)


MIN_ISR = "min.insync.replicas"
ELR_FEATURE = "eligible.leader.replicas.version"
"""The feature with which a cluster keeps the ELR (KIP-966)."""


def min_isr_from_config(state: PartitionState, config: Mapping[str, str] | Unknown) -> int | Unknown:
    """min(min.insync.replicas, replication factor), or why it is not known."""
    if isinstance(config, Unknown):
        return config
    value = config.get(MIN_ISR, "")
    if not value.isdecimal():
        return Unknown(Why.FAILED, f"{MIN_ISR} of topic {state.topic} is {value!r}")
    return effective_min_isr(int(value), len(state.replicas))
