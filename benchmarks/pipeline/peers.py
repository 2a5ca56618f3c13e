"""What a job is compared with, each a whole process: ``python -m benchmarks.pipeline.peers NAME LAKE``.

None of them checks a row, looks for duplicate partitions, merges changes into a state, or writes a table. Each
prints how many rows it found.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.pipeline.generated_fleet import BROKERS, crowded_rack_of, rack_of

STATEMENTS = Path(__file__).parent
THREADS = 2

_CHOICE = """
CREATE TEMP TABLE plans AS
SELECT cluster_id, topic, partition,
    list_last(list_sort(list_transform(list_filter(replicas, lambda r: r.last_epoch IS NOT NULL),
        lambda r: {'epoch': r.last_epoch, 'end': r.log_end, 'broker': r.broker}))).broker AS leader
FROM read_parquet(?, hive_partitioning = true) WHERE leader = -1
"""

_LED = """
CREATE TEMP TABLE rows AS
SELECT row_number() OVER () AS r, topic, min_isr, elr IS NULL AS no_elr, isr, elr, replicas
FROM read_parquet(?) WHERE leader <> -1
"""

_EXPOSED = """
CREATE TEMP TABLE exposed AS
WITH rows AS (
    SELECT row_number() OVER () AS r, isr, least(min_isr, len(replicas)) AS need
    FROM read_parquet(?) WHERE leader <> -1
), together AS (
    SELECT r, rack, count(*) AS replicas
    FROM (SELECT r, unnest(isr) AS broker FROM rows) JOIN racks USING (broker) GROUP BY r, rack
)
SELECT r FROM rows JOIN together USING (r)
GROUP BY r, isr, need HAVING len(isr) - max(replicas) < need
"""

_STATES = """
CREATE TEMP TABLE rows AS
SELECT topic, partition, snapshot, taken_at, leader, isr, elr, min_isr FROM read_parquet(?)
"""


def _files(lake: str) -> str:
    return f"{lake}/partition_states/*/*/*.parquet"


def _duckdb() -> Any:
    import duckdb  # noqa: PLC0415  # a development tool

    return duckdb.connect(config={"threads": THREADS})


def choices(lake: str) -> int:
    """The plan's choice alone, by DuckDB: no other candidate, precondition, loss range or reason."""
    connection = _duckdb()
    connection.execute(_CHOICE, [_files(lake)])
    return int(connection.execute("SELECT count(*) FROM plans").fetchall()[0][0])


def exposed(files: str, racks: Mapping[int, str]) -> int:
    """How many partitions have fewer than min ISR replicas in sync after the loss of one rack. Every broker has a
    rack, and no partition has an ELR.
    """
    connection = _with_racks(racks)
    connection.execute(_EXPOSED, [files])
    return int(connection.execute("SELECT count(*) FROM exposed").fetchall()[0][0])


def _with_racks(racks: Mapping[int, str]) -> Any:
    connection = _duckdb()
    connection.execute("CREATE TABLE racks (broker INT, rack VARCHAR)")
    connection.executemany("INSERT INTO racks VALUES (?, ?)", list(racks.items()))
    return connection


def exposures(files: str, racks: Mapping[int, str]) -> dict[tuple[Any, ...], tuple[int, ...]]:
    """The counts of the exposure job by DuckDB, in the order of :data:`pipeline.tables.schemas.EFFECTS`, by kind
    and failures, and by topic and broker.
    """
    connection = _with_racks(racks)
    connection.execute(_LED, [files])
    connection.execute((STATEMENTS / "exposure.sql").read_text())
    rows = connection.execute("FROM exposures").fetchall()
    return {(what, kind, *sorted(failed)): tuple(counts) for what, kind, failed, *counts in rows}


def incidents(files: str) -> list[tuple[Any, ...]]:
    """The incidents of the history job by DuckDB, for snapshots without a gap: (topic, partition, kind, at_least_s,
    at_most_s, outcome, how).
    """
    connection = _duckdb()
    connection.execute(_STATES, [files])
    connection.execute((STATEMENTS / "history.sql").read_text())
    found: list[tuple[Any, ...]] = connection.execute(
        "SELECT topic, partition, kind, at_least_s, at_most_s, outcome, how FROM incidents"
    ).fetchall()
    return found


def bare(lake: str, job: str) -> int:
    """Spark reads the columns that the job reads, of every row of the files, and writes them to noop."""
    from benchmarks.pipeline.bare_read import bare_read  # noqa: PLC0415  # needs Spark

    return bare_read(lake, job)


def start(_lake: str) -> int:
    """Spark starts, counts a thousand numbers, and stops: a part of every job and of the bare read."""
    from benchmarks.pipeline.bare_read import started  # noqa: PLC0415  # needs Spark

    return started()


PEERS: dict[str, Callable[[str], int]] = {
    "bare-plan": partial(bare, job="plan"),
    "bare-exposure": partial(bare, job="exposure"),
    "bare-history": partial(bare, job="history"),
    "start": start,
    "duckdb-plan": choices,
    "duckdb-exposure": lambda lake: len(exposures(_files(lake), {n: rack_of(n) for n in range(BROKERS)})),
    "duckdb-fixes": lambda lake: exposed(_files(lake), {n: crowded_rack_of(n) for n in range(BROKERS)}),
    "duckdb-history": lambda lake: len(incidents(_files(lake))),
}


if __name__ == "__main__":
    print(PEERS[sys.argv[1]](sys.argv[2]))
