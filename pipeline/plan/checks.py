"""Rows that cannot be worked with: each gets a reason and is counted, and none ends the job.

ANSI mode is on, where one overflow or one cast that fails ends everything: so numbers are bounded here, with try_
functions, before anything is calculated with them.
"""

from __future__ import annotations

from pipeline.plan.sql import fresh, text
from recovery.model import Standing

QUARANTINED = "quarantined"

LIMIT = 2**56
"""Offsets at or above it are nobody's: 128 of them still add up."""

_STANDINGS = ", ".join(f"'{standing.value}'" for standing in Standing)


def reasons() -> list[tuple[str, str]]:
    """(reason, condition) in the order they are looked at; every condition is null-safe."""
    r, s = fresh("r"), fresh("s")
    bounded = " AND ".join(
        f"coalesce({r}.{name} >= -1 AND {r}.{name} < {LIMIT}L, false)"
        for name in ("log_end", "log_start", "high_watermark")
    )
    lineage = (
        f"coalesce({r}.last_epoch >= -1, false) AND coalesce({r}.floor >= -1 AND {r}.floor < {LIMIT}L, false)"
        f" AND {r}.spans IS NOT NULL AND forall({r}.spans, {s} -> coalesce({s}.epoch >= -1 AND {s}.start >= 0"
        f" AND try_subtract({s}.end, {s}.start) > 0 AND {s}.end < {LIMIT}L, false))"
    )
    ordered = (
        f"size({r}.spans) < 2 OR aggregate({r}.spans, -2, (a, {s}) -> CASE WHEN a IS NULL OR {s}.epoch <= a"
        f" THEN cast(NULL AS int) ELSE {s}.epoch END) IS NOT NULL"
    )
    return [
        ("no topic or partition", "topic IS NULL OR topic = '' OR partition IS NULL OR partition < 0"),
        (
            "no leader, epoch or id is told",
            "leader IS NULL OR leader < -1 OR leader_epoch IS NULL OR leader_epoch < -1 OR topic_id IS NULL",
        ),
        (
            "no assignment, or a broker in it twice",
            "assignment IS NULL OR size(assignment) = 0 OR exists(assignment, b -> b IS NULL OR b < 0)"
            " OR size(array_distinct(assignment)) <> size(assignment)",
        ),
        (
            "ISR is not told, or broken",
            "isr IS NULL OR exists(isr, b -> b IS NULL) OR coalesce(exists(elr, b -> b IS NULL), false)"
            " OR coalesce(exists(last_known_elr, b -> b IS NULL), false)",
        ),
        (
            "whether a reassignment is in progress is neither told nor unknown",
            "reassigning IS NULL AND reassigning_unknown.why IS NULL",
        ),
        (
            "replicas are not told",
            f"replicas IS NULL OR exists(replicas, {r} -> {r} IS NULL OR {r}.broker IS NULL)",
        ),
        (
            "a replica outside the assignment",
            f"exists(replicas, {r} -> NOT array_contains(assignment, {r}.broker))",
        ),
        (
            "the replicas are not those of the assignment",
            f"transform(replicas, {r} -> {r}.broker) <> assignment",
        ),
        (
            "a replica of unknown standing",
            f"exists(replicas, {r} -> coalesce({r}.standing NOT IN ({_STANDINGS}), true))",
        ),
        (
            "a log's offsets or epoch are missing or impossible",
            f"exists(replicas, {r} -> {r}.unknown IS NULL AND NOT ({bounded}"
            f" AND coalesce({r}.leader_epoch >= -1, false)))",
        ),
        (
            "a log's lineage is missing or impossible",
            f"exists(replicas, {r} -> {r}.unknown IS NULL AND {r}.lineage_unknown IS NULL"
            f" AND NOT ({lineage} AND ({ordered})))",
        ),
    ]


def flaw() -> str:
    """The first reason that holds, null for a row that is sound."""
    cases = " ".join(f"WHEN {condition} THEN {text(reason)}" for reason, condition in reasons())
    return f"CASE {cases} END"
