"""The quorum as text and as JSON (docs/output.md, ``ktriage.quorum-status/1``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from console.operations.voters.quorum_state import QuorumReading
from console.output.json_document import document
from console.output.survey.survey_json import unknown_json
from console.output.text_table import TextColumn, table
from recovery.membership.directory_ids import directory_uuid
from recovery.membership.preflight import PreflightResult, VoterSetStrength
from recovery.membership.quorum import Quorum
from recovery.membership.quorum_health import (
    MemberRole,
    MemberState,
    QuorumHealth,
    QuorumMember,
    non_voter_leads,
)
from recovery.membership.quorum_without_leader import ADVICE, QuorumWithoutLeader, VoterHost
from recovery.membership.voters import ReplicaKey
from recovery.model import Unknown
from recovery.wording.quantity_text import counted, printable

_COLUMNS = (
    TextColumn("ROLE"),
    TextColumn("NODE", right=True),
    TextColumn("STATE"),
    TextColumn("LAG (OFFSETS)", right=True),
    TextColumn("BEHIND", right=True),
    TextColumn("LAST FETCH", right=True),
    TextColumn("DIRECTORY ID", below=True),
    TextColumn("UUID", below=True),
    TextColumn("ENDPOINT", below=True),
)


def status_lines(reading: QuorumReading) -> Iterator[str]:
    """The verdict first; then the voters, and every controller with a problem."""
    yield from verdict_lines(reading)
    members = [m for m in reading.health.silent_first if _shown(m)]
    yield ""
    yield from table(_COLUMNS, [_row(m) for m in members])
    left = len(reading.health.members) - len(members)
    if left:
        keep = "keeps" if left == 1 else "keep"
        yield f"… and {counted(left, 'observer')} that {keep} up (quorum replication shows all)"


def replication_lines(reading: QuorumReading) -> Iterator[str]:
    """Every replica of the metadata log, also on brokers."""
    yield _head(reading)
    yield from elsewhere_lines(reading.elsewhere)
    yield ""
    yield from table(_COLUMNS, [_row(m) for m in reading.health.silent_first])


def verdict_lines(reading: QuorumReading) -> Iterator[str]:
    """The quorum's version, how many failures it tolerates, and what is wrong with it."""
    found = reading.health
    yield _head(reading)
    yield from elsewhere_lines(reading.elsewhere)
    kind = "dynamic voters" if found.dynamic else "static voters: changed by controller.quorum.voters alone"
    yield f"kraft.version {found.quorum.kraft_version} ({kind})"
    yield str(found.strength)
    yield from trouble_lines(found)
    if isinstance(reading.controllers, Unknown):
        yield printable(
            f"which nodes are controllers and which are brokers is unknown: {reading.controllers}"
        )


def elsewhere_lines(elsewhere: Mapping[str, Quorum | Unknown]) -> Iterator[str]:
    """What runs at the other addresses that were named, where it is not in this quorum."""
    quorums = {address: found for address, found in elsewhere.items() if not isinstance(found, Unknown)}
    if quorums:
        yield f"{len(quorums) + 1} QUORUMS: the controllers that were named are not in one quorum"
    for address, other in quorums.items():
        voters = ", ".join(map(str, other.voters.keys))
        yield printable(
            f"{address} leads another quorum: cluster {other.cluster_id}, leader {other.leader.id} (epoch"
            f" {other.leader_epoch}), voters {voters}"
        )
    for address, found in elsewhere.items():
        if isinstance(found, Unknown):
            yield printable(f"{address}: which quorum it is in is not known: {found}")


def trouble_lines(found: QuorumHealth) -> Iterator[str]:
    """One line for each kind of problem; nothing if all is well."""
    if problem := non_voter_leads(found.quorum):
        yield problem
    if found.wedged:
        yield (
            "WEDGED: the leader answers, but its high watermark did not move within three seconds: a"
            " majority of the voters does not follow it"
        )
    for members, text in (
        (found.dead_voters, "voters that do not fetch"),
        (found.behind, "behind"),
        (found.dead_brokers, "brokers that do not fetch"),
        (found.ghosts, "ghosts (removed or dead, listed for some minutes more)"),
    ):
        if members:
            yield f"{text}: {', '.join(_name(m.key) for m in members)}"
    for node in found.duplicates:
        twice = [m for m in found.members if m.key.id == node]
        named = ", ".join(f"{m.key.directory_id or '?'} ({m.role}, {m.state})" for m in twice)
        yield f"node {node} is listed with {len(twice)} directories: {named}"


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
    yield f"cluster {lost.cluster_id}: {'NO LEADER' if lost.proved else 'NO LEADER REACHED'}"
    yield from (f"{one[0].upper()}{one[1:]}." for one in lost.sentences)
    if lost.hosts:
        yield ""
        yield f"{lost.hosts_title}:"
        rows = [
            (
                str(host.key.id) if host.key.id >= 0 else "not known",
                _state(host),
                _metadata_offset(lost, host),
                host.key.directory_id,
                host.address,
                printable(host.why or (f"last seen with {host.other}: no voter" if host.other else "")),
            )
            for host in lost.down_first
        ]
        columns = ("NODE", "", "METADATA HELD", "DIRECTORY ID", "ADDRESS", "WHY")
        yield from table([TextColumn(title, below=title == "WHY") for title in columns], rows, "  ")
        if lost.missing:
            yield ""
            yield from (f"  {line}" for line in ADVICE)


def _state(host: VoterHost) -> str:
    if host.may_be_up:
        return "NO ANSWER"
    if not host.answers:
        return "DOWN"
    return "NEW DISK" if host.other else "answers"


def _metadata_offset(lost: QuorumWithoutLeader, host: VoterHost) -> str:
    if host in lost.without_metadata:
        return "none reported"  # what is known of it was on the disk that it had
    return f"at least {host.offset:,}" if host.offset >= 0 else "not known"


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
            "wedged": found.wedged,
            "well": found.well,
            "behind": [key_json(m.key) for m in found.behind],
            "notFetching": [key_json(m.key) for m in found.dead_voters],
            "ghosts": [key_json(m.key) for m in found.ghosts],
            "duplicates": list(found.duplicates),
            "controllers": _controllers_json(reading),
            "elsewhere": [
                {"address": address, **_elsewhere_json(found)} for address, found in reading.elsewhere.items()
            ],
            "members": [member_json(m) for m in found.members],
        },
    )


def lost_document(lost: QuorumWithoutLeader, command: str = "quorum-status") -> Iterator[str]:
    """The same document for a quorum without a leader."""
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
                    "answers": host.answers,
                    "why": host.why,
                    "logEndOffset": host.log_end_offset,
                    "metadataOffset": host.metadata_offset,
                    "otherDirectoryId": host.other,
                }
                for host in lost.hosts
            ],
        },
    )


def _elsewhere_json(found: Quorum | Unknown) -> dict[str, object]:
    if isinstance(found, Unknown):
        return unknown_json(found)
    voters = [key_json(key) for key in found.voters.keys]
    return {
        "clusterId": found.cluster_id,
        "leader": found.leader.id,
        "leaderEpoch": found.leader_epoch,
        "voters": voters,
    }


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


def member_json(member: QuorumMember) -> dict[str, object]:
    return {
        **key_json(member.key),
        "role": str(member.role),
        "state": str(member.state),
        "lag": member.lag,
        "behindMs": member.lag_ms,
        "lastFetchMs": member.fetch_ms,
        "endpoints": [{"listener": e.listener, "host": e.host, "port": e.port} for e in member.endpoints],
    }


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


def _row(member: QuorumMember) -> tuple[str, ...]:
    return (
        str(member.role),
        str(member.key.id),
        str(member.state),
        "unknown" if member.lag is None else f"{member.lag:,}",
        _ago(member.lag_ms),
        _ago(member.fetch_ms),
        member.key.directory_id,
        directory_uuid(member.key.directory_id),
        _endpoints(member.endpoints),
    )


def _endpoints(endpoints: Iterable[object]) -> str:
    return printable(", ".join(map(str, endpoints)))


def _ago(ms: int | None) -> str:
    return "never" if ms is None else f"{ms / 1000:,.1f} s"


def _name(key: ReplicaKey) -> str:
    return f"{key.id} ({key.directory_id})" if key.directory_id else str(key.id)
