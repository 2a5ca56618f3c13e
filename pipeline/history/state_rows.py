"""What the rows of snapshots say of partitions, in one number for each row, computed by Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pipeline.plan import row_checks
from recovery.arrays.survey_batch import BROKERS

KINDS = ("offline", "under min ISR", "ELR in use")
"""The kinds of incidents. The bit of the kind ``n`` is ``1 << n``: no leader; a leader and an ISR of fewer
replicas than min ISR; a leader and somebody in the ELR.
"""

MIN_ISR_UNKNOWN, DELETED = 1 << 3, 1 << 4

FLAW = 5
"""The bits from here on are the number of a flaw; 0: the row is sound. Of a broken row no kind is known."""

FLAWS = ("", row_checks.NAMELESS, row_checks.NO_LEADER, row_checks.BROKEN_ISR, row_checks.COPIES)
"""What each number means: those checks of the plan that concern a history."""

NAMELESS, NO_LEADER, BROKEN_ISR, COPIES = 1, 2, 3, 4

SHOWN_STATES = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("topic", pa.string()),
        ("topic_id", pa.string()),
        ("partition", pa.int32()),
        ("moment", pa.int32()),
        ("bits", pa.int32()),
        ("leader", pa.int32()),
        ("isr", BROKERS),  # only of a partition in a bad state, as ELR
        ("elr", BROKERS),
    ]
)
"""What a snapshot, given as a moment, says of a partition."""

_FLAW = f"""CASE
    WHEN coalesce(topic, '') = '' OR coalesce(partition, -1) < 0 THEN {NAMELESS}
    WHEN coalesce(deleted, false) THEN 0
    WHEN coalesce(leader, -2) < -1 THEN {NO_LEADER}
    WHEN isr IS NULL OR size(array_compact(isr)) < size(isr) THEN {BROKEN_ISR}
    ELSE 0
END AS flaw"""

_BITS = f"""CAST(shown AND leader = -1 AS int)
    + 2 * CAST(led AND min_isr IS NOT NULL AND size(isr) < min_isr AS int)
    + 4 * CAST(led AND coalesce(size(elr), 0) > 0 AS int)
    + {MIN_ISR_UNKNOWN} * CAST(led AND min_isr IS NULL AS int)
    + {DELETED} * CAST(coalesce(deleted, false) AS int)
    + {1 << FLAW} * flaw AS bits"""


def with_state_bits(rows: Any) -> Any:
    """The rows as :data:`SHOWN_STATES`; they have the columns of a snapshot, and their ``moment``."""
    rows = rows.selectExpr("*", _FLAW)
    rows = rows.selectExpr("*", "flaw = 0 AND NOT coalesce(deleted, false) AS shown")
    rows = rows.selectExpr("*", "shown AND leader <> -1 AS led").selectExpr("*", _BITS)
    bad = (1 << len(KINDS)) - 1
    lists = [f"CASE WHEN (bits & {bad}) > 0 THEN {name} END AS {name}" for name in ("isr", "elr")]
    return rows.selectExpr(*(name for name in SHOWN_STATES.names if name not in ("isr", "elr")), *lists)


def encoded(column: Any) -> Any:
    """A column with a dictionary."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    found = column if pa.types.is_dictionary(column.type) else column.cast(pa.string()).dictionary_encode()
    return found.cast(pa.dictionary(pa.int32(), pa.string()))
