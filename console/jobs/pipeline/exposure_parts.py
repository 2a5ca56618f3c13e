"""What a result of ``exposure`` or of ``fixes`` says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from console.output.bar_table import ResultPart, ResultRow, ResultTable, Share, first_rows
from pipeline.exposure.what_if import what_if_from
from pipeline.results import JobResult
from pipeline.tables.schemas import ACKNOWLEDGED
from recovery.wording.quantity_text import counted, human_bytes, ids


def exposure_parts(result: JobResult, rows: int) -> Iterator[ResultPart]:
    """What each failure takes, and the answers to questions."""
    summary = result.summary
    yield from (f"counted as if {what}" for what in what_if_from(result.asked.get("what_if", {})).assumed)
    yield from fleet_parts(summary.get("fleet", ()), rows)
    answers = summary.get("what_if", ())
    yield from _unasked(result.asked, answers)
    for cluster_id in dict.fromkeys(row["cluster_id"] for row in answers):
        mine = [row for row in answers if row["cluster_id"] == cluster_id]
        yield ResultTable(f"{cluster_id}: what if", _EXPOSED, list(_exposed(mine, "kind")))
        yield from _acknowledged(cluster_id, "what if", mine)
    for cluster_id in sorted({row["cluster_id"] for row in summary["worst"]}):
        mine = [row for row in summary["worst"] if row["cluster_id"] == cluster_id]
        for together, title in ((1, "one failure"), (2, "two at once: partitions that are on both")):
            found = [row for row in mine if row["together"] == together]
            if found:
                yield ResultTable(
                    f"{cluster_id}: {title}",
                    _EXPOSED,
                    list(_exposed(first_rows(found, rows), "kind")),
                )
                yield from _acknowledged(cluster_id, title, first_rows(found, rows))
        topics = [
            row | {"kind": row["topic"], "failed": [f"broker {row['broker']}"]}
            for row in summary["topics"]
            if row["cluster_id"] == cluster_id
        ]
        yield ResultTable(f"{cluster_id}: topics", ("topic", *_EXPOSED[1:]), list(_exposed(topics, "kind")))


def _unasked(asked: Mapping[str, Any], answers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The questions that have no answer for a cluster, because it has nothing of what is lost."""
    answered = {(row["cluster_id"], row["failed"][0]) for row in answers}
    for text in what_if_from(asked.get("what_if", {})).questions:
        without = [name for name in asked["clusters"] if (name, text) not in answered]
        if without:
            names = ", ".join(without[:NAMED]) + (
                f" and {len(without) - NAMED:,} more" * (len(without) > NAMED)
            )
            yield f"{text}: nothing of this is in cluster{'s' * (len(without) > 1)} {names}"


NAMED = 5
"""So many clusters are named in a sentence."""

_EXPOSED = (
    "what",
    "fails",
    "on it",
    "offline",
    "",
    "unclean only",
    "new under min ISR",
    "under it already",
    "min ISR unknown",
    "saved by one more in sync",
    "saved by min ISR -1",
)


def _exposed(found: Sequence[Mapping[str, Any]], name: str) -> Iterator[ResultRow]:
    most = max((row["offline"] for row in found), default=0)
    for row in found:
        yield (
            row[name],
            _failed(row),
            f"{row['partitions']:,}",
            f"{row['offline']:,}",
            Share(row["offline"], most, 10),
            f"{row['unclean']:,}",
            f"{row['under_min_isr']:,}",
            _count(row, "already_under_min_isr"),
            _count(row, "min_isr_unknown"),
            f"{row['saved_by_one_more_in_sync']:,}",
            f"{row['writable_with_min_isr_one_less']:,}",
        )


def _acknowledged(cluster_id: str, title: str, found: Sequence[Mapping[str, Any]]) -> Iterator[ResultPart]:
    """What the failures among them that take partitions offline do to acknowledged records; of an earlier version's
    results it is not known.
    """
    rows = [row for row in found if any(row.get(name) for name in ACKNOWLEDGED)]
    if rows:
        most = max(row["acknowledged_at_risk"] for row in rows)
        yield ResultTable(
            f"{cluster_id}: {title}: acknowledged records of the partitions that go offline",
            ("what", "fails", "offline", "at risk", "", "only outside the ISR", "elected whatever it lost"),
            [
                (
                    row["kind"],
                    _failed(row),
                    f"{row['offline']:,}",
                    f"{row['acknowledged_at_risk']:,}",
                    Share(row["acknowledged_at_risk"], most, 10),
                    f"{row['acknowledged_outside_isr']:,}",
                    f"{row['elected_whatever_it_lost']:,}",
                )
                for row in rows
            ],
        )


def _failed(row: Mapping[str, Any]) -> str:
    """What fails, and what of it this cluster does not have."""
    lacks = row.get("lacks")
    return " + ".join(row["failed"]) + (f" (no {', no '.join(lacks)} here)" if lacks else "")


def _count(row: Mapping[str, Any], name: str) -> str:
    """A count; "?" in a result of an earlier version, which did not count it."""
    value = row.get(name)
    return "?" if value is None else f"{value:,}"


def fleet_parts(fleet: Sequence[Mapping[str, Any]], rows: int) -> Iterator[ResultPart]:
    """One table of all clusters, the worst first; of one cluster the rest says it all."""
    if len(fleet) < 2:
        return
    read = [row for row in fleet if row["refused"] is None]
    unread = len(fleet) - len(read)
    more = f"; {unread:,} more could not be read, and are named below" if unread else ""
    now, offline, at_risk = (
        sum(row[name] > 0 for row in read) for name in ("offline_now", "offline", "acknowledged_at_risk")
    )
    yield (
        f"{counted(len(read), 'cluster')}: {now:,} with partitions offline now, {offline:,} where one failure takes"
        f" partitions offline, {at_risk:,} where one puts acknowledged records at risk{more}"
    )
    most = max((row["acknowledged_at_risk"] for row in read), default=0)
    shown = [_fleet_row(row, most) for row in first_rows(read, rows)]
    yield ResultTable("clusters, the worst first", _FLEET, shown, ids_first=True)
    if len(read) > rows > 0:
        yield f"… and {len(read) - rows:,} more clusters (--rows 0 shows all)"


_FLEET = (
    "id",
    "partitions",
    "offline now",
    "worst failure",
    "with records at risk",
    "",
    "offline",
    "under min ISR",
    "failures that take partitions",
)


def _fleet_row(row: Mapping[str, Any], most: int) -> ResultRow:
    takes = any(row[name] for name in ("acknowledged_at_risk", "offline", "under_min_isr"))
    worst = f"{row['kind']} {' + '.join(row['failed'])}" if takes else "none takes anything"
    return (
        row["cluster_id"],
        f"{row['partitions']:,}",
        f"{row['offline_now']:,}",
        worst,
        f"{row['acknowledged_at_risk']:,}",
        Share(row["acknowledged_at_risk"], most, 10),
        f"{row['offline']:,}",
        f"{row['under_min_isr']:,}",
        f"{row['failures_offline']:,}",
    )


_KINDS = {
    "move": "replicas moved",
    "extra replica": "more replicas",
    "min ISR": "min ISR changed",
    "covered by min ISR": "covered by a lower min ISR",
    "not fixed": "still exposed",
}
"""The kinds of fixes, in words."""

_SAVES = {"copies": "lose every replica in sync", "writes": "stop acks=all"}


def fix_parts(result: JobResult, rows: int) -> Iterator[ResultPart]:
    """What would be changed, what that saves, and what stays exposed and why."""
    summary = result.summary
    for cluster_id in result.asked["clusters"]:
        yield from _fixes_of_cluster(cluster_id, summary, rows)


def _fixes_of_cluster(cluster_id: str, summary: Mapping[str, Any], rows: int) -> Iterator[ResultPart]:
    def mine(name: str) -> list[Mapping[str, Any]]:
        return [row for row in summary[name] if row["cluster_id"] == cluster_id]

    kinds = mine("kinds")
    copied = sum(row["bytes"] or 0 for row in kinds)
    if not kinds:
        yield f"{cluster_id}: no single failure takes more of a partition than it may"
        return
    yield f"{cluster_id}: {human_bytes(copied)} to be copied"
    yield ResultTable(
        f"{cluster_id}: partitions of which one failure takes too much",
        ("what", "without it they", "partitions", "copied"),
        [
            (
                _KINDS[row["kind"]],
                _SAVES[row["saves"]],
                f"{row['partitions']:,}",
                human_bytes(row["bytes"]) if row["bytes"] else "",
            )
            for row in sorted(kinds, key=lambda row: (list(_KINDS).index(row["kind"]), row["saves"]))
        ],
    )
    if failures := mine("failures"):
        yield _failures(cluster_id, first_rows(failures, rows))
    if fixes := mine("fixes"):
        columns = ("fix", "what", "before", "after", "copied", "min.insync.replicas first")
        yield ResultTable(
            f"{cluster_id}: the first fixes", columns, [_fix_row(row) for row in first_rows(fixes, rows)]
        )
    for row in mine("reasons"):
        yield f"  {counted(row['count'], 'partition')} still exposed: {row['why']}"


def _failures(cluster_id: str, failures: Sequence[Mapping[str, Any]]) -> ResultTable:
    most = max(row["before"] for row in failures)
    return ResultTable(
        f"{cluster_id}: failures before and after the fixes",
        (
            "fails",
            "takes too much of",
            "",
            "every replica in sync of",
            "after: too much of",
            "every replica of",
        ),
        [
            (
                row["failure"],
                f"{row['before']:,}",
                Share(row["before"], most, 10),
                f"{row['before_copies']:,}",
                f"{row['after']:,}",
                f"{row['after_copies']:,}",
            )
            for row in failures
        ],
    )


def _fix_row(row: Mapping[str, Any]) -> ResultRow:
    level = "" if row["min_isr"] is None else str(row["min_isr"])
    if row["partition"] is None:
        return ("min ISR", f"{row['topic']}: {counted(row['partitions'], 'partition')}", "", "", "0 B", level)
    return (
        row["kind"],
        f"{row['topic']}-{row['partition']}",
        ids(row["before"]),
        ids(row["after"]),
        human_bytes(row["bytes"]),
        level,
    )
