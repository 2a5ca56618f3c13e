"""What is wrong with a cluster as a whole, the worst first: quorum, brokers, disks, partitions.

Without a quorum the partition states date from before it was lost: leaders may be dead, and no leader can be
elected. So nothing is reported as healthy unless that was observed.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from recovery.model import Survey, Unknown, Why


class QuorumState(StrEnum):
    """Whether the metadata quorum can commit changes, as far as known."""

    LED = "led"
    CANNOT_COMMIT = "cannot commit"
    NO_LEADER = "no leader"
    NOT_TOLD = "not told"


def quorum_state(quorum: Unknown | None, *, commits: bool) -> QuorumState:
    """``quorum`` is why it could not be described, None where it was; ``commits`` counts only then.

    A broker holds a request for the active controller until there is one, and a controller that is not the
    leader says so: both mean that no leader is known. A missing permission or API says nothing about the
    quorum.
    """
    if quorum is None:
        return QuorumState.LED if commits else QuorumState.CANNOT_COMMIT
    return QuorumState.NOT_TOLD if quorum.why in (Why.NOT_ALLOWED, Why.NOT_OFFERED) else QuorumState.NO_LEADER


class ClusterHealth(NamedTuple):
    """``dead_voters`` do not fetch; ``brokers_down`` are fenced, or do not answer from here; by id.

    ``offline`` and ``under_min_isr`` count partitions, the second without the first. ``unseen``: there are,
    or may be, partitions that this caller is not allowed to see.
    """

    quorum: QuorumState
    dead_voters: tuple[int, ...]
    brokers_down: tuple[int, ...]
    failed_dirs: int
    offline: int
    under_min_isr: int
    unseen: bool

    @property
    def current(self) -> bool:
        """Whether the partition states are current: the quorum has a leader, so changes are committed and
        replicated.
        """
        return self.quorum in (QuorumState.LED, QuorumState.NOT_TOLD)

    @property
    def well(self) -> bool:
        """Whether everything could be read, and nothing is wrong."""
        wrong = (self.dead_voters, self.brokers_down, self.failed_dirs, self.offline, self.under_min_isr)
        return self.quorum is QuorumState.LED and not any(wrong) and not self.unseen


def led_under(surveys: Iterable[Survey]) -> int:
    """How many partitions have a leader and are under min ISR. Offline partitions, nearly always under it
    too, are not counted.
    """
    return sum(1 for survey in surveys if not survey.state.offline and missing_in_sync(survey) > 0)


def missing_in_sync(survey: Survey) -> int:
    """How many replicas the ISR lacks to reach min ISR, or to reach 1 if min ISR is unknown."""
    needed = 1 if isinstance(survey.min_isr, Unknown) else survey.min_isr
    return max(0, needed - len(survey.state.isr))
