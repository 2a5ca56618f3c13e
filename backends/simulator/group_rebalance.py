"""A rebalance of a classic group: who joins the next generation, and the replies that members wait for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple

from backends.simulator.classic_group import (
    AwaitedRequest,
    ClassicGroup,
    ClassicMember,
    FirstWait,
    GroupPhase,
    GroupReply,
    JoinReply,
    SyncReply,
)
from backends.simulator.loop import SECOND
from backends.simulator.messages import Error

FIRST_WAIT = 3 * SECOND
"""group.initial.rebalance.delay.ms"""


class LateReply(NamedTuple):
    """Answers the request of a member that was awaited."""

    member_id: str
    awaited: AwaitedRequest
    reply: GroupReply


class GroupStep(NamedTuple):
    """The group afterwards. ``reply`` is the answer to the request; None: it is answered later, or by
    ``late_replies``. ``written``: the group is to be appended to __consumer_offsets; the coordinator then calls
    ``group_rules.written``.
    """

    group: ClassicGroup
    reply: GroupReply | None = None
    late_replies: tuple[LateReply, ...] = ()
    written: bool = False


def joined(group: ClassicGroup, member: ClassicMember) -> JoinReply:
    members: tuple[tuple[str, str | None, bytes], ...] = ()
    if group.leader == member.id:
        members = tuple((one.id, one.instance, _subscription(group, one)) for one in group.members)
    return JoinReply(
        None, member.id, group.generation, group.protocol_type, group.assignor, group.leader or "", members
    )


def _subscription(group: ClassicGroup, member: ClassicMember) -> bytes:
    return next((offer.metadata for offer in member.offers if offer.name == group.assignor), b"")


def rebalance(group: ClassicGroup, now: int, late: tuple[LateReply, ...]) -> GroupStep:
    """Members are to join the next generation; it begins at once where all have."""
    if group.phase is GroupPhase.COMPLETING_REBALANCE:
        waiting = [one for one in group.members if one.awaited is AwaitedRequest.SYNC]
        in_progress = SyncReply(Error.REBALANCE_IN_PROGRESS)
        late = (*late, *(LateReply(one.id, AwaitedRequest.SYNC, in_progress) for one in waiting))
        group = replaced(group, (served(one, now)._replace(assignment=b"") for one in waiting))
    if group.phase is not GroupPhase.PREPARING_REBALANCE:
        first = group.phase is GroupPhase.EMPTY
        longest = longest_rebalance(group)
        members = tuple(one._replace(unsynced=False) for one in group.members)
        group = group._replace(
            phase=GroupPhase.PREPARING_REBALANCE,
            members=members,
            deadline=now + (FIRST_WAIT if first else longest),
            first_wait=FirstWait(max(longest - FIRST_WAIT, 0)) if first else None,
        )
    step = completed_if_all_joined(group, now)
    return step._replace(late_replies=(*late, *step.late_replies))


def completed_if_all_joined(group: ClassicGroup, now: int) -> GroupStep:
    joined = all(one.awaited is AwaitedRequest.JOIN for one in group.members) and not group.promised
    if group.phase is GroupPhase.PREPARING_REBALANCE and group.first_wait is None and joined:
        return completed(group, now)
    return GroupStep(group)


def completed(group: ClassicGroup, now: int) -> GroupStep:
    """The next generation: those that have joined, and static members that may still come."""
    members = tuple(m for m in group.members if m.awaited is AwaitedRequest.JOIN or m.instance is not None)
    rejoined = [one for one in members if one.awaited is AwaitedRequest.JOIN]
    group = group._replace(members=members)
    if members and not rejoined:
        return GroupStep(group._replace(deadline=now + longest_rebalance(group), first_wait=None))
    group = group._replace(generation=group.generation + 1, first_wait=None)
    if not members:
        empty = group._replace(phase=GroupPhase.EMPTY, assignor=None, leader=None)
        return GroupStep(empty, written=True)
    leader = group.leader if any(one.id == group.leader for one in rejoined) else rejoined[0].id
    group = group._replace(
        phase=GroupPhase.COMPLETING_REBALANCE,
        leader=leader,
        assignor=chosen_assignor(group),
        deadline=now + longest_rebalance(group),
    )
    group = replaced(group, (served(one, now)._replace(unsynced=True) for one in rejoined))
    late = (LateReply(one.id, AwaitedRequest.JOIN, joined(group, one)) for one in rejoined)
    return GroupStep(group, None, tuple(late))


def removed(group: ClassicGroup, leaving: Collection[ClassicMember], now: int) -> GroupStep:
    """Members are gone: the others share their partitions."""
    late = tuple(
        LateReply(
            one.id,
            one.awaited,
            JoinReply(Error.UNKNOWN_MEMBER_ID, one.id)
            if one.awaited is AwaitedRequest.JOIN
            else SyncReply(Error.UNKNOWN_MEMBER_ID),
        )
        for one in leaving
        if one.awaited is not AwaitedRequest.NOTHING
    )
    names = {one.id for one in leaving}
    members = tuple(one for one in group.members if one.id not in names)
    leader = group.leader if group.leader not in names else next((one.id for one in members), None)
    return rebalance(group._replace(members=members, leader=leader), now, late)


def chosen_assignor(group: ClassicGroup) -> str | None:
    """Each member votes for the first of its own that all have; most votes win."""
    common = set.intersection(*({offer.name for offer in one.offers} for one in group.members))
    votes = Counter(
        next(offer.name for offer in one.offers if offer.name in common) for one in group.members if common
    )
    return votes.most_common(1)[0][0] if votes else None


def longest_rebalance(group: ClassicGroup) -> int:
    return max((one.rebalance_timeout for one in group.members), default=0)


def served(member: ClassicMember, now: int) -> ClassicMember:
    """Nothing is awaited of it any more, and its session begins anew."""
    return member._replace(awaited=AwaitedRequest.NOTHING, expires=now + member.session_timeout)


def replaced(group: ClassicGroup, changed: Iterable[ClassicMember]) -> ClassicGroup:
    by_id = {one.id: one for one in changed}
    return group._replace(members=tuple(by_id.get(one.id, one) for one in group.members))
