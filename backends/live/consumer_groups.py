"""Consumer groups of a running cluster: each broker is asked for the groups that it coordinates."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from backends.base.answers import Partitions
from backends.base.consumer_groups import OFFSETS_TOPIC, Commits, GroupListing, unlisted_groups
from backends.base.errors import BackendError
from backends.live.calls.consumer_groups import (
    commit_offsets,
    describe_classic,
    describe_consumer,
    fetch_offsets,
    list_groups,
)
from backends.live.calls.describe_cluster import describe_cluster
from backends.live.calls.describe_partitions import describe_partitions
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import as_unknown
from backends.live.nodes.brokers import BrokerFleet
from recovery.groups.group_values import ConsumerGroup, GroupKind, GroupMembers
from recovery.model import TopicPartition, Unknown, Why
from recovery.wording.quantity_text import some_of

COORDINATOR_SECONDS = 5.0
"""A broker that hangs must not keep the groups of the others waiting."""
GROUPS_A_REQUEST = 100
NAMED_PARTITIONS = 64
"""Above this number of partitions each group is asked for all its offsets: few groups have many."""

T = TypeVar("T")
GroupCall = Callable[[BrokerConnection, Sequence[str]], Awaitable[Mapping[str, T | Unknown]]]


async def described_topic(fleet: BrokerFleet, topic: str) -> Partitions | Unknown:
    """The partitions of an internal topic, or why they are not known."""
    try:
        return (await fleet.any(lambda conn: describe_partitions(conn, (topic,)))).value
    except BackendError as error:
        return as_unknown(error)


class LiveConsumerGroups:
    """Implements :class:`backends.base.consumer_groups.ConsumerGroups`."""

    def __init__(self, fleet: BrokerFleet) -> None:
        self._fleet = fleet

    async def listed(self) -> GroupListing:
        brokers = self._fleet.coordinators
        answers, offsets, visible = await asyncio.gather(
            asyncio.gather(*map(self._listed_by, brokers)),
            described_topic(self._fleet, OFFSETS_TOPIC),
            self._sees_all(),
        )
        groups = tuple(group for answer in answers if not isinstance(answer, Unknown) for group in answer)
        failed = {
            broker: answer
            for broker, answer in zip(brokers, answers, strict=True)
            if isinstance(answer, Unknown)
        }
        return GroupListing(groups, tuple(_not_listed(failed, offsets, visible)))

    async def _listed_by(self, broker: int) -> tuple[ConsumerGroup, ...] | Unknown:
        try:
            async with asyncio.timeout(COORDINATOR_SECONDS):
                return await list_groups(await self._fleet.connection(broker))
        except TimeoutError:
            return no_answer(broker)
        except BackendError as error:
            return as_unknown(error)

    async def _sees_all(self) -> bool | Unknown:
        try:
            reported = (await self._fleet.any(partial(describe_cluster, operations=True))).value
        except BackendError as error:
            return as_unknown(error)
        return reported.operations is not None and reported.operations.allows("DESCRIBE")

    async def committed(
        self, groups: Sequence[ConsumerGroup], partitions: Iterable[TopicPartition] | None
    ) -> Mapping[str, Commits | Unknown]:
        wanted = None if partitions is None else frozenset(partitions)
        named = None if wanted is None or len(wanted) > NAMED_PARTITIONS else sorted(wanted)

        async def fetch(conn: BrokerConnection, names: Sequence[str]) -> Mapping[str, Commits | Unknown]:
            found = await fetch_offsets(conn, names, named)
            if wanted is None or named is not None:
                return found
            return {
                group: commits
                if isinstance(commits, Unknown)
                else {tp: offset for tp, offset in commits.items() if tp in wanted}
                for group, commits in found.items()
            }

        return await self._ask_coordinators(groups, fetch)

    async def members(self, groups: Sequence[ConsumerGroup]) -> Mapping[str, GroupMembers | Unknown]:
        classic = [group for group in groups if group.kind is GroupKind.CLASSIC]
        newer = [group for group in groups if group.kind is GroupKind.CONSUMER]
        unreported = Unknown(Why.NOT_OFFERED, "the members of this kind of group are not asked for")
        found: dict[str, GroupMembers | Unknown] = {group.name: unreported for group in groups}
        found.update(await self._ask_coordinators(classic, describe_classic))
        found.update(await self._ask_coordinators(newer, describe_consumer))
        return found

    async def _ask_coordinators(
        self, groups: Sequence[ConsumerGroup], ask: GroupCall[T]
    ) -> dict[str, T | Unknown]:
        """All coordinators at once, and each with one request at a time, for a part of its groups."""
        by_broker: dict[int, list[str]] = {}
        for group in groups:
            by_broker.setdefault(group.coordinator, []).append(group.name)

        async def one(broker: int, names: list[str]) -> dict[str, T | Unknown]:
            found: dict[str, T | Unknown] = {}
            for start in range(0, len(names), GROUPS_A_REQUEST):
                part = names[start : start + GROUPS_A_REQUEST]
                try:
                    found.update(await ask(await self._fleet.connection(broker), part))
                except BackendError as error:
                    found.update(dict.fromkeys(part, as_unknown(error)))
            return found

        answers = await asyncio.gather(*(one(broker, names) for broker, names in by_broker.items()))
        return {name: value for answer in answers for name, value in answer.items()}


class LiveOffsetWriter:
    """Implements :class:`backends.base.consumer_groups.OffsetWriter`."""

    def __init__(self, fleet: BrokerFleet) -> None:
        self._fleet = fleet

    async def commit(self, group: ConsumerGroup, offsets: Commits) -> Mapping[TopicPartition, str | None]:
        return await commit_offsets(await self._fleet.connection(group.coordinator), group.name, offsets)


def no_answer(broker: int) -> Unknown:
    """For a coordinator that did not answer in time."""
    return Unknown(Why.NOT_ANSWERED, f"broker {broker}: no answer within {COORDINATOR_SECONDS:g} s")


def _not_listed(
    failed: Mapping[int, Unknown], offsets: Partitions | Unknown, visible: bool | Unknown
) -> Iterable[Unknown]:
    """Why there may be groups that nobody listed."""
    if isinstance(offsets, Unknown):
        yield Unknown(offsets.why, f"whether {OFFSETS_TOPIC} is whole is not known: {offsets.detail}")
        yield from failed.values()
        return
    if OFFSETS_TOPIC in offsets.hidden:
        why = f"needs DESCRIBE on Topic:{OFFSETS_TOPIC} to tell whether a part of it is offline"
        yield Unknown(Why.NOT_ALLOWED, why)
        yield from failed.values()
    yield from unlisted_groups(offsets.states)
    for broker, why_not in failed.items():
        led = sorted(state.partition for state in offsets.states if state.leader == broker)
        if led:
            yield Unknown(
                why_not.why,
                f"broker {broker} did not list its groups ({why_not.detail}), and leads {some_of(led)} of"
                f" {OFFSETS_TOPIC}",
            )
    if visible is not True:
        detail = (
            "only groups that this user may describe are listed: DESCRIBE on Cluster:kafka-cluster shows all"
        )
        yield Unknown(Why.NOT_ALLOWED, detail)
