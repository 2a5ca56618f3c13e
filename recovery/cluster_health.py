"""What is wrong with a cluster as a whole, the worst first: quorum, brokers, disks, partitions.

Without a quorum the partitions' states are those from before it was lost: leaders may be dead, and nobody can be
elected. So nothing is called well that was not seen to be.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from recovery.model import Survey, Unknown, Why


class QuorumState(StrEnum):
    """Whether the metadata quorum decides anything, as far as was seen."""

    LED = "led"
    CANNOT_COMMIT = "cannot commit"
    NO_LEADER = "no leader"
    NOT_TOLD = "not told"


def quorum_state(quorum: Unknown | None, *, commits: bool) -> QuorumState:
    """``quorum`` is why it could not be described, None where it was; ``commits`` counts only then.

    A broker keeps a question for the active controller until there is one, and a controller that does not lead says
    so: both mean that nobody is known to lead. A refusal or a missing call says nothing about the quorum.
    """
    if quorum is None:
        return QuorumState.LED if commits else QuorumState.CANNOT_COMMIT
    return QuorumState.NOT_TOLD if quorum.why in (Why.NOT_ALLOWED, Why.NOT_OFFERED) else QuorumState.NO_LEADER


class ClusterHealth(NamedTuple):
    """``dead_voters`` do not fetch; ``brokers_down`` are fenced, or do not answer from here; by id.

    ``offline`` and ``under_min_isr`` count partitions, the second without the first. ``unseen``: there are, or may
    be, partitions that this caller may not see.
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
        """Whether the partitions' states are of now: somebody leads, so that changes are decided and told."""
        return self.quorum in (QuorumState.LED, QuorumState.NOT_TOLD)

    @property
    def well(self) -> bool:
        """Whether everything was seen, and nothing is wrong."""
        wrong = (self.dead_voters, self.brokers_down, self.failed_dirs, self.offline, self.under_min_isr)
        return self.quorum is QuorumState.LED and not any(wrong) and not self.unseen


def led_under(surveys: Iterable[Survey]) -> int:
    """How many are led and under min ISR: beside the offline ones, which are nearly always under it too."""
    return sum(1 for survey in surveys if not survey.state.offline and missing_in_sync(survey) > 0)


def missing_in_sync(survey: Survey) -> int:
    """How many replicas the ISR lacks to reach min ISR; where that is not known, to reach 1."""
    needed = 1 if isinstance(survey.min_isr, Unknown) else survey.min_isr
    return max(0, needed - len(survey.state.isr))
