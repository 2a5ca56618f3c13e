"""What elections did to the clients of their partitions: consumer groups and transactions, read together."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from backends.base.errors import BackendError
from backends.base.protocol import Backend, Progress
from backends.base.transactions import LEADERLESS
from console.jobs.consumers.group_offsets import (
    GroupOffset,
    GroupOffsets,
    GroupSelection,
    read_group_offsets,
)
from console.jobs.consumers.hanging_transactions import (
    JudgedTransaction,
    PartitionsTransactions,
    read_transactions,
)
from console.reading.partition_selection import described
from console.rescue_files.rescued_branch import RescueContents, cut_off_producers
from recovery.model import TopicPartition, Unknown, Why
from recovery.plan.values import BarePlan, Plan
from recovery.transactions.producer_sequences import RefusedProducer, refused
from recovery.wording.quantity_text import counted

T = TypeVar("T")

NO_RESCUE = Unknown(Why.NOT_ANSWERED, "only a rescue of what was cut off names them (--rescue DIR)")


class RefusedProducers(NamedTuple):
    """``unread``: why there may be others, one line each."""

    rows: tuple[RefusedProducer, ...]
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ElectionAftermath:
    """Groups and transactions on a plan's partitions; Unknown where they could not be read at all. ``producers``
    are those that the new leaders refuse; Unknown: why that is not known.
    """

    groups: GroupOffsets | Unknown
    transactions: PartitionsTransactions | Unknown
    producers: RefusedProducers | Unknown = NO_RESCUE

    @property
    def affected(self) -> tuple[GroupOffset, ...]:
        """The offsets of groups that are not known to read on where they should."""
        return () if isinstance(self.groups, Unknown) else self.groups.concerned

    @property
    def hanging(self) -> tuple[JudgedTransaction, ...]:
        return () if isinstance(self.transactions, Unknown) else self.transactions.hanging

    @property
    def refused_producers(self) -> tuple[RefusedProducer, ...]:
        return () if isinstance(self.producers, Unknown) else self.producers.rows

    @property
    def somebody(self) -> bool:
        """Whether a group, a transaction or a producer is known to need a person."""
        groups = any(not row.not_judged for row in self.affected)
        return bool(groups or self.hanging or self.refused_producers)

    @property
    def need_you(self) -> str:
        """How many groups and transactions, and producers if there are, a person has to look at, or that not all of
        them are known; empty where everything was read and nothing needs anybody. What was not read is no number.
        """
        groups = {row.group.name for row in self.affected if not row.not_judged}
        open_groups = {row.group.name for row in self.affected if row.not_judged} - groups
        some = [counted(len(groups), "group")]
        if self.hanging or not (self.transactions_unread or self.leaderless):
            some.append(counted(len(self.hanging), "transaction"))
        if self.refused_producers:
            some.append(counted(len(self.refused_producers), "producer"))
        unknown = [f"{counted(len(open_groups), 'group')} not judged"] if open_groups else []
        if self.leaderless:
            unknown.append(f"{counted(self.leaderless, 'partition')} without a leader not read")
        elif not self.all_read:
            unknown.append("not all groups and transactions could be read")
        rest = ", ".join(unknown)
        if not self.somebody:
            return f"Not known whether somebody needs you: {rest}" if rest else ""
        return f"{', '.join(some)} need you{f', or more: {rest}' if rest else ''}"

    @property
    def leaderless(self) -> int:
        """How many partitions were not read: nobody can read their transactions before somebody leads them."""
        return 0 if isinstance(self.transactions, Unknown) else self.transactions.leaderless

    @property
    def all_read(self) -> bool:
        """Whether there can be no other group or transaction that needs somebody."""
        return not (self.groups_unread or self.transactions_unread or self.leaderless)

    @property
    def in_short(self) -> str:
        """The clients that need something, and the commands for it; empty where none does, as far as was read."""
        words = []
        groups = {row.group.name for row in self.affected}
        if groups:
            words.append(f"{counted(len(groups), 'consumer group')} affected (ktriage groups fix)")
        if self.hanging:
            number = counted(len(self.hanging), "transaction")
            words.append(f"{number} may hang (ktriage transactions fix)")
        if self.refused_producers:
            number = counted(len(self.refused_producers), "producer")
            words.append(f"{number} refused by the new leaders (ktriage verify names them)")
        if self.groups_unread or self.transactions_unread:
            words.append("not all groups and transactions could be read (ktriage verify says which)")
        return "; ".join(words)

    @property
    def groups_unread(self) -> tuple[str, ...]:
        """Why there may be other affected groups."""
        if isinstance(self.groups, Unknown):
            return (str(self.groups),)
        unread = Counter(map(str, self.groups.unread.values()))
        rest = (f"{counted(number, 'group')}: {why}" for why, number in unread.items())
        return (*map(str, self.groups.listing.not_listed), *rest)

    @property
    def transactions_unread(self) -> tuple[str, ...]:
        """Why there may be other hanging transactions, in partitions that somebody leads."""
        if isinstance(self.transactions, Unknown):
            return (str(self.transactions),)
        return self.transactions.unread_reasons


async def read_aftermath(
    cluster: Backend,
    plan: Plan | BarePlan,
    seconds: float,
    progress: Progress | None = None,
    rescue: RescueContents | None = None,
) -> ElectionAftermath:
    """Each takes at most ``seconds``; never raises BackendError. Raises InputError where the rescue is damaged."""
    partitions = [row.tp for row in plan.rows]
    producers: RefusedProducers | Unknown = NO_RESCUE
    if rescue is not None:
        producers = await read_within(seconds, read_refused_producers(cluster, partitions, rescue))
    return ElectionAftermath(
        await read_within(seconds, read_group_offsets(cluster, GroupSelection(plan), seconds, progress)),
        await read_within(
            seconds, read_transactions(cluster, partitions, progress=progress, rescue=rescue, plan=plan)
        ),
        producers,
    )


async def read_refused_producers(
    cluster: Backend, partitions: Sequence[TopicPartition], rescue: RescueContents
) -> RefusedProducers:
    """Those whose last batches are in the rescue, and which the leaders of now know by older ones only. Raises
    BackendError; InputError where the rescue is damaged.
    """
    states = (await described(cluster, partitions)).states
    topic_ids = {(state.tp, state.topic_id) for state in states}
    cut_off = await asyncio.to_thread(cut_off_producers, rescue, topic_ids)
    led = {state.tp: state.leader for state in states if not state.offline}
    concerned = {one.tp for one in cut_off}
    answers = await cluster.transactions().open_in({tp: led[tp] for tp in led if tp in concerned})
    known = {tp: one.producers for tp, one in answers.items() if not isinstance(one, Unknown)}
    unread = Counter(str(answers.get(tp, LEADERLESS)) for tp in sorted(concerned) if tp not in known)
    reasons = tuple(f"{counted(number, 'partition')}: {why}" for why, number in unread.items())
    return RefusedProducers(refused(cut_off, known), reasons)


async def read_within(seconds: float, work: Awaitable[T]) -> T | Unknown:
    """What is read, or why it was not: it took longer than ``seconds``, or a BackendError was raised."""
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError:
        return Unknown(Why.NOT_ANSWERED, f"not read within {seconds:g} s")
    except BackendError as error:
        return Unknown(Why.FAILED, str(error))
