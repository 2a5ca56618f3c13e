"""Why the controller did not do what was asked for one partition."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from backends.live.errors import one_line
from recovery.model import TopicPartition

if TYPE_CHECKING:
    from kio.schema.errors import ErrorCode

_ELECTION_NOT_NEEDED = 84
_OTHER_FACTOR = 38
_RETRYABLE = frozenset((7, 41, 80, 83))
_DOUBTFUL = frozenset((-1, 0, 7))  # an unknown error, left out, REQUEST_TIMED_OUT
_FINAL = frozenset((3, 84))  # retriable for a client with old metadata; the controller's word is final


class PartitionRefusal(NamedTuple):
    """A partition's error code in an answer: ``code`` 0 where the answer left the partition out."""

    code: int
    name: str
    message: str
    retryable: bool

    @property
    def not_needed(self) -> bool:
        """ELECTION_NOT_NEEDED: the partition has a leader."""
        return self.code == _ELECTION_NOT_NEEDED

    @property
    def other_factor(self) -> bool:
        """INVALID_REPLICATION_FACTOR: the number of replicas is another one by now, and was not to change."""
        return self.code == _OTHER_FACTOR

    @property
    def doubtful(self) -> bool:
        """Whether it may have been carried out in spite of the error, or still will be."""
        return self.code in _DOUBTFUL

    def __str__(self) -> str:
        return f"{self.name}: {self.message}" if self.message else self.name


LEFT_OUT = PartitionRefusal(0, "not answered", "the controller's answer leaves this partition out", True)


def refusal(code: ErrorCode, message: str | None) -> PartitionRefusal | None:
    """An error code as a refusal; None for 0. ``retryable`` where Kafka says that trying again may help."""
    if not code:
        return None
    retryable = code in _RETRYABLE or (code.retriable and code not in _FINAL)
    return PartitionRefusal(int(code), code.name.upper(), one_line(message or ""), retryable)


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partition indexes by topic, as requests want them."""
    topics: dict[str, list[int]] = {}
    for tp in partitions:
        topics.setdefault(tp.topic, []).append(tp.partition)
    return topics
