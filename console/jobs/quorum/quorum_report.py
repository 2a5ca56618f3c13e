"""The quorum: its members and what is wrong with it, each described once for pane 4, ``quorum status``, ``status``
and ``ktriage.quorum-status/1`` (docs/output.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

from console.output.json_document import document
from console.reading.quorum_state import QuorumReading
from console.reading.survey_json import unknown_json
from recovery.membership.controllers_asked import AskedController, ControllersAsked
from recovery.membership.directory_ids import directory_uuid
from recovery.membership.preflight import PreflightResult, VoterSetStrength
from recovery.membership.quorum_health import (
    NO_BROKER_ASKED,
    KnownBrokers,
    MemberRole,
    MemberState,
    QuorumHealth,
    QuorumMember,
    non_voter_leads,
)
from recovery.membership.quorum_without_leader import QuorumWithoutLeader, VoterHost
from recovery.membership.voters import ReplicaKey
from recovery.metadata_log.rebuilt_log import RebuiltLog
from recovery.model import Unknown
from recovery.wording.advice_text import WARNING as ADVICE_WARNING
from recovery.wording.after_rebuild_text import growth_line, rebuilt_line
from recovery.wording.cluster_advice import quorum_advice, wait_for_vote
from recovery.wording.lost_quorum_text import WARNING, leader_state, way_lines, ways_back
from recovery.wording.quantity_text import both, counted, printable
from widgets.fields import Field, json_row, text_rows
from widgets.text import Tone

_TONES = {
    MemberState.CAUGHT_UP: Tone.GOOD,
    MemberState.BEHIND: Tone.WARN,
    MemberState.SILENT: Tone.BAD,
    MemberState.GHOST: Tone.DIM,
}
_ROLE_TONES = {MemberRole.LEADER: Tone.GOOD, MemberRole.VOTER: Tone.STRONG}
_STATES = [MemberState.SILENT, MemberState.GHOST, MemberState.BEHIND, MemberState.CAUGHT_UP]


def _ago(ms: int | None) -> str:
    return "never" if ms is None else f"{ms / 1000:,.1f} s"


def _tone(member: QuorumMember) -> Tone:
    return _TONES[member.state]


BRIEF: tuple[Field[QuorumMember], ...] = (
    Field(
        "role",
        "ROLE",
        lambda m: str(m.role),
        sort=lambda m: list(MemberRole).index(m.role),
        tone=lambda m: _ROLE_TONES.get(m.role, Tone.DIM),
    ),
    Field("id", "NODE", lambda m: m.key.id, lambda m: str(m.key.id), Tone.STRONG, right=True),
    Field("state", "STATE", lambda m: str(m.state), tone=_tone, sort=lambda m: _STATES.index(m.state)),
    Field("lag", "LAG (OFFSETS)", lambda m: m.lag, tone=_tone, right=True),
    Field("behindMs", "BEHIND", lambda m: m.lag_ms, lambda m: _ago(m.lag_ms), _tone, right=True),
)
"""What ``status`` shows of a member."""
MEMBERS: tuple[Field[QuorumMember], ...] = (
    *BRIEF,
    Field(
        "lastFetchMs", "LAST FETCH", lambda m: m.fetch_ms, lambda m: _ago(m.fetch_ms), right=True, priority=3
    ),
    Field("directoryId", "DIRECTORY ID", lambda m: m.key.directory_id, priority=6, below=True),
    Field("directoryUuid", "UUID", lambda m: directory_uuid(m.key.directory_id), priority=7, below=True),
    Field(
        "endpoints",
        "ENDPOINT",
        lambda m: [{"listener": e.listener, "host": e.host, "port": e.port} for e in m.endpoints],
        lambda m: printable(", ".join(map(str, m.endpoints))),
        priority=4,
        below=True,
    ),
)


def host_fields(lost: QuorumWithoutLeader) -> tuple[Field[VoterHost], ...]:
    """What is shown of a voter of a quorum without a leader."""
    return (
        Field(
            "id",
            "NODE",
            lambda h: h.key.id,
            lambda h: str(h.key.id) if h.key.id >= 0 else "not known",
            Tone.STRONG,
        ),
        Field(
            "answers",
            "",
            lambda h: h.answers,
            partial(_host_state, lost),
            lambda h: Tone.GOOD if h.votes else Tone.BAD,
        ),
        Field("", "METADATA HELD", lambda h: h.offset, partial(_metadata_held, lost), json=False),
        Field("directoryId", "DIRECTORY ID", lambda h: h.key.directory_id, priority=6),
        Field("address", "ADDRESS", lambda h: h.address, lambda h: printable(h.address), priority=4),
        Field(
            "why",
            "WHY",
            lambda h: h.why,
            lambda h: printable(h.why or (f"last seen with {h.other}: no voter" if h.other else "")),
            below=True,
            flex=True,
            shown_below=True,
        ),
    )


def status_lines(reading: QuorumReading) -> Iterator[str]:
    """The verdict first; then the voters, and every controller with a problem."""
    yield from verdict_lines(reading)
    members = [m for m in reading.health.silent_first if _shown(m)]
    yield ""
    yield from text_rows(MEMBERS, members)
    left = len(reading.health.members) - len(members)
    if left:
        keep = "keeps" if left == 1 else "keep"
        yield f"… and {counted(left, 'observer')} that {keep} up (quorum replication shows all)"


def replication_lines(reading: QuorumReading) -> Iterator[str]:
    """Every replica of the metadata log, also on brokers."""
    yield from finding_lines(reading)
    yield _head(reading)
    yield ""
    yield from text_rows(MEMBERS, reading.health.silent_first)


def verdict_lines(reading: QuorumReading) -> Iterator[str]:
    """The quorum's version, how many failures it tolerates, and what is wrong with it."""
    yield from finding_lines(reading)
    yield _head(reading)
    replaced = () if reading.earlier is None else reading.earlier.replaced
    problems = sentences(
        reading.health, reading.asked, replaced, advised=not reading.of_old_voters, explained=True
    )
    yield from (text for _, text in problems)
    if reading.rebuilt is not None:
        yield printable(rebuilt_line(reading.rebuilt, reading.health))
        yield from filter(None, (growth_line(reading.rebuilt, reading.health),))
    if isinstance(reading.controllers, Unknown):
        yield printable(
            f"which nodes are controllers and which are brokers is unknown: {reading.controllers}"
        )


def finding_lines(reading: QuorumReading) -> Iterator[str]:
    """What the controllers' own answers show to be wrong, and how many were asked and not reached."""
    yield from (printable(one.text) for one in reading.findings)
    if reading.asked is None:
        return
    if reading.findings or reading.asked.left_out:
        yield printable(reading.asked.counts)


def sentences(
    found: QuorumHealth,
    asked: ControllersAsked | None = None,
    replaced: Collection[ReplicaKey] = (),
    *,
    advised: bool = True,
    explained: bool = False,
    brokers: KnownBrokers = NO_BROKER_ASKED,
) -> Iterator[tuple[Tone, str]]:
    """How many failures the quorum tolerates, and one line for each kind of problem; ``advised``: what to do first,
    unless its voters must not run at all; ``explained``: with the command. ``replaced``: the voters that a rebuild
    replaced. ``brokers``: those that are known, where nobody was ``asked``.
    """
    known = brokers if asked is None else asked.brokers
    for advice in quorum_advice(found, replaced, known) if advised else ():
        yield Tone.STRONG, " ".join(filter(None, (advice.action, advice.instead)))
        yield from ((Tone.WARN, f"{ADVICE_WARNING}{warning}") for warning in advice.warnings)
        yield from ((Tone.PLAIN, f"  {reason}") for reason in advice.reasons if explained)
    kind = "dynamic voters" if found.dynamic else "static voters: changed by controller.quorum.voters alone"
    yield Tone.PLAIN, f"kraft.version {found.quorum.kraft_version} ({kind})"
    tolerates = str(found.strength) if asked is None else asked.strength(found)
    yield Tone.GOOD if found.strength.spare > 0 and tolerates == str(found.strength) else Tone.BAD, tolerates
    if problem := non_voter_leads(found.quorum):
        yield Tone.BAD, problem
    if found.wedged:
        yield (
            Tone.BAD,
            "WEDGED: the leader answers, but its high watermark did not move within three seconds: a"
            " majority of the voters does not follow it",
        )
    waiting = wait_for_vote(found, replaced)
    if waiting and not (found.dynamic and found.strength.spare <= 0):  # then it is the advice
        how = "quorum add gives it one" if found.dynamic else "first quorum upgrade, then quorum add"
        yield Tone.PLAIN, f"controllers without a vote: {both(waiting)} ({how})"
    for members, text in (
        (found.dead_voters, "voters that do not fetch"),
        (found.behind, "behind"),
        (found.dead_brokers, "brokers that do not fetch"),
        (found.ghosts, "ghosts (removed or dead, listed for some minutes more)"),
    ):
        if members:
            yield Tone.WARN, f"{text}: {', '.join(_name(m.key) for m in members)}"
    for node in found.duplicates:
        twice = [m for m in found.members if m.key.id == node]
        named = ", ".join(f"{m.key.directory_id or '?'} ({m.role}, {m.state})" for m in twice)
        votes = any(m.role is MemberRole.VOTER and m.state is MemberState.SILENT for m in twice)
        which = "the old one still votes" if votes else "the old one disappears after some minutes"
        yield Tone.WARN, f"{node} is listed with {len(twice)} disks: {named}; {which}"


def preflight_lines(verdict: PreflightResult, what: str) -> Iterator[str]:
    """The verdict on a change before it is sent."""
    yield f"preflight: {what}"
    yield f"  now:   {verdict.before}"
    if verdict.after is not None:
        yield f"  after: {verdict.after}"
    for reason in verdict.refused:
        yield printable(f"  refused: {reason}")
    for warning in verdict.warnings:
        yield printable(f"  note: {warning}")
    if verdict.allowed:
        yield "  no problem found"


def lost_lines(lost: QuorumWithoutLeader) -> Iterator[str]:
    """A quorum without a leader."""
    yield f"cluster {lost.cluster_id or 'not known'}: {leader_state(lost)}"
    yield from (f"{one[0].upper()}{one[1:]}." for one in lost.sentences)
    if lost.hosts:
        yield ""
        yield f"{lost.hosts_title}:"
        yield from text_rows(host_fields(lost), lost.down_first, "  ")
    if ways_back(lost):
        yield ""
        yield WARNING
        yield from way_lines(lost)


def _host_state(lost: QuorumWithoutLeader, host: VoterHost) -> str:
    if host.may_be_up:
        return "NO ANSWER"
    if not host.answers:
        return "DOWN"
    if host.key.id in lost.old_running:
        return "OLD DISK"
    return "NEW DISK" if host.other else "answers"


def _metadata_held(lost: QuorumWithoutLeader, host: VoterHost) -> str:
    if host in lost.without_metadata:
        return "none reported"  # what is known of it was on the disk that it had
    return f"at least to offset {host.offset:,}" if host.offset >= 0 else "not known"


def status_document(reading: QuorumReading, command: str = "quorum-status") -> Iterator[str]:
    """``ktriage.quorum-status/1``."""
    found = reading.health
    quorum = found.quorum
    return document(
        command,
        {
            "clusterId": reading.cluster_id,
            "leader": quorum.leader.id,
            "leaderEpoch": quorum.leader_epoch,
            "highWatermark": -1 if quorum.high_watermark is None else quorum.high_watermark,
            "logEndOffset": quorum.log_end_offset,
            "kraftVersion": quorum.kraft_version,
            "dynamic": found.dynamic,
            "strength": strength_json(found.strength),
            "rebuilt": rebuilt_json(reading.rebuilt),
            "wedged": found.wedged,
            "well": found.well,
            "behind": [key_json(m.key) for m in found.behind],
            "notFetching": [key_json(m.key) for m in found.dead_voters],
            "ghosts": [key_json(m.key) for m in found.ghosts],
            "duplicates": list(found.duplicates),
            "controllers": _controllers_json(reading),
            "problems": [{"problem": str(one.problem), "text": one.text} for one in reading.findings],
            "notReached": []
            if reading.asked is None
            else [_not_reached(one) for one in reading.asked.not_reached],
            "members": [{**key_json(m.key), **json_row(MEMBERS, m)} for m in found.members],
        },
    )


def lost_document(lost: QuorumWithoutLeader, command: str = "quorum-status") -> Iterator[str]:
    """The same document for a quorum without a leader."""
    fields = host_fields(lost)
    return document(
        command,
        {
            "clusterId": lost.cluster_id,
            "leader": -1,
            "well": False,
            "lost": {
                "sentence": lost.sentence,
                "majority": lost.majority,
                "missing": lost.missing if lost.certain else None,
                "votersKnown": lost.certain,
                "seenAt": lost.recorded_at,
            },
            "hosts": [
                {
                    **key_json(host.key),
                    "address": host.address,
                    **json_row(fields, host),
                    "logEndOffset": host.log_end_offset,
                    "metadataOffset": host.metadata_offset,
                    "otherDirectoryId": host.other,
                }
                for host in lost.hosts
            ],
        },
    )


def rebuilt_json(rebuilt: RebuiltLog | Unknown | None) -> object:
    """Where the quorum was rebuilt, and the voters that it replaced."""
    if rebuilt is None or isinstance(rebuilt, Unknown):
        return None if rebuilt is None else unknown_json(rebuilt)
    gone = [key_json(voter.key) for voter in rebuilt.gone]
    return {"offset": rebuilt.offset, "epoch": rebuilt.epoch, "replaced": gone}


def _not_reached(one: AskedController) -> dict[str, object]:
    return {"address": one.address, **({} if one.problem is None else unknown_json(one.problem))}


def strength_json(strength: VoterSetStrength) -> dict[str, object]:
    return {
        "voters": [key_json(key) for key in strength.voters.keys],
        "up": [key.id for key in strength.up],
        "down": [key.id for key in strength.down],
        "majority": strength.voters.majority,
        "failuresStood": strength.spare if strength.commits else -1,
        "commits": strength.commits,
    }


def key_json(key: ReplicaKey) -> dict[str, object]:
    """A replica by node and directory, the directory in both forms."""
    return {"id": key.id, "directoryId": key.directory_id, "directoryUuid": directory_uuid(key.directory_id)}


def _controllers_json(reading: QuorumReading) -> object:
    if isinstance(reading.controllers, Unknown):
        return unknown_json(reading.controllers)
    return [{"id": c.id, "host": c.host, "port": c.port} for c in reading.controllers]


def _head(reading: QuorumReading) -> str:
    quorum = reading.quorum
    mark = "none yet" if quorum.high_watermark is None else f"{quorum.high_watermark:,}"
    return (
        f"cluster {reading.cluster_id}: quorum led by {quorum.leader.id} (epoch {quorum.leader_epoch}),"
        f" high watermark {mark}, log end {quorum.log_end_offset:,}"
    )


def _shown(member: QuorumMember) -> bool:
    return member.role in (MemberRole.LEADER, MemberRole.VOTER, MemberRole.CONTROLLER) or (
        member.state is not MemberState.CAUGHT_UP
    )


def _name(key: ReplicaKey) -> str:
    return f"{key.id} ({key.directory_id})" if key.directory_id else str(key.id)
