"""The quorum pane's value, by the rules of recovery.membership."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from recovery.membership.preflight import (
    EndpointProbe,
    LivenessLimits,
    NodeIdentity,
    PreflightResult,
    before_adding,
    before_removing,
)
from recovery.membership.quorum import NEVER, MembershipRules, Quorum
from recovery.membership.quorum_health import (
    MemberRole,
    MemberState,
    QuorumHealth,
    committing,
    health,
    non_voter_leads,
)
from recovery.membership.quorum_without_leader import ADVICE, QuorumWithoutLeader, VoterHost
from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint
from recovery.model import NO_LEADER
from widgets.quorum import QuorumPaneRow, QuorumPaneView, QuorumRole, VoterChangePreview

_ROLES = {
    MemberRole.LEADER: QuorumRole.LEADER,
    MemberRole.VOTER: QuorumRole.VOTER,
    MemberRole.CONTROLLER: QuorumRole.OBSERVER,
    MemberRole.BROKER: QuorumRole.OBSERVER,
}


def quorum_view(quorum: Quorum | QuorumWithoutLeader, brokers: Collection[int]) -> QuorumPaneView:
    """``brokers`` are the ids of the cluster's brokers: as observers they can never be voters."""
    if isinstance(quorum, QuorumWithoutLeader):
        return _without_leader(quorum)
    controllers = {replica.key.id for replica in quorum.progress} - set(brokers)
    found = health(quorum, LivenessLimits(), controllers)
    return QuorumPaneView(
        leader=quorum.leader.id,
        leader_epoch=quorum.leader_epoch,
        high_watermark=quorum.high_watermark,
        log_end=quorum.log_end_offset if quorum.log_end_offset >= 0 else None,
        kraft_version=quorum.kraft_version,
        members=tuple(_members(found)),
        verdict=non_voter_leads(quorum) or str(found.strength),
        healthy=found.strength.spare > 0 and not quorum.led_by_non_voter,
        changes=tuple(_changes(found)),
        notes=tuple(_notes(found)),
    )


def _without_leader(lost: QuorumWithoutLeader) -> QuorumPaneView:
    """Each known voter, whether it answers, and what must come back."""
    members = tuple(
        QuorumPaneRow(
            QuorumRole.VOTER if lost.certain else QuorumRole.CONTROLLER,
            host.key.id,
            # Several may be known only by their addresses; id and directory distinguish the rows.
            host.key.directory_id or (host.address if host.key.id < 0 else ""),
            host.offset,
            None,
            None,
            None,
            host.address,
            _answers(host),
        )
        for host in lost.down_first
    )
    notes = (f"below: {lost.hosts_title}", *(ADVICE if lost.missing else ())) if members else ()
    return QuorumPaneView(NO_LEADER, NO_LEADER, None, None, None, members, lost.sentence, False, (), notes)


def _answers(host: VoterHost) -> str:
    if host.votes:
        return "answers"
    if host.answers:
        return f"NEW DISK, no voter: {host.other}"
    return f"{'NO ANSWER' if host.may_be_up else 'DOWN'}: {host.why}"


def _members(found: QuorumHealth) -> Iterator[QuorumPaneRow]:
    for member in found.silent_first:
        note = "" if member.state is MemberState.CAUGHT_UP else str(member.state)
        if member.role is MemberRole.BROKER:
            note = f"broker; {note}" if note else "broker"
        if member.twice:
            note = f"{note}; listed twice" if note else "listed twice"
        yield QuorumPaneRow(
            _ROLES[member.role],
            member.key.id,
            member.key.directory_id,
            NEVER if member.lag is None else found.quorum.log_end_offset - member.lag,
            member.lag,
            None if member.fetch_ms is None else member.fetch_ms / 1000,
            None if member.lag_ms is None else member.lag_ms / 1000,
            ", ".join(map(str, member.endpoints)),
            note,
        )


def _changes(found: QuorumHealth) -> Iterator[VoterChangePreview]:
    """Each voter's removal as judged by the rules, and the observers that could be added."""
    for key in found.quorum.voters.keys:
        verdict = before_removing(found.quorum, key, LivenessLimits())
        why = "; ".join(verdict.refused or verdict.warnings) or f"then: {verdict.after}"
        yield VoterChangePreview(f"remove voter {key.id}", verdict.allowed, why)
    for member in found.members:
        if member.role is not MemberRole.CONTROLLER:
            continue
        gone = member.state is MemberState.GHOST
        verdict = _adding(found.quorum, member.key)
        why = "; ".join(verdict.refused or verdict.warnings) or f"then: {verdict.after}"
        yield VoterChangePreview(
            f"add observer {member.key.id}",
            not gone and verdict.allowed,
            "it does not fetch any more" if gone and found.dynamic else why,
        )


def _adding(quorum: Quorum, key: ReplicaKey) -> PreflightResult:
    """The preflight without contacting the node; the node is contacted before anything is sent."""
    itself = VoterEndpoint(quorum.default_listener, "", 0)
    answer = EndpointProbe(itself, NodeIdentity(quorum.cluster_id, key.id, (0, quorum.kraft_version)))
    return before_adding(quorum, Voter(key, (itself,)), [answer], MembershipRules(), LivenessLimits())


_STATIC = "the voters are static (kraft.version 0): upgrade the feature first"


def _notes(found: QuorumHealth) -> Iterator[str]:
    if not found.dynamic:
        yield _STATIC
    if found.strength.commits and not committing(found.quorum):
        yield "a majority was not caught up at the last reading: press r to see whether it commits now"
    for node in found.duplicates:
        mine = [m for m in found.members if m.key.id == node]
        votes = any(m.role is MemberRole.VOTER and m.state is MemberState.SILENT for m in mine)
        which = (
            "an old disk of it is still a voter"
            if votes
            else "the old one disappears from this list after a while"
        )
        yield f"node {node} is listed with more than one directory: {which}"
    if not found.strength.commits:
        yield "a majority of the voters is down: nothing can be committed, no leader elected, no broker unfenced"
