"""Consumer groups of a simulated cluster, as an operator's client sees and changes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from backends.base.consumer_groups import OFFSETS_TOPIC, Commits, GroupListing, unlisted_groups
from backends.base.errors import Unreachable
from backends.simulator.classic_group import ClassicGroup
from backends.simulator.messages import Error
from backends.simulator.network import broker as node
from backends.simulator.operate.operator_client import OperatorClient, denied, silence
from backends.simulator.operate.session_store import SessionStore
from backends.simulator.operator_messages import (
    CommitGroupOffsets,
    GroupOffsetsCommitted,
    GroupOffsetsListed,
    ListedGroup,
    ListGroupOffsets,
)
from recovery.groups.group_values import ConsumerGroup, GroupKind, GroupMember, GroupMembers
from recovery.model import TopicPartition, Unknown, Why

_Answers = dict[int, Mapping[str, ListedGroup] | Unknown]
"""By broker."""
_MOVED = Unknown(Why.NOT_ANSWERED, "its coordinator is another one now")


class SimulatedConsumerGroups:
    """Implements :class:`backends.base.consumer_groups.ConsumerGroups`."""

    def __init__(self, client: OperatorClient) -> None:
        self._client = client

    async def listed(self) -> GroupListing:
        answers = self._answers()
        groups = tuple(
            ConsumerGroup(
                row.group.name, broker, GroupKind.CLASSIC, row.group.protocol_type, row.group.phase.value
            )
            for broker, answer in answers.items()
            if not isinstance(answer, Unknown)
            for row in answer.values()
        )
        states, _, _ = self._client.describe((OFFSETS_TOPIC,))
        silent = (answer for answer in answers.values() if isinstance(answer, Unknown))
        return GroupListing(groups, (*unlisted_groups(states), *silent))

    async def committed(
        self, groups: Sequence[ConsumerGroup], partitions: Iterable[TopicPartition] | None
    ) -> Mapping[str, Commits | Unknown]:
        wanted = None if partitions is None else frozenset(partitions)
        answers = self._answers()
        found: dict[str, Commits | Unknown] = {}
        for group in groups:
            row = _reported(answers, group)
            found[group.name] = (
                row
                if isinstance(row, Unknown)
                else {tp: c for tp, c in row.offsets if wanted is None or tp in wanted}
            )
        return found

    async def members(self, groups: Sequence[ConsumerGroup]) -> Mapping[str, GroupMembers | Unknown]:
        answers = self._answers()
        found: dict[str, GroupMembers | Unknown] = {}
        for group in groups:
            row = _reported(answers, group)
            if isinstance(row, Unknown):
                found[group.name] = row
                continue
            members = tuple(GroupMember(one.client_id, one.host) for one in row.group.members)
            found[group.name] = GroupMembers(members, row.group.assignor or "")
        return found

    def _answers(self) -> _Answers:
        """By broker. A broker that is fenced coordinates nothing, whether it answers or not."""
        _, reported = self._client.caught_up()
        brokers = [number for number, fenced in reported.brokers if not fenced]
        answers = self._client.all([(node(number), ListGroupOffsets()) for number in brokers])
        return dict(zip(brokers, map(_listed, answers), strict=True))


def _reported(answers: _Answers, group: ConsumerGroup) -> ListedGroup | Unknown:
    """What the group's coordinator says of it: nothing where it does not know it any more."""
    answer = answers.get(group.coordinator, _MOVED)
    if isinstance(answer, Unknown):
        return answer
    return answer.get(group.name, ListedGroup(ClassicGroup(group.name), ()))


def _listed(answer: object) -> Mapping[str, ListedGroup] | Unknown:
    if not isinstance(answer, GroupOffsetsListed):
        return silence(answer)
    if answer.error is not None:
        return denied(answer.error, "DESCRIBE", "the cluster", "ListGroups")
    return {row.group.name: row for row in answer.groups}


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
