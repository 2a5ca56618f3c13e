"""Which partitions come first: Kafka's internal topics, then the tiers that the operator named, then the largest.

The order of a plan is the order in which its elections are sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import NamedTuple

from recovery.model import ReplicaLog, Survey, TopicPartition
from recovery.plan.topic_marks import INTERNAL_TOPICS


class TopicTier(NamedTuple):
    """Topics of equal importance; ``patterns`` as a shell writes them: ``*``, ``?``, ``[a-c]``."""

    name: str
    patterns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Importance:
    """``tiers``: the most important first. A topic belongs to the first tier that has a pattern for it."""

    tiers: tuple[TopicTier, ...] = ()

    def rank(self, topic: str) -> int:
        """0 for internal topics, 1 for the first tier, and so on; topics of no tier come last."""
        return 0 if topic in INTERNAL_TOPICS else _tier_number(self.tiers, topic)

    def ordered(self, surveys: Iterable[Survey]) -> tuple[Survey, ...]:
        """The most important partitions first; in a tier the largest, by the largest replica that answered."""
        return tuple(sorted(surveys, key=self.order))

    def order(self, survey: Survey) -> tuple[int, int, TopicPartition]:
        """The sort key of a partition whose logs were asked."""
        return self.rank(survey.state.topic), -log_size(survey), survey.tp


NO_TIERS = Importance()
"""Internal topics first, then the largest."""


@lru_cache(maxsize=65_536)
def _tier_number(tiers: tuple[TopicTier, ...], topic: str) -> int:
    for number, tier in enumerate(tiers, 1):
        if any(fnmatchcase(topic, pattern) for pattern in tier.patterns):
            return number
    return len(tiers) + 1


def log_size(survey: Survey) -> int:
    """The size in bytes of the partition's largest log that is known; 0 where none is."""
    logs = (replica.log for replica in survey.replicas)
    return max((log.size for log in logs if isinstance(log, ReplicaLog)), default=0)
