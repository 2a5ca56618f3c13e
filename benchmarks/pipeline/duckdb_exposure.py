"""The counts of the exposure job by DuckDB, on the same files: every failure, every pair, and by topic and broker.

It checks no row and no duplicate, merges no changes and writes no table: what the job does besides is its own cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

STATEMENTS = Path(__file__).with_name("exposure.sql")

_ROWS = """
CREATE TEMP TABLE rows AS
SELECT row_number() OVER () AS r, topic, min_isr, elr IS NULL AS no_elr, isr, elr, replicas
FROM read_parquet(?) WHERE leader <> -1
"""


def exposure(files: Sequence[str], racks: Mapping[int, str]) -> dict[tuple[Any, ...], tuple[int, ...]]:
    """The counts in the order of :data:`pipeline.tables.schemas.EFFECTS`, by kind and failures, and by topic and
    broker.
    """
    import duckdb  # noqa: PLC0415  # a development tool

    connection = duckdb.connect(config={"threads": 2})
    connection.execute("CREATE TABLE racks (broker INT, rack VARCHAR)")
    connection.executemany("INSERT INTO racks VALUES (?, ?)", list(racks.items()))
    connection.execute(_ROWS, [list(files)])
    connection.execute(STATEMENTS.read_text())
    told = connection.execute("FROM exposures").fetchall()
    return {(what, kind, *sorted(failed)): tuple(counts) for what, kind, failed, *counts in told}
