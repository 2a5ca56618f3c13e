"""Adds to a plan which consumer groups its elections affect."""

from __future__ import annotations

from dataclasses import replace

from backends.base.errors import BackendError
from backends.base.protocol import Backend, Progress
from backends.base.time_limit import time_limit
from console.jobs.consumers.group_offsets import GroupOffset, GroupSelection, read_group_offsets
from recovery.model import Unknown
from recovery.plan.values import AffectedGroup, Plan

SECONDS = 10.0
"""No longer than this does a plan wait for its groups: they can be read afterwards too."""


async def with_groups(cluster: Backend, plan: Plan, progress: Progress | None = None) -> Plan:
    """The plan with the groups that its elections affect, or with the reason why they are not known."""
    if not plan.rows:
        return plan
    try:
        async with time_limit(cluster, SECONDS):
            offsets = await read_group_offsets(cluster, GroupSelection(plan), SECONDS, progress)
    except TimeoutError:
        return replace(plan, groups_unread=(f"they were not read within {SECONDS:g} s",))
    except BackendError as error:
        return replace(plan, groups_unread=(str(error),))
    unread = [str(why) for why in offsets.listing.not_listed]
    if offsets.unread:
        name, why = next(iter(offsets.unread.items()))
        unread.append(f"the offsets of {len(offsets.unread):,} groups were not read (group {name}: {why})")
    leaders = {row.tp: row.leader for row in plan.rows}
    found = (_affected(row, leaders[row.tp]) for row in offsets.concerned)
    affected = [row for row in found if row is not None]
    named = tuple(row for row in affected if row.group.isprintable())
    if len(named) < len(affected):
        unread.append(f"{len(affected) - len(named):,} groups have names that cannot be written on one line")
    return replace(plan, groups=named, groups_unread=tuple(filter(str.isprintable, unread)))


def _affected(row: GroupOffset, leader: int) -> AffectedGroup | None:
    judged = row.judgement
    if isinstance(judged, Unknown):
        return None
    committed = row.committed
    return AffectedGroup(
        row.tp,
        row.group.name,
        committed.offset,
        committed.epoch,
        judged.place,
        judged.go_back_to,
        leader,
    )
