"""``ktriage check`` as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from backends.base.check_report import CheckReport, PermissionCheck, Reachability
from console.journal.change_kinds import used_for
from console.output.json_document import document
from console.reading.evidence_sources import FurtherSource
from console.reading.survey_json import cluster_json, health_json, unknown_json
from recovery.cluster_health import ClusterHealth, is_refusal
from recovery.model import Unknown
from recovery.wording.cluster_health_text import health_lines
from recovery.wording.quantity_text import counted, printable
from widgets.text_table import TextColumn, table

NAMES_SHOWN = 5


def checked_lines(
    checked: CheckReport, health: ClusterHealth, sources: Sequence[FurtherSource]
) -> Iterator[str]:
    """What is wrong now, then counts, then brokers, permissions, further sources and calls."""
    yield from health_lines(health)
    cluster = checked.cluster
    reached = sum(1 for reach in checked.reach if reach.problem is None)
    yield f"cluster {cluster.cluster_id}, Kafka {cluster.release or 'of unknown release'}: ELR {_elr(checked)}"
    refused = sum(1 for reach in checked.reach if reach.problem is not None and is_refusal(reach.problem))
    lost = len(checked.reach) - reached - refused
    reached_text = f"{reached} reached from here, " + (f"{refused} not allowed, " if refused else "")
    yield f"{counted(len(checked.reach), 'broker')}: {reached_text}{lost} not"
    yield ""
    yield from _reach_table(checked.reach)
    yield ""
    yield from _right_table(checked.rights)
    yield ""
    yield from _source_table(sources)
    yield ""
    yield from _call_table(checked)


def _reach_problem(reach: Reachability, problem: Unknown) -> str:
    text = printable(str(problem))
    if is_refusal(problem):
        return f"broker {reach.broker} at {reach.address} answered, and refused: {text}"
    return (
        f"broker {reach.broker} at {reach.address} was not reached ({text});"
        f" --broker {reach.broker}=HOST:PORT gives another address"
    )


def problems(checked: CheckReport) -> list[str]:
    """Each problem on one line, with what to do."""
    lines = [_reach_problem(reach, reach.problem) for reach in checked.reach if reach.problem is not None]
    for right in checked.rights:
        if right.granted is False:
            lines.append(f"missing: {right.operation} on {_resource(right)}, used for {_used_for(right)}")
    if isinstance(checked.hidden, Unknown):
        lines.append(f"hidden topics: not known ({printable(checked.hidden.detail)})")
    elif checked.hidden:
        topics = counted(len(checked.hidden), "topic")
        lines.append(f"{topics} may not be seen: {_names(checked.hidden)}")
    return lines


def _elr(checked: CheckReport) -> str:
    enabled = checked.cluster.elr_enabled
    if isinstance(enabled, Unknown):
        return printable(str(enabled))
    return "enabled" if enabled else "not enabled"


def _reach_table(reach: tuple[Reachability, ...]) -> Iterator[str]:
    columns = (
        TextColumn("BROKER", right=True),
        TextColumn("ADDRESS"),
        TextColumn("CONTROLLER SAYS"),
        TextColumn("METADATA"),
        TextColumn("FROM HERE", below=True),
    )
    rows = [
        (
            str(r.broker),
            r.address + (" (--broker)" if r.overridden else ""),
            "unknown" if r.fenced is None else "fenced" if r.fenced else "unfenced",
            "unknown" if r.caught_up is None else "caught up" if r.caught_up else "behind",
            printable(str(r.problem))
            if r.problem
            else "reached" + ("" if r.verified else ", its id unknown"),
        )
        for r in reach
    ]
    return table(columns, rows)


def _right_table(rights: tuple[PermissionCheck, ...]) -> Iterator[str]:
    columns = (
        TextColumn("PERMISSION"),
        TextColumn("ON"),
        TextColumn("GRANTED"),
        TextColumn("USED FOR", below=True),
    )
    return table(columns, [(r.operation, _resource(r), _granted(r), _used_for(r)) for r in rights])


def _source_table(sources: Sequence[FurtherSource]) -> Iterator[str]:
    columns = (
        TextColumn("SOURCE"),
        TextColumn("FROM HERE"),
        TextColumn("NEEDS", below=True),
        TextColumn("ADDS", below=True),
    )
    return table(columns, [(s.name, _available(s.available), printable(s.needs), s.adds) for s in sources])


def _available(reported: bool | Unknown | None) -> str:
    if reported is None:
        return "if given"
    return printable(str(reported)) if isinstance(reported, Unknown) else "yes" if reported else "no"


def _call_table(checked: CheckReport) -> Iterator[str]:
    offered = checked.capabilities
    yield f"replica logs: {offered.replica_logs}"
    yield f"designated elections: {printable(str(offered.designated_elections))}"
    columns = (TextColumn("CALL"), TextColumn("VERSIONS"), TextColumn("USED FOR", below=True))
    rows = [
        (
            call.call,
            printable(str(call.versions))
            if isinstance(call.versions, Unknown)
            else f"{call.versions[0]}-{call.versions[1]}",
            call.used_for,
        )
        for call in offered.calls
    ]
    yield from table(columns, rows)


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
    return f"{len(right.missing)} of {right.looked_at} topics ({_names(right.missing)})"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(names[:NAMES_SHOWN]) + (", …" if len(names) > NAMES_SHOWN else "")


def checked_document(
    checked: CheckReport, health: ClusterHealth, sources: Sequence[FurtherSource]
) -> Iterator[str]:
    """``ktriage.check/1``."""
    offered, hidden = checked.capabilities, checked.hidden
    designated = offered.designated_elections
    return document(
        "check",
        {
            "cluster": cluster_json(checked.cluster),
            "health": health_json(health),
            "brokers": [_reach_json(reach) for reach in checked.reach],
            "permissions": [_right_json(right) for right in checked.rights],
            "hiddenTopics": unknown_json(hidden) if isinstance(hidden, Unknown) else list(hidden),
            "replicaLogs": offered.replica_logs,
            "designatedElections": unknown_json(designated)
            if isinstance(designated, Unknown)
            else designated,
            "features": dict(offered.features),
            "calls": [
                {
                    "call": call.call,
                    "versions": unknown_json(call.versions)
                    if isinstance(call.versions, Unknown)
                    else list(call.versions),
                    "usedFor": call.used_for,
                }
                for call in offered.calls
            ],
            "sources": [
                {
                    "source": source.name,
                    "available": unknown_json(source.available)
                    if isinstance(source.available, Unknown)
                    else source.available,
                    "needs": source.needs,
                    "adds": source.adds,
                }
                for source in sources
            ],
            "problems": problems(checked),
        },
    )


def _reach_json(reach: Reachability) -> dict[str, object]:
    return {
        "broker": reach.broker,
        "address": reach.address,
        "overridden": reach.overridden,
        "problem": unknown_json(reach.problem) if reach.problem is not None else None,
        "verified": reach.verified,
        "caughtUp": reach.caught_up,
        "fenced": reach.fenced,
    }


def _right_json(right: PermissionCheck) -> dict[str, object]:
    granted = right.granted
    return {
        "operation": right.operation,
        "resource": right.resource,
        "usedFor": _used_for(right),
        "granted": unknown_json(granted) if isinstance(granted, Unknown) else granted,
        "missing": list(right.missing),
        "lookedAt": right.looked_at,
    }
