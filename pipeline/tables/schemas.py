"""The schemas of all tables, version 3.

One row per partition with its replicas nested, so that the choice of a leader needs no shuffle. A column is never
renamed and its meaning never changes. A column that a later version adds is null in older rows: Delta adds it to
the table when the first row with it is appended.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from recovery.arrays.survey_batch import BROKERS, SPAN, SURVEYS, UNKNOWN

VERSION = 3
"""The version in each observation. It goes up if a reader of the current version would misread a row."""

PARTITIONS = pa.schema(
    [
        *list(SURVEYS)[:-1],
        ("marks", pa.list_(pa.string())),
        ("unclean_elections", pa.bool_()),  # the topic elects uncleanly by itself; null: not known
        SURVEYS.field("replicas"),
        ("deleted", pa.bool_()),  # in changes: the partition is gone
    ]
)

LOG_DIR = pa.struct(
    [
        ("path", pa.string()),
        ("error", pa.string()),
        ("total_bytes", pa.int64()),
        ("usable_bytes", pa.int64()),
        ("replicas", pa.int32()),
    ]
)

BROKER = pa.struct(
    [
        ("id", pa.int32()),
        ("host", pa.string()),
        ("port", pa.int32()),
        ("rack", pa.string()),
        ("fenced", pa.bool_()),  # null: the cluster does not report it
        ("unanswered", UNKNOWN),  # null: it reported its logs
        ("log_dirs", pa.list_(LOG_DIR)),
        ("log_dirs_unknown", UNKNOWN),
    ]
)

NODE = pa.struct(
    [
        ("id", pa.int32()),
        ("directory_id", pa.string()),
        ("log_end", pa.int64()),
        ("last_fetch_ms", pa.int64()),
        ("last_caught_up_ms", pa.int64()),
    ]
)

QUORUM = pa.struct(
    [
        ("leader", pa.int32()),
        ("leader_epoch", pa.int32()),
        ("high_watermark", pa.int64()),
        ("voters", pa.list_(NODE)),
        ("observers", pa.list_(NODE)),
        ("unknown", UNKNOWN),
    ]
)

MOMENT = pa.timestamp("us", "UTC")

_KEYS = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("day", pa.date32()),  # on which its full snapshot began, in UTC: a chain is never in two days
        ("snapshot", pa.string()),  # names sort by time
        ("base", pa.string()),  # the full snapshot that it builds on; a full one names itself
        ("kind", pa.string()),
        ("taken_at", MOMENT),  # when the answers were complete
    ]
)
"""The columns that the rows of a snapshot share."""


class TableDefinition(NamedTuple):
    """A table's name, which is its directory, its schema, and the columns by which its files are partitioned."""

    name: str
    schema: pa.Schema
    partition_by: tuple[str, ...]
    indexed: tuple[str, ...] = ()

    @property
    def properties(self) -> dict[str, str]:
        """Delta's settings: files that no version of the last day names may be deleted, and old log entries too.
        Only the columns ``indexed`` have a minimum and maximum in the log.
        """
        return {
            "delta.checkpointInterval": "100",
            "delta.deletedFileRetentionDuration": "interval 1 days",
            "delta.logRetentionDuration": "interval 1 days",
            "delta.dataSkippingStatsColumns": ",".join(self.indexed),
        }


PARTITION_STATES = TableDefinition(
    "partition_states", pa.schema([*_KEYS, *PARTITIONS]), ("day",), ("snapshot", "cluster_id")
)
"""A row for each partition in a full snapshot, and for each changed one in a snapshot of changes."""

OBSERVATIONS = TableDefinition(
    "observations",
    pa.schema(
        [
            *_KEYS,
            ("previous", pa.string()),  # of changes: the snapshot directly before
            ("series", pa.string()),  # the running collector; "": it was taken alone
            ("began", MOMENT),
            ("partitions", pa.int64()),
            ("offline", pa.int64()),
            ("changed", pa.int64()),  # rows in partition_states
            ("missed", pa.int64()),  # snapshots of the series that failed directly before, without a row
            ("leaders_unreachable", pa.int64()),  # partitions left out: their leader has no such listener
            ("silent", BROKERS),
            ("hidden", pa.list_(pa.string())),
            ("hidden_more", pa.string()),  # why more topics may be hidden; "": none are
            ("failure", pa.string()),  # why there is no snapshot; "": there is one
            ("tool_version", pa.string()),
            ("schema_version", pa.int32()),
            ("brokers", pa.list_(BROKER)),
            ("quorum", QUORUM),
            ("elr_enabled", pa.bool_()),  # eligible.leader.replicas.version is above 0; null: not known
            ("asked", pa.string()),  # the cluster as it was named: bootstrap servers or a profile
            (
                "clock_behind_ms",
                pa.int64(),
            ),  # how much later began and taken_at are than the collector's clock
        ]
    ),
    ("day",),
    ("snapshot", "cluster_id", "taken_at", "asked"),
)
"""A row for each time that the cluster was asked. It is written last: without it, the snapshot does not exist."""

_RUN = pa.field("run_id", pa.string())


def of_run(name: str, columns: list[tuple[str, pa.DataType]]) -> TableDefinition:
    """A table for the rows of runs."""
    return TableDefinition(name, pa.schema([_RUN, *columns]), ("run_id",))


def without_run(definition: TableDefinition) -> pa.Schema:
    """The columns of a result table besides the run."""
    return definition.schema.remove(0)


RUNS = TableDefinition(
    "runs",
    pa.schema(
        [
            _RUN,
            ("job", pa.string()),
            ("made_at", MOMENT),
            ("tool_version", pa.string()),
            ("asked", pa.string()),  # JSON
            ("summary", pa.string()),  # JSON
        ]
    ),
    (),
)
"""A row for each finished run. It is written last: rows of a run without it do not count."""

LOSS = pa.struct(
    [
        ("at_least", pa.int64()),
        ("at_most", pa.int64()),
        ("tail", pa.list_(SPAN)),
        ("head", pa.list_(SPAN)),
        ("unanswered", BROKERS),
    ]
)

CANDIDATE = {
    "broker": pa.int32(),
    "standing": pa.string(),
    "leader_epoch": pa.int32(),
    "last_epoch": pa.int32(),
    "log_end": pa.int64(),
    "log_start": pa.int64(),
    "high_watermark": pa.int64(),
}

PLANNED = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("snapshot", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("topic_id", pa.string()),
        ("leader_epoch", pa.int32()),
        ("assignment", BROKERS),
        ("verdict", pa.string()),
        ("chosen", pa.int32()),
        ("election_order", BROKERS),
        ("waits_for", BROKERS),
        ("reason", pa.string()),
        ("other_ranking_leader", pa.int32()),
        ("clean_electors", BROKERS),
        ("candidates", pa.list_(pa.struct([*CANDIDATE.items(), ("loss", LOSS)]))),
        ("silent", pa.list_(pa.struct([("broker", pa.int32()), ("standing", pa.string())]))),
        ("marks", pa.list_(pa.string())),
        (
            "acknowledged",
            pa.string(),
        ),  # of the chosen, else of the best, as ktriage plan says it; null: not judged
        ("plan_row", pa.string()),  # where somebody is elected: its row of a plan file, JSON
    ]
)
"""A row of the plan."""

ACKNOWLEDGED = ("acknowledged_at_risk", "acknowledged_outside_isr", "elected_whatever_it_lost")
"""Partitions that a failure takes offline, by what it does to their acknowledged records. If what fails does not
come back: no log that is left is proved to hold them all; or one outside the ISR holds them, so that only the right
choice of a leader keeps them. If it comes back without its newest records: Kafka elects it all the same.
"""

EFFECTS = (
    "partitions",
    "offline",
    "unclean",
    "under_min_isr",
    "already_under_min_isr",
    "min_isr_unknown",
    "saved_by_one_more_in_sync",
    "writable_with_min_isr_one_less",
    *ACKNOWLEDGED,
    "elected_at_once",
)
"""What is counted of each failure. Last the partitions whose topic elects uncleanly by itself: a replica outside
ISR and ELR leads at once, so that they are not offline, and their acknowledged records are at risk.
"""

_COUNTS = [(name, pa.int64()) for name in EFFECTS]
TEXT = pa.string()

PLANS = TableDefinition("plans", pa.schema([_RUN, *PLANNED]), ("run_id",))
EXPOSURES = of_run("exposures", [("cluster_id", TEXT), ("kind", TEXT), ("failed", pa.list_(TEXT)), *_COUNTS])
EXPOSED_TOPICS = of_run(
    "exposed_topics", [("cluster_id", TEXT), ("topic", TEXT), ("broker", pa.int32()), *_COUNTS]
)
FLEET = of_run(
    "fleet",
    [
        ("cluster_id", TEXT),
        ("taken_at", TEXT),
        ("partitions", pa.int64()),
        ("offline_now", pa.int64()),
        ("kind", TEXT),  # of the worst failure of one broker, rack or log dir, as the next columns
        ("failed", pa.list_(TEXT)),
        ("acknowledged_at_risk", pa.int64()),
        ("offline", pa.int64()),
        ("under_min_isr", pa.int64()),
        ("failures_offline", pa.int64()),  # how many single failures take a partition offline
        ("failures_at_risk", pa.int64()),
        ("refused", TEXT),  # why the cluster could not be read; null: it could
        ("cluster_name", TEXT),  # as it was named when it was asked: bootstrap servers or a profile
    ],
)
"""A row for each cluster of a run of exposure."""

FIX = pa.schema(
    [
        ("cluster_id", TEXT),
        ("kind", TEXT),
        ("place", pa.int32()),  # of reassignments: the best first; null: it is none
        ("topic", TEXT),
        ("partition", pa.int32()),  # null: the whole topic
        ("before", BROKERS),
        ("after", BROKERS),
        ("bytes", pa.int64()),  # that are copied
        ("saves", TEXT),  # "copies": a failure takes every replica in sync; "writes": it stops acks=all
        ("partitions", pa.int64()),
        ("weight", pa.float64()),
        ("min_isr", pa.int32()),  # to be set for the topic first; null: nothing
        ("failures", pa.list_(TEXT)),
        ("why", TEXT),  # why it stays exposed
    ]
)
FIXES = TableDefinition("fixes", pa.schema([_RUN, *FIX]), ("run_id",))
"""What removes exposures, and the partitions that stay exposed."""

QUARANTINED_ROWS = of_run("quarantined_rows", [("cluster_id", TEXT), ("reason", TEXT), ("rows", pa.int64())])
