"""Consumer groups of a simulated cluster, as an operator's client sees and changes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from backends.base.consumer_groups import Commits, GroupListing
from backends.base.errors import Unreachable
from backends.simulator.messages import Error
from backends.simulator.network import broker as node
from backends.simulator.operate.operator_client import OperatorClient, denied, silence
from backends.simulator.operate.session_store import SessionStore
from backends.simulator.operator_messages import (
    CommitGroupOffsets,
    GroupOffsetsCommitted,
    GroupOffsetsListed,
    ListGroupOffsets,
)
from recovery.groups.group_values import ConsumerGroup, GroupKind, GroupMembers
from recovery.model import TopicPartition, Unknown, Why


class SimulatedConsumerGroups:
    """Implements :class:`backends.base.consumer_groups.ConsumerGroups`."""

    def __init__(self, client: OperatorClient) -> None:
        self._client = client

    async def listed(self) -> GroupListing:
        answers = self._answers()
        groups = tuple(
            ConsumerGroup(group, broker, GroupKind.CLASSIC, "consumer", "Empty")
            for broker, answer in answers.items()
            if not isinstance(answer, Unknown)
            for group in answer
        )
        return GroupListing(groups, tuple(a for a in answers.values() if isinstance(a, Unknown)))

    async def committed(
        self, groups: Sequence[ConsumerGroup], partitions: Iterable[TopicPartition] | None
    ) -> Mapping[str, Commits | Unknown]:
        wanted = None if partitions is None else frozenset(partitions)
        answers = self._answers()
        found: dict[str, Commits | Unknown] = {}
        for group in groups:
            answer = answers.get(
                group.coordinator, Unknown(Why.NOT_ANSWERED, "its coordinator is another one now")
            )
            if isinstance(answer, Unknown):
                found[group.name] = answer
                continue
            offsets = answer.get(group.name, {})
            found[group.name] = {tp: c for tp, c in offsets.items() if wanted is None or tp in wanted}
        return found

    async def members(self, groups: Sequence[ConsumerGroup]) -> Mapping[str, GroupMembers | Unknown]:
        return {group.name: GroupMembers((), "") for group in groups}

    def _answers(self) -> dict[int, Mapping[str, Commits] | Unknown]:
        """By broker. A broker that is fenced coordinates nothing, whether it answers or not."""
        _, reported = self._client.caught_up()
        brokers = [number for number, fenced in reported.brokers if not fenced]
        answers = self._client.all([(node(number), ListGroupOffsets()) for number in brokers])
        return dict(zip(brokers, map(_listed, answers), strict=True))


def _listed(answer: object) -> Mapping[str, Commits] | Unknown:
    if not isinstance(answer, GroupOffsetsListed):
        return silence(answer)
    if answer.error is not None:
        return denied(answer.error, "DESCRIBE", "the cluster", "ListGroups")
    return {group: dict(offsets) for group, offsets in answer.groups}


class SimulatedOffsetWriter:
    """Implements :class:`backends.base.consumer_groups.OffsetWriter`."""

    def __init__(self, client: OperatorClient, store: SessionStore) -> None:
        self._client = client
        self._store = store

    async def commit(self, group: ConsumerGroup, offsets: Commits) -> Mapping[TopicPartition, str | None]:
        to, body = node(group.coordinator), CommitGroupOffsets(group.name, tuple(sorted(offsets.items())))
        self._store.sent(to, body)
        answer = self._client.one(to, body)
        self._store.save()
        if not isinstance(answer, GroupOffsetsCommitted):
            raise Unreachable(f"broker {group.coordinator}: {silence(answer).detail}")
        if answer.error is None:
            return dict.fromkeys(offsets)
        if answer.error is Error.GROUP_AUTHORIZATION_FAILED:
            return dict.fromkeys(offsets, f"OffsetCommit needs READ on Group:{group.name}")
        return dict.fromkeys(offsets, f"OffsetCommit answered {answer.error}")
