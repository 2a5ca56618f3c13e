"""``ktriage check`` as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

from backends.base.answers import Offered
from backends.base.check_report import (
    CLUSTER_RESOURCE,
    GROUPS,
    TOPIC_RIGHTS,
    TOPICS,
    TRANSACTIONAL_IDS,
    CheckReport,
    PermissionCheck,
    Reachability,
)
from console.change.registry import COMMANDS
from console.journal.change_kinds import rights_of, used_for
from console.output.json_document import document
from console.reading.evidence_sources import FurtherSource
from console.reading.survey_json import cluster_json, health_json, unknown_json
from recovery.cluster_health import ClusterHealth, is_refusal
from recovery.model import Unknown
from recovery.wording.cluster_health_text import health_lines, stale_reason
from recovery.wording.quantity_text import counted, printable
from widgets.fields import Field, data_field, id_field, json_of, text_field, text_rows

NAMES_SHOWN = 5


class Job(StrEnum):
    """What a caller may want to do, by ``check --for``."""

    READ = "read"
    ELECT = "elect"
    HEAL = "heal"
    QUORUM = "quorum"
    GROUPS = "groups"


_COMMANDS: Mapping[Job, tuple[str, ...]] = {
    Job.READ: (),
    Job.ELECT: ("apply",),
    Job.HEAL: ("heal",),
    Job.QUORUM: ("quorum",),
    Job.GROUPS: ("groups", "transactions"),
}
"""The commands that change something for it: the registry knows what they send, and so what they need."""
_SEES = (("DESCRIBE", CLUSTER_RESOURCE),)
_SEES_TOPICS = (*_SEES, *((operation, TOPICS) for operation, use in TOPIC_RIGHTS.items() if use))
_READS: Mapping[Job, tuple[tuple[str, str], ...]] = {
    Job.READ: _SEES_TOPICS,
    Job.ELECT: _SEES_TOPICS,
    Job.HEAL: (*_SEES_TOPICS, ("DESCRIBE_CONFIGS", CLUSTER_RESOURCE)),
    Job.QUORUM: _SEES,
    Job.GROUPS: (
        *_SEES,
        ("DESCRIBE", TOPICS),
        ("READ", TOPICS),
        ("DESCRIBE", GROUPS),
        ("DESCRIBE", TRANSACTIONAL_IDS),
    ),
}


def needed(job: Job) -> frozenset[tuple[str, str]]:
    """The operations, each with its resource, that a job needs."""
    sent = (name for command in _COMMANDS[job] for name in COMMANDS[command].sends)
    return frozenset(_READS[job]) | rights_of(sent)


def checked_lines(
    checked: CheckReport,
    health: ClusterHealth,
    sources: Sequence[FurtherSource],
    job: Job | None = None,
    found: Sequence[str] = (),
) -> Iterator[str]:
    """What is wrong now, then counts, then brokers, permissions, further sources and calls; ``found`` are all
    problems, of the job if one is named.
    """
    yield from health_lines(health)
    if job is not None:
        yield f"for {job}: {counted(len(found), 'problem') if found else 'nothing is missing'}"
    cluster = checked.cluster
    reached = sum(1 for reach in checked.reach if reach.problem is None)
    yield f"cluster {cluster.cluster_id}, Kafka {cluster.release or 'of unknown release'}: ELR {_elr(checked)}"
    refused = sum(1 for reach in checked.reach if reach.problem is not None and is_refusal(reach.problem))
    lost = len(checked.reach) - reached - refused
    reached_text = f"{reached} reached from here, " + (f"{refused} not allowed, " if refused else "")
    yield f"{counted(len(checked.reach), 'broker')}: {reached_text}{lost} not"
    yield ""
    yield from text_rows(BROKER_REACH, checked.reach)
    yield ""
    yield from text_rows(PERMISSION, checked.rights)
    yield ""
    yield from text_rows(SOURCE, sources)
    yield ""
    offered = checked.capabilities
    yield f"replica logs: {offered.replica_logs}"
    yield f"designated elections: {printable(str(offered.designated_elections))}"
    yield from text_rows(CALL, offered.calls)


_NEEDS_NO_CONTROLLER = (Job.READ, Job.GROUPS)


def without_controller(health: ClusterHealth, job: Job | None) -> Iterator[str]:
    """That a controller which leads is missing, where the job needs one: what brokers tell is old without it, and
    nothing can be elected or changed.
    """
    why = stale_reason(health)
    if why and job not in _NEEDS_NO_CONTROLLER:
        yield f"{why}: no election and no change of the metadata can succeed now"


def _reach_problem(reach: Reachability, problem: Unknown) -> str:
    text = printable(str(problem))
    if is_refusal(problem):
        return f"broker {reach.broker} at {reach.address} answered, and refused: {text}"
    other = f"; --broker {reach.broker}=HOST:PORT gives another address"
    return f"broker {reach.broker} at {reach.address} was not reached ({text.removesuffix(other)}){other}"


def problems(checked: CheckReport, job: Job | None = None) -> list[str]:
    """Each problem on one line, with what to do. Of a job, only those that keep it from being done: a broker that
    the controller calls fenced need not be reached for it, and a permission that is not known counts as missing,
    but not on topics that nobody can tell of while a broker is down.
    """
    lines = [
        _reach_problem(reach, reach.problem)
        for reach in checked.reach
        if reach.problem is not None and (job is None or (job is not Job.QUORUM and reach.fenced is not True))
    ]
    wanted = None if job is None else needed(job)
    rights = [
        right for right in checked.rights if wanted is None or (right.operation, right.resource) in wanted
    ]
    missing, not_known = missing_rights(rights)
    lines += (*missing, *(not_known if wanted is not None else ()))
    if job in (Job.QUORUM, Job.GROUPS):
        return lines
    if isinstance(checked.hidden, Unknown):
        if job is not None:
            return lines
        lines.append(f"hidden topics: not known ({printable(checked.hidden.detail)})")
    elif checked.hidden:
        topics = counted(len(checked.hidden), "topic")
        lines.append(f"{topics} may not be seen: {_names(checked.hidden)}")
    return lines


def missing_rights(rights: Iterable[PermissionCheck]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Those that are missing, and those of which that is not known, each in one line."""
    missing = [
        f"missing: {right.operation} on {_resource(right)}, used for {_used_for(right)}"
        for right in rights
        if right.granted is False
    ]
    not_known = [
        f"not known: {right.operation} on {right.resource} ({printable(str(right.granted))})"
        for right in rights
        if isinstance(right.granted, Unknown) and not right.looked_at
    ]
    return tuple(missing), tuple(not_known)


def _elr(checked: CheckReport) -> str:
    enabled = checked.cluster.elr_enabled
    if isinstance(enabled, Unknown):
        return printable(str(enabled))
    return "enabled" if enabled else "not enabled"


def _available(reported: bool | Unknown | None) -> str:
    if reported is None:
        return "if given"
    return printable(str(reported)) if isinstance(reported, Unknown) else "yes" if reported else "no"


def _granted(right: PermissionCheck) -> str:
    if isinstance(right.granted, Unknown):
        if right.looked_at:
            return f"granted on what is seen; hidden topics: not known ({printable(right.granted.detail)})"
        return printable(str(right.granted))
    return "yes" if right.granted else "NO"


def _used_for(right: PermissionCheck) -> str:
    return ", ".join(filter(None, (right.used_for, *used_for(right.operation, right.resource))))


def _resource(right: PermissionCheck) -> str:
    if not right.missing:
        return right.resource
    noun = "group" if right.resource == GROUPS else "topic"
    return f"{len(right.missing)} of {counted(right.looked_at, noun)} ({_names(right.missing)})"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(names[:NAMES_SHOWN]) + (", …" if len(names) > NAMES_SHOWN else "")


def _from_here(reach: Reachability) -> str:
    if reach.problem:
        return printable(str(reach.problem))
    return "reached" + ("" if reach.verified else ", its id unknown")


def _versions(call: Offered) -> str:
    versions = call.versions
    return printable(str(versions)) if isinstance(versions, Unknown) else f"{versions[0]}-{versions[1]}"


def _known(value: object) -> object:
    return unknown_json(value) if isinstance(value, Unknown) else value


def _state_text(known: bool | None, yes: str, no: str) -> str:
    return "unknown" if known is None else yes if known else no


BROKER_REACH: tuple[Field[Reachability], ...] = (
    id_field("broker", "BROKER", lambda r: r.broker),
    Field(
        "address",
        "ADDRESS",
        lambda r: r.address,
        lambda r: r.address + (" (--broker)" if r.overridden else ""),
    ),
    data_field("overridden", lambda r: r.overridden),
    text_field("CONTROLLER SAYS", lambda r: _state_text(r.fenced, "fenced", "unfenced")),
    text_field("METADATA", lambda r: _state_text(r.caught_up, "caught up", "behind")),
    Field("problem", "FROM HERE", lambda r: _known(r.problem), _from_here, below=True),
    data_field("verified", lambda r: r.verified),
    data_field("caughtUp", lambda r: r.caught_up),
    data_field("fenced", lambda r: r.fenced),
)
PERMISSION: tuple[Field[PermissionCheck], ...] = (
    Field("operation", "PERMISSION", lambda r: r.operation),
    Field("resource", "ON", lambda r: r.resource, _resource),
    text_field("GRANTED", _granted),
    Field("usedFor", "USED FOR", _used_for, below=True),
    data_field("granted", lambda r: _known(r.granted)),
    data_field("missing", lambda r: list(r.missing)),
    data_field("lookedAt", lambda r: r.looked_at),
)
SOURCE: tuple[Field[FurtherSource], ...] = (
    Field("source", "SOURCE", lambda s: s.name),
    Field("available", "FROM HERE", lambda s: _known(s.available), lambda s: _available(s.available)),
    Field("needs", "NEEDS", lambda s: s.needs, lambda s: printable(s.needs), below=True),
    Field("adds", "ADDS", lambda s: s.adds, below=True),
)
CALL: tuple[Field[Offered], ...] = (
    Field("call", "CALL", lambda c: c.call),
    Field("versions", "VERSIONS", lambda c: _known(c.versions), _versions),
    Field("usedFor", "USED FOR", lambda c: c.used_for, below=True),
)


def checked_document(
    checked: CheckReport,
    health: ClusterHealth,
    sources: Sequence[FurtherSource],
    job: Job | None = None,
    found: Sequence[str] = (),
) -> Iterator[str]:
    """``ktriage.check/1``; ``found`` as in :func:`checked_lines`."""
    offered, hidden = checked.capabilities, checked.hidden
    return document(
        "check",
        {
            "cluster": cluster_json(checked.cluster),
            "health": health_json(health),
            "brokers": list(map(json_of(BROKER_REACH), checked.reach)),
            "permissions": list(map(json_of(PERMISSION), checked.rights)),
            "hiddenTopics": unknown_json(hidden) if isinstance(hidden, Unknown) else list(hidden),
            "replicaLogs": offered.replica_logs,
            "designatedElections": _known(offered.designated_elections),
            "features": dict(offered.features),
            "calls": list(map(json_of(CALL), offered.calls)),
            "sources": list(map(json_of(SOURCE), sources)),
            "for": job,
            "problems": list(found),
        },
    )
