"""The tables that ``watch`` writes. Rows are only appended, so each row is final."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from pipeline.tables.schemas import TableDefinition
from recovery.metadata_log.incident_fold import (
    ClusterMoment,
    EndedIncident,
    IncidentKey,
    IncidentMoment,
    LogGap,
)
from recovery.metadata_log.log_changes import HistoryRow
from recovery.metadata_log.partition_states import EventKind
from recovery.metadata_log.records import ConfigRecord, ResourceType
from recovery.metadata_log.timeline import kind_of_change

_BROKERS = pa.list_(pa.int32())
_MOMENT = pa.timestamp("us", "UTC")
_PARTITION_BY = ("cluster_id", "day")

METADATA_EVENTS = TableDefinition(
    "metadata_events",
    pa.schema(
        [
            ("cluster_id", pa.string()),  # of its meta.properties; without that the name of its directory
            ("day", pa.date32()),  # of at, in UTC
            ("at", _MOMENT),
            ("offset", pa.int64()),  # of the record in the metadata log; of a gap: where the log goes on
            (
                "batch",
                pa.int64(),
            ),  # the first offset of its record batch, one event of the controller; -1: as a snapshot shows it
            ("kind", pa.string()),  # as in ktriage timeline
            ("incident", pa.string()),  # null: a change of a broker or of min.insync.replicas
            ("topic", pa.string()),
            ("topic_id", pa.string()),
            ("partition", pa.int32()),
            ("leader", pa.int32()),  # from then on, as the columns that follow; -1: none
            ("leader_epoch", pa.int32()),
            ("isr", _BROKERS),
            ("elr", _BROKERS),
            ("last_known_elr", _BROKERS),
            ("leader_recovery_state", pa.string()),
            ("replicas", _BROKERS),
            ("min_isr", pa.int32()),  # in force; null: the metadata log does not set it
            ("broker", pa.int32()),  # that changed, or whose change is the cause
            ("cause", pa.string()),  # the kind of the change of that broker in the same batch
            ("cluster_name", pa.string()),  # of its directory
        ]
    ),
    _PARTITION_BY,
    ("at",),
)
"""Every change of a partition that is in an incident, and the changes of brokers and of min.insync.replicas."""

METADATA_INCIDENTS = TableDefinition(
    "metadata_incidents",
    pa.schema(
        [
            ("cluster_id", pa.string()),
            ("day", pa.date32()),  # of since
            ("incident", pa.string()),
            ("kind", pa.string()),  # offline, or unclean election without a time offline
            ("topic", pa.string()),
            ("topic_id", pa.string()),
            ("partition", pa.int32()),
            ("since", _MOMENT),
            ("since_exact", pa.bool_()),  # false: offline already in the snapshot of that time
            ("until", _MOMENT),  # null: it ended in a gap of the log
            ("leader_before", pa.int32()),  # -1: not known
            ("leader_after", pa.int32()),  # -1: none (deleted), or not known
            ("outcome", pa.string()),  # leader again, unclean election, deleted, unknown
            ("cluster_name", pa.string()),  # of its directory
            ("offline_s", pa.float64()),  # from since to until
        ]
    ),
    _PARTITION_BY,
    ("since",),
)
"""A row for each incident that has ended. An incident of ``metadata_events`` without one is still open."""

TABLES = (METADATA_EVENTS, METADATA_INCIDENTS)


GAP = "gap in the log"


def event_rows(
    cluster: str, moments: Iterable[IncidentMoment | ClusterMoment], gaps: Iterable[LogGap] = ()
) -> pa.Table:
    """Rows of METADATA_EVENTS."""
    of_partitions, rows = list[IncidentMoment](), list[dict[str, Any]]()
    for moment in moments:
        if isinstance(moment, IncidentMoment):
            of_partitions.append(moment)
        else:
            rows.append(_cluster_moment(cluster, moment))
    rows += [_gap(cluster, gap) for gap in gaps]
    others = pa.Table.from_pylist(rows, METADATA_EVENTS.schema)
    return pa.concat_tables([_incident_moments(cluster, of_partitions), others])


def incident_rows(cluster: str, ended: Iterable[EndedIncident]) -> pa.Table:
    """Rows of METADATA_INCIDENTS."""
    return pa.Table.from_pylist([_ended(cluster, one) for one in ended], METADATA_INCIDENTS.schema)


def _incident_moments(cluster: str, moments: Sequence[IncidentMoment]) -> pa.Table:
    """As columns: a burst of incidents has a row for each change of a partition in it."""
    rows = [moment.row for moment in moments]
    moves = [moment.move for moment in moments]
    subjects = [moment.key.subject for moment in moments]
    causes = [moment.cause for moment in moments]
    at = pa.array([row.time_ms for row in rows], pa.timestamp("ms", "UTC")).cast(_MOMENT)
    columns = {
        "cluster_id": pa.repeat(cluster, len(rows)),
        "cluster_name": pa.repeat(cluster, len(rows)),
        "day": at.cast(pa.date32()),
        "at": at,
        "offset": [row.offset for row in rows],
        "batch": [row.batch for row in rows],
        "kind": [move.kind.value for move in moves],
        "incident": [_incident_id(moment.key) for moment in moments],
        "topic": [move.tp.topic for move in moves],
        "topic_id": [subject.topic_id for subject in subjects],
        "partition": [subject.partition for subject in subjects],
        "min_isr": [moment.min_isr for moment in moments],
        "broker": [None if cause is None else getattr(cause.change, "broker", None) for cause in causes],
        "cause": [_kind_text(cause) for cause in causes],
    }
    for name in METADATA_EVENTS.schema.names:
        if name not in columns:
            # Of the registration, which has a field of that name.
            columns[name] = [None if move.after is None else getattr(move.after, name) for move in moves]
    return pa.table(columns, METADATA_EVENTS.schema)


def _cluster_moment(cluster: str, moment: ClusterMoment) -> dict[str, Any]:
    change = moment.row.change
    row = {**_of_row(cluster, moment.row), "kind": moment.kind.value}
    if not isinstance(change, ConfigRecord):
        return {**row, "broker": getattr(change, "broker", None)}
    of_topic = change.resource_type == ResourceType.TOPIC
    of_broker = change.resource_type == ResourceType.BROKER and change.resource.isdecimal()
    return {
        **row,
        "topic": change.resource if of_topic else None,
        "broker": int(change.resource) if of_broker else None,
        "min_isr": int(change.value) if change.value is not None and change.value.isdecimal() else None,
    }


def _gap(cluster: str, gap: LogGap) -> dict[str, Any]:
    at = _moment(max(gap.time_ms, 0))
    return {**_of_cluster(cluster), "day": at.date(), "at": at, "offset": gap.goes_on, "kind": GAP}


def _ended(cluster: str, one: EndedIncident) -> dict[str, Any]:
    subject, outage = one.key.subject, one.outage
    return {
        **_of_cluster(cluster),
        "day": _moment(outage.since_ms).date(),
        "incident": _incident_id(one.key),
        "kind": (EventKind.UNCLEAN_ELECTION if one.instant else EventKind.OFFLINE).value,
        "topic": outage.tp.topic,
        "topic_id": subject.topic_id,
        "partition": subject.partition,
        "since": _moment(outage.since_ms),
        "since_exact": one.exact,
        "until": None if outage.until_ms is None else _moment(outage.until_ms),
        "leader_before": outage.leader_before,
        "leader_after": outage.leader_after,
        "outcome": _outcome(one),
        "offline_s": None if outage.until_ms is None else (outage.until_ms - outage.since_ms) / 1000,
    }


def _outcome(one: EndedIncident) -> str:
    outage = one.outage
    if outage.until_ms is None:
        return "unknown"
    if outage.deleted:
        return "deleted"
    return EventKind.UNCLEAN_ELECTION.value if outage.unclean else "leader again"


def _of_row(cluster: str, row: HistoryRow) -> dict[str, Any]:
    at = _moment(row.time_ms)
    return {**_of_cluster(cluster), "day": at.date(), "at": at, "offset": row.offset, "batch": row.batch}


def _of_cluster(cluster: str) -> dict[str, str]:
    """The name of its directory, which stands for its id too until that is known."""
    return {"cluster_id": cluster, "cluster_name": cluster}


def _incident_id(key: IncidentKey) -> str:
    """The same after every restart."""
    return f"{key.subject.topic_id}/{key.subject.partition}/{key.offset}"


def _kind_text(row: HistoryRow | None) -> str | None:
    kind = None if row is None else kind_of_change(row.change)
    return None if kind is None else kind.value


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _moment(time_ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=time_ms)
