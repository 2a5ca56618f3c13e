"""What elections did to the clients of their partitions: consumer groups and transactions, read together."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from backends.base.errors import BackendError
from backends.base.protocol import Backend, Progress
from console.operations.consumers.group_offsets import (
    GroupOffset,
    GroupOffsets,
    GroupSelection,
    read_group_offsets,
)
from console.operations.consumers.hanging_transactions import (
    JudgedTransaction,
    PartitionsTransactions,
    read_transactions,
)
from console.rescue.rescued_branch import RescueContents
from recovery.model import Unknown, Why
from recovery.plan.values import BarePlan, Plan
from recovery.wording.quantity_text import counted

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ElectionAftermath:
    """Groups and transactions on a plan's partitions; Unknown where they could not be read at all."""

    groups: GroupOffsets | Unknown
    transactions: PartitionsTransactions | Unknown

    @property
    def affected(self) -> tuple[GroupOffset, ...]:
        """The offsets of groups that are not known to read on where they should."""
        return () if isinstance(self.groups, Unknown) else self.groups.concerned

    @property
    def hanging(self) -> tuple[JudgedTransaction, ...]:
        return () if isinstance(self.transactions, Unknown) else self.transactions.hanging

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
    return ElectionAftermath(
        await read_within(seconds, read_group_offsets(cluster, GroupSelection(plan), seconds, progress)),
        await read_within(
            seconds, read_transactions(cluster, partitions, progress=progress, rescue=rescue, plan=plan)
        ),
    )


async def read_within(seconds: float, work: Awaitable[T]) -> T | Unknown:
    """What is read, or why it was not: it took longer than ``seconds``, or a BackendError was raised."""
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError:
        return Unknown(Why.NOT_ANSWERED, f"not read within {seconds:g} s")
    except BackendError as error:
        return Unknown(Why.FAILED, str(error))
