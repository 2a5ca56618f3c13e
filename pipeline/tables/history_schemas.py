"""The tables of the history job: its results, and what its next run has to know to go on from there."""

from __future__ import annotations

import pyarrow as pa

from pipeline.tables.schemas import MOMENT, TEXT, of_run
from recovery.arrays.survey_batch import BROKERS

INCIDENTS = of_run(
    "incidents",
    [
        ("cluster_id", TEXT),
        ("topic", TEXT),
        ("partition", pa.int32()),
        ("kind", TEXT),
        ("began_at", MOMENT),
        ("last_seen_at", MOMENT),
        ("ended_at", MOMENT),
        ("at_least_s", pa.float64()),
        ("at_most_s", pa.float64()),
        ("outcome", TEXT),
        ("how", TEXT),
        ("who", TEXT),
        ("act", TEXT),
        ("topic_id", TEXT),  # a topic that is deleted and made again has another
    ],
)
EVENTS = of_run(
    "events",
    [
        ("cluster_id", TEXT),
        ("at", MOMENT),
        ("subject", TEXT),
        ("was", TEXT),
        ("now", TEXT),
        ("in_a_gap", pa.bool_()),
    ],
)
HISTORY_MARKS = of_run(
    "history_marks",
    [
        ("cluster_id", TEXT),
        ("snapshot", TEXT),  # the newest that it read
        ("snapshots", pa.int32()),  # how many it read
        ("timeline", TEXT),  # a digest of their names and times, and of the gaps between them
        ("rules", pa.int32()),
        ("facts", pa.list_(pa.struct([("subject", TEXT), ("value", TEXT), ("number", pa.int32())]))),
    ],
)
"""Up to where a run of history has read each cluster; ``facts``: what it last knew of quorum, brokers and log dirs,
and the number of the snapshot that says it. The next run goes on from there.
"""
HISTORY_STATES = of_run(
    "history_states",
    [
        ("cluster_id", TEXT),
        ("topic", TEXT),
        ("partition", pa.int32()),
        ("kind", TEXT),
        ("bad", pa.bool_()),  # null: the snapshot does not show it
        ("first_number", pa.int32()),  # of the snapshots that show this state without a change
        ("last_number", pa.int32()),
        ("known_before", pa.bool_()),  # the snapshot before the first one shows that it was not so
        ("isr", BROKERS),
        ("elr", BROKERS),
        ("topic_id", TEXT),
    ],
)
"""The states of partitions at that point that the next run has to know: incidents that may go on, unknown ones."""
