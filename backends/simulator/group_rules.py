"""What a coordinator does with a group of the classic protocol, as Kafka 4.3's does: pure functions over the group,
what happened, and the time.
"""

from __future__ import annotations

from backends.simulator.classic_group import (
    AwaitedRequest,
    ClassicGroup,
    ClassicMember,
    FirstWait,
    GroupHeartbeat,
    GroupPhase,
    GroupReply,
    GroupRequest,
    HeartbeatReplied,
    JoinGroup,
    JoinReply,
    LeaveGroup,
    LeaveReply,
    MemberClaim,
    SyncGroup,
    SyncReply,
)
from backends.simulator.group_rebalance import (
    FIRST_WAIT,
    GroupStep,
    LateReply,
    chosen_assignor,
    completed,
    completed_if_all_joined,
    joined,
    rebalance,
    removed,
    replaced,
    served,
)
from backends.simulator.loop import SECOND
from backends.simulator.messages import Error

SHORTEST_SESSION, LONGEST_SESSION = 6 * SECOND, 1800 * SECOND
"""group.min.session.timeout.ms and group.max.session.timeout.ms"""


def requested(group: ClassicGroup, request: GroupRequest, now: int) -> GroupStep:
    """A member's request arrives."""
    match request:
        case JoinGroup():
            return _join(group, request, now)
        case SyncGroup():
            return _sync(group, request, now)
        case GroupHeartbeat():
            error = claim_error(group, request.claim)
            if error is None and group.phase is GroupPhase.PREPARING_REBALANCE:
                error = Error.REBALANCE_IN_PROGRESS
            elif error is not None:
                return GroupStep(group, HeartbeatReplied(error))
            return GroupStep(alive(group, request.claim.member_id, now), HeartbeatReplied(error))
        case LeaveGroup():
            return _leave(group, request, now)


def written(group: ClassicGroup, generation: int, error: Error | None, now: int) -> GroupStep:
    """The assignment of a generation is replicated, or could not be written."""
    if group.phase is not GroupPhase.COMPLETING_REBALANCE or group.generation != generation:
        return GroupStep(group)
    waiting = [one for one in group.members if one.awaited is AwaitedRequest.SYNC]
    if error is not None:
        late = tuple(LateReply(one.id, AwaitedRequest.SYNC, SyncReply(error)) for one in waiting)
        calmed = replaced(group, (served(one, now)._replace(assignment=b"") for one in waiting))
        return rebalance(calmed, now, late)
    late = tuple(LateReply(one.id, AwaitedRequest.SYNC, _assigned(group, one)) for one in waiting)
    stable = replaced(group, (served(one, now) for one in waiting))
    return GroupStep(stable._replace(phase=GroupPhase.STABLE), None, late)


def passed(group: ClassicGroup, now: int) -> GroupStep:
    """Time has passed: sessions end, and rebalances go on without those that are missing."""
    group = group._replace(promised=tuple((name, until) for name, until in group.promised if until > now))
    expired = [one for one in group.members if one.awaited is AwaitedRequest.NOTHING and one.expires <= now]
    if expired:
        return removed(group, expired, now)
    if group.phase is GroupPhase.PREPARING_REBALANCE:
        if group.deadline > now:
            return completed_if_all_joined(group, now)
        wait = group.first_wait
        if wait is not None and wait.grown and wait.left > 0:
            more = min(FIRST_WAIT, wait.left)
            return GroupStep(group._replace(deadline=now + more, first_wait=FirstWait(wait.left - more)))
        return completed(group, now)
    unsynced = [one for one in group.members if one.unsynced]
    if unsynced and group.deadline <= now:
        return removed(group, unsynced, now)
    return GroupStep(group)


def due(group: ClassicGroup) -> int | None:
    """When :func:`passed` is to be asked next; None: never, while nothing else happens."""
    times = [until for _, until in group.promised]
    times += [one.expires for one in group.members if one.awaited is AwaitedRequest.NOTHING]
    rebalancing = group.phase is GroupPhase.PREPARING_REBALANCE
    if rebalancing or any(one.unsynced for one in group.members):
        times.append(group.deadline)
    return min(times, default=None)


def loaded(group: ClassicGroup, now: int) -> ClassicGroup:
    """A group as a new coordinator finds it in its log: every member has a whole session to be heard of."""
    members = tuple(served(one, now)._replace(unsynced=False) for one in group.members)
    phase = GroupPhase.STABLE if members else GroupPhase.EMPTY
    return group._replace(phase=phase, members=members, promised=(), first_wait=None)


def alive(group: ClassicGroup, member_id: str, now: int) -> ClassicGroup:
    """The member was heard of: its session begins anew."""
    member = group.member(member_id)
    if member is None:
        return group
    return replaced(group, (member._replace(expires=now + member.session_timeout),))


def claim_error(group: ClassicGroup, claim: MemberClaim) -> Error | None:
    """What is wrong with a member's id, static name or generation."""
    error = _identity_error(group, claim.member_id, claim.instance)
    if error is None and claim.generation != group.generation:
        return Error.ILLEGAL_GENERATION
    return error


def commit_error(group: ClassicGroup | None, claim: MemberClaim, *, transactional: bool) -> Error | None:
    """Why offsets may not be committed. Clients without membership may while the group has no members;
    transactional ones of old versions always (KIP-447).
    """
    without_membership = not claim.member_id and claim.generation < 0 and claim.instance is None
    if group is None:
        return None if claim.generation < 0 else Error.ILLEGAL_GENERATION
    if claim.generation < 0 and group.phase is GroupPhase.EMPTY:
        return None
    if without_membership:
        return None if transactional else Error.UNKNOWN_MEMBER_ID
    error = claim_error(group, claim)
    if error is None and not transactional and group.phase is GroupPhase.COMPLETING_REBALANCE:
        return Error.REBALANCE_IN_PROGRESS
    return error


# JoinGroup.


def _join(group: ClassicGroup, asked: JoinGroup, now: int) -> GroupStep:
    if not SHORTEST_SESSION <= asked.session_timeout <= LONGEST_SESSION:
        return _refused_join(group, asked, Error.INVALID_SESSION_TIMEOUT)
    if not _supports(group, asked):
        return _refused_join(group, asked, Error.INCONSISTENT_GROUP_PROTOCOL)
    if not asked.member_id:
        return _join_as_new(group, asked, now)
    if any(name == asked.member_id for name, _ in group.promised):
        rest = tuple(row for row in group.promised if row[0] != asked.member_id)
        return _admitted(group._replace(promised=rest), asked, asked.member_id, now)
    error = _identity_error(group, asked.member_id, asked.instance)
    member = group.member(asked.member_id)
    if error is not None or member is None:
        return _refused_join(group, asked, error or Error.UNKNOWN_MEMBER_ID)
    return _join_again(group, asked, member, now)


def _join_as_new(group: ClassicGroup, asked: JoinGroup, now: int) -> GroupStep:
    before = group.static_member(asked.instance)
    if before is not None:
        return _static_member_replaced(group, asked, before, now)
    if asked.instance is None and asked.known_first:
        promised = (*group.promised, (asked.new_id, now + asked.session_timeout))
        named = group._replace(promised=promised)
        return GroupStep(named, JoinReply(Error.MEMBER_ID_REQUIRED, asked.new_id))
    return _admitted(group, asked, asked.new_id, now)


def _join_again(group: ClassicGroup, asked: JoinGroup, member: ClassicMember, now: int) -> GroupStep:
    """A member joins once more: after a rebalance began, to begin one, or because an answer was lost."""
    changed = member.offers != asked.offers
    if group.phase is GroupPhase.COMPLETING_REBALANCE and not changed:
        return GroupStep(alive(group, member.id, now), joined(group, member))
    if group.phase is GroupPhase.STABLE and not changed and group.leader != member.id:
        return GroupStep(alive(group, member.id, now), joined(group, member))
    return _joining(group, _with_request(member, asked), now)


def _admitted(group: ClassicGroup, asked: JoinGroup, member_id: str, now: int) -> GroupStep:
    empty = not group.members
    member = ClassicMember(
        member_id,
        asked.instance,
        asked.client_id,
        asked.host,
        asked.session_timeout,
        asked.rebalance_timeout,
        asked.offers,
        now + asked.session_timeout,
    )
    wait = group.first_wait
    group = group._replace(
        members=(*group.members, member),
        protocol_type=asked.protocol_type if empty else group.protocol_type,
        leader=group.leader or member_id,
        first_wait=None if wait is None else wait._replace(grown=True),
    )
    return _joining(group, member, now)


def _joining(group: ClassicGroup, member: ClassicMember, now: int) -> GroupStep:
    """The member waits for the next generation."""
    waiting = replaced(group, (member._replace(awaited=AwaitedRequest.JOIN),))
    return rebalance(waiting, now, ())


def _static_member_replaced(
    group: ClassicGroup, asked: JoinGroup, before: ClassicMember, now: int
) -> GroupStep:
    """A static member comes back under a new id: it keeps its place, and its former self is fenced."""
    late: tuple[LateReply, ...] = ()
    if before.awaited is AwaitedRequest.JOIN:
        fenced: GroupReply = JoinReply(Error.FENCED_INSTANCE_ID, before.id)
        late = (LateReply(before.id, AwaitedRequest.JOIN, fenced),)
    elif before.awaited is AwaitedRequest.SYNC:
        late = (LateReply(before.id, AwaitedRequest.SYNC, SyncReply(Error.FENCED_INSTANCE_ID)),)
    after = _with_request(served(before, now), asked)._replace(id=asked.new_id)
    leader_before = group.leader
    group = group._replace(
        members=tuple(after if one.id == before.id else one for one in group.members),
        leader=after.id if leader_before == before.id else leader_before,
    )
    if group.phase is not GroupPhase.STABLE or chosen_assignor(group) != group.assignor:
        step = _joining(group, after, now)
        return step._replace(late_replies=(*late, *step.late_replies))
    reply = joined(group, after)
    if group.leader == after.id and asked.skips_assignment:
        reply = reply._replace(skip_assignment=True)
    elif group.leader == after.id:
        reply = reply._replace(leader=leader_before or "", members=())
    return GroupStep(group, reply, late, written=True)


def _with_request(member: ClassicMember, asked: JoinGroup) -> ClassicMember:
    """As in Kafka, client id and host stay those of the first request, even of a former static member."""
    return member._replace(
        offers=asked.offers,
        session_timeout=asked.session_timeout,
        rebalance_timeout=asked.rebalance_timeout,
    )


def _supports(group: ClassicGroup, asked: JoinGroup) -> bool:
    """Whether the group can have an assignor that this member has too."""
    if not asked.protocol_type or not asked.offers:
        return False
    others = [one for one in group.members if one.id != asked.member_id]
    if not others:
        return True
    common = set.intersection(*({offer.name for offer in one.offers} for one in others))
    return group.protocol_type == asked.protocol_type and any(o.name in common for o in asked.offers)


def _refused_join(group: ClassicGroup, asked: JoinGroup, error: Error) -> GroupStep:
    return GroupStep(group, JoinReply(error, asked.member_id))


# SyncGroup and LeaveGroup.


def _sync(group: ClassicGroup, asked: SyncGroup, now: int) -> GroupStep:
    error = claim_error(group, asked.claim)
    if error is None and group.phase is GroupPhase.PREPARING_REBALANCE:
        error = Error.REBALANCE_IN_PROGRESS
    if error is None and (
        asked.protocol_type not in (None, group.protocol_type) or asked.assignor not in (None, group.assignor)
    ):
        error = Error.INCONSISTENT_GROUP_PROTOCOL
    member = group.member(asked.claim.member_id)
    if error is not None or member is None:
        return GroupStep(group, SyncReply(error or Error.UNKNOWN_MEMBER_ID))
    member = member._replace(unsynced=False, expires=now + member.session_timeout)
    if group.phase is GroupPhase.STABLE:
        return GroupStep(replaced(group, (member,)), _assigned(group, member))
    group = replaced(group, (member._replace(awaited=AwaitedRequest.SYNC),))
    if group.leader != member.id:
        return GroupStep(group)
    given = dict(asked.assignments)
    members = tuple(one._replace(assignment=given.get(one.id, b"")) for one in group.members)
    return GroupStep(group._replace(members=members), written=True)


def _assigned(group: ClassicGroup, member: ClassicMember) -> SyncReply:
    return SyncReply(None, group.protocol_type, group.assignor, member.assignment)


def _leave(group: ClassicGroup, asked: LeaveGroup, now: int) -> GroupStep:
    errors: list[Error | None] = []
    leaving: list[ClassicMember] = []
    names = {name for name, _ in group.promised}
    for member_id, instance in asked.members:
        static = group.static_member(instance)
        found = static if static is not None and not member_id else group.member(member_id)
        if member_id in names:
            group = group._replace(promised=tuple(row for row in group.promised if row[0] != member_id))
            errors.append(None)
            continue
        error = _identity_error(group, found.id if found else member_id, instance)
        errors.append(error)
        if error is None and found is not None:
            leaving.append(found)
    step = removed(group, leaving, now) if leaving else completed_if_all_joined(group, now)
    return step._replace(reply=LeaveReply(tuple(errors)))


def _identity_error(group: ClassicGroup, member_id: str, instance: str | None) -> Error | None:
    if instance is not None:
        static = group.static_member(instance)
        if static is None:
            return Error.UNKNOWN_MEMBER_ID
        return None if static.id == member_id else Error.FENCED_INSTANCE_ID
    return None if group.member(member_id) is not None else Error.UNKNOWN_MEMBER_ID
