"""Consumer groups as a backend offers them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from recovery.groups.group_values import CommittedOffset, ConsumerGroup, GroupMembers
from recovery.model import PartitionState, TopicPartition, Unknown, Why
from recovery.wording.quantity_text import some_of

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"

Commits = Mapping[TopicPartition, CommittedOffset]


@dataclass(frozen=True, slots=True)
class GroupListing:
    """The groups that could be listed. ``not_listed`` says, one line each, why there may be others: an empty list
    of groups means "no groups" only where it is empty too.
    """

    groups: tuple[ConsumerGroup, ...]
    not_listed: tuple[Unknown, ...] = ()


def unlisted_groups(offsets_topic: Iterable[PartitionState]) -> Iterator[Unknown]:
    """Why there may be groups that nobody lists: partitions of __consumer_offsets without a leader."""
    offline = sorted(state.partition for state in offsets_topic if state.offline)
    if offline:
        one = len(offline) == 1
        partitions = f"partition{'' if one else 's'} {some_of(offline)} of {OFFSETS_TOPIC}"
        why = f"{partitions} {'has' if one else 'have'} no leader: the groups that are stored there are not listed"
        yield Unknown(Why.NOT_ANSWERED, why)


class ConsumerGroups(Protocol):
    """Implemented by each adapter. Every call may raise :mod:`backends.base.errors`."""

    async def listed(self) -> GroupListing:
        """Every group that its coordinator lists. Needs DESCRIBE on the cluster, or on each group."""
        ...

    async def committed(
        self, groups: Sequence[ConsumerGroup], partitions: Iterable[TopicPartition] | None
    ) -> Mapping[str, Commits | Unknown]:
        """The committed offsets of each group, on the partitions given or on all; without those partitions where it
        has committed nothing. Needs DESCRIBE on the group and on the topic.
        """
        ...

    async def members(self, groups: Sequence[ConsumerGroup]) -> Mapping[str, GroupMembers | Unknown]:
        """Who is in each group. Needs DESCRIBE on the group."""
        ...


class OffsetWriter(Protocol):
    """Commits offsets for groups that have no members. Every call may raise :mod:`backends.base.errors`."""

    async def commit(self, group: ConsumerGroup, offsets: Commits) -> Mapping[TopicPartition, str | None]:
        """For each partition None, or in one line why Kafka refused it. If it raises, any of them may have been
        committed. Needs READ on the group and on the topics.
        """
        ...
