"""The counts of the exposure job by DuckDB, on the same files: every failure, every pair, and by topic and broker.

It checks no row and no duplicate, and merges no changes: what the job does besides is its own cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.tables.schemas import EFFECTS

_ROWS = """
CREATE TEMP TABLE rows AS
SELECT row_number() OVER () AS r, topic, min_isr, elr IS NULL AS no_elr, isr, elr, replicas
FROM read_parquet(?) WHERE leader <> -1
"""

_REPLICAS = """
CREATE TEMP TABLE replicas AS
SELECT r, topic, x.broker AS broker, x.log_dir AS log_dir, least, no_elr, in_sync, alive AND in_elr AS eligible, alive,
    alive AND NOT in_sync AS behind, silent
FROM (
    SELECT r, topic, x, no_elr, coalesce(least(min_isr, len(replicas)), -1) AS least,
        list_contains(isr, x.broker) AS in_sync, coalesce(list_contains(elr, x.broker), false) AS in_elr,
        x.standing = 'electable' AS alive, x.unknown IS NOT NULL OR x.lineage_unknown IS NOT NULL AS silent
    FROM (SELECT r, topic, min_isr, no_elr, isr, elr, replicas, unnest(replicas) AS x FROM rows)
)
"""

_SUMS = ", ".join(
    f"sum({name}::INT) AS {name}" for name in ("in_sync", "eligible", "alive", "behind", "silent")
)

_TOTALS = f"CREATE TEMP TABLE totals AS SELECT r, {_SUMS} FROM replicas GROUP BY r"

_NAMES = {
    "broker": "replicas.broker::VARCHAR",
    "rack": "racks.rack",
    "log dir": "replicas.broker || ':' || replicas.log_dir",
}

_GROUPS = "CREATE TEMP TABLE groups AS " + " UNION ALL ".join(
    f"SELECT r, topic, '{kind}' AS kind, {name} AS name, any_value(least) AS least, any_value(no_elr) AS no_elr,"
    f" {_SUMS}, count(*) AS lost FROM replicas JOIN racks USING (broker) WHERE {name} IS NOT NULL GROUP BY ALL"
    for kind, name in _NAMES.items()
)

_LOST = ("in_sync", "eligible", "alive", "behind", "silent", "lost")

_LOSSES = f"""
CREATE TEMP VIEW losses AS
SELECT r, kind, [name] AS failed, least, no_elr, {", ".join(_LOST)} FROM groups
UNION ALL
SELECT a.r, a.kind, [a.name, b.name], a.least, a.no_elr, {", ".join(f"a.{name} + b.{name}" for name in _LOST)}
FROM groups a JOIN groups b ON a.r = b.r AND a.kind = b.kind AND a.name < b.name
"""

_EFFECTS = """
WITH left_over AS (
    SELECT l.*, t.in_sync - l.in_sync AS isr, t.eligible - l.eligible AS elr, t.alive - l.alive AS up,
        t.behind - l.behind AS lagging, t.silent - l.silent + l.lost AS unheard, t.in_sync AS before
    FROM {losses} l JOIN totals t USING (r)
), judged AS (
    SELECT *, isr = 0 AND elr = 0 AS off, least >= 0 AND before < least AS low, least >= 0 AND unheard < least AS kept
    FROM left_over
)
SELECT {key}, count(*) AS partitions, count_if(off) AS offline, count_if(off AND up > 0) AS unclean,
    count_if(least >= 0 AND NOT low AND isr < least) AS under_min_isr, count_if(low) AS already_under_min_isr,
    count_if(least < 0) AS min_isr_unknown, count_if(off AND lagging > 0) AS saved_by_one_more_in_sync,
    count_if(least > 1 AND NOT low AND isr = least - 1 AND NOT off) AS writable_with_min_isr_one_less,
    count_if(off AND NOT kept) AS acknowledged_at_risk, count_if(off AND kept) AS acknowledged_outside_isr,
    count_if(off AND no_elr) AS elected_whatever_it_lost
FROM judged GROUP BY ALL
"""


def exposure(files: Sequence[str], racks: Mapping[int, str | None]) -> dict[tuple[Any, ...], tuple[int, ...]]:
    """The counts in the order of :data:`pipeline.tables.schemas.EFFECTS`, by kind and failures, and by topic and
    broker.
    """
    import duckdb  # noqa: PLC0415  # a development tool

    connection = duckdb.connect(config={"threads": 2})
    connection.execute("CREATE TABLE racks (broker INT, rack VARCHAR)")
    connection.executemany("INSERT INTO racks VALUES (?, ?)", list(racks.items()))
    connection.execute(_ROWS, [list(files)])
    for statement in (_REPLICAS, _TOTALS, _GROUPS, _LOSSES):
        connection.execute(statement)
    names = ", ".join(EFFECTS)
    failures = connection.execute(
        f"SELECT kind, failed, {names} FROM ({_EFFECTS.format(losses='losses', key='kind, failed')})"  # noqa: S608
    ).fetchall()
    brokers = "(SELECT * FROM groups WHERE kind = 'broker')"
    topics = connection.execute(
        f"SELECT topic, [name], {names} FROM ({_EFFECTS.format(losses=brokers, key='topic, name')})"  # noqa: S608
    ).fetchall()
    told = [("", *row) for row in failures] + [("topic", *row) for row in topics]
    return {(what, kind, *sorted(failed)): tuple(counts) for what, kind, failed, *counts in told}
