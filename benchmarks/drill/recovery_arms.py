"""The recovery methods that a drill compares."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from recovery.controller.rules import KIP_966, ControllerRules, UncleanRecoveryStrategy
from recovery.ranking import Ranking
from recovery.strategy import Strategy


class Arm(StrEnum):
    """Who elects if no member of ISR or ELR can lead, and by which rule.

    NONE, BALANCED and AGGRESSIVE are the controller's own (KIP-966 with its recovery manager), without an
    operator. RANDOM_UNCLEAN is what an operator can do with Kafka's released tools: an unclean election,
    which takes the first live replica of the assignment, whatever its log contains. SPECIFICATION and
    LAST_RECORD read every log that can be read and elect the best (strategy aggressive), by the two rankings.
    CAREFUL is last-record with the strategy balanced, which elects where the best candidate is proved to hold every
    acknowledged record, and otherwise prefers to wait; WHOLE with complete, which waits for every replica. NOBODY:
    released Kafka, and no operator.
    """

    NONE = "kafka-none"
    BALANCED = "kafka-balanced"
    AGGRESSIVE = "kafka-aggressive"
    RANDOM_UNCLEAN = "random-unclean"
    SPECIFICATION = "specification"
    LAST_RECORD = "last-record"
    CAREFUL = "last-record-balanced"
    WHOLE = "last-record-complete"
    NOBODY = "nobody"


class ArmSetup(NamedTuple):
    """``rules`` of the controller; how the operator elects: ``ranking`` and ``strategy``, or ``unclean``."""

    rules: ControllerRules
    ranking: Ranking | None = None
    strategy: Strategy | None = None
    unclean: bool = False

    @property
    def person(self) -> bool:
        """Whether an operator acts."""
        return self.unclean or self.strategy is not None


def arm_setup(arm: Arm) -> ArmSetup:
    """The setup of a recovery method. If a person decides, or nobody, the controller behaves as released 4.3
    with ELR."""
    shipped = ControllerRules()
    return {
        Arm.NONE: ArmSetup(_kip(UncleanRecoveryStrategy.NONE)),
        Arm.BALANCED: ArmSetup(_kip(UncleanRecoveryStrategy.BALANCED)),
        Arm.AGGRESSIVE: ArmSetup(_kip(UncleanRecoveryStrategy.AGGRESSIVE)),
        Arm.RANDOM_UNCLEAN: ArmSetup(shipped, unclean=True),
        Arm.SPECIFICATION: ArmSetup(shipped, Ranking.SPECIFICATION, Strategy.AGGRESSIVE),
        Arm.LAST_RECORD: ArmSetup(shipped, Ranking.LAST_RECORD, Strategy.AGGRESSIVE),
        Arm.CAREFUL: ArmSetup(shipped, Ranking.LAST_RECORD, Strategy.BALANCED),
        Arm.WHOLE: ArmSetup(shipped, Ranking.LAST_RECORD, Strategy.COMPLETE),
        Arm.NOBODY: ArmSetup(shipped),
    }[arm]


def _kip(strategy: UncleanRecoveryStrategy) -> ControllerRules:
    return ControllerRules(
        **{name: getattr(KIP_966, name) for name in KIP_966.__slots__} | {"strategy": strategy}
    )
