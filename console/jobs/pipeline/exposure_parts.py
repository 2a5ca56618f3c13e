"""What a result of ``exposure`` or of ``fixes`` says."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from console.output.bar_table import ResultPart, ResultRow, ResultTable, Share, first_rows
from pipeline.exposure.fix_choice import NOT_FIXED
from pipeline.exposure.what_if import what_if_from
from pipeline.results import JobResult
from pipeline.tables.schemas import ACKNOWLEDGED
from recovery.wording.quantity_text import counted, human_bytes, ids, more, some_of

FEW_CLUSTERS = 3
"""Of more clusters a result shows the worst rows of all, and not the tables of each."""


class ClusterRows(NamedTuple):
    """The rows of a summary, with the clusters' names."""

    result: JobResult

    @property
    def clusters(self) -> list[str]:
        """The ids of the clusters that the result is about."""
        return list(self.result.asked.get("clusters", ()))

    def of(self, table: str, cluster_id: str) -> list[Mapping[str, Any]]:
        return [row for row in self.result.summary.get(table, ()) if row["cluster_id"] == cluster_id]

    def name(self, cluster_id: str) -> str:
        """How the cluster was named when it was asked, with its id."""
        name = self.result.asked.get("names", {}).get(cluster_id, "")
        return f"{name} ({cluster_id})" if name and name != cluster_id else cluster_id


def cut(rows: Sequence[Any], most: int, what: str) -> Iterator[ResultPart]:
    """How many rows a table leaves out."""
    if most > 0:
        yield from more(len(rows) - most, f" {what} (--rows 0 shows all)")


def exposure_parts(result: JobResult, rows: int) -> Iterator[ResultPart]:
    """What each failure takes, and the answers to questions; of many clusters a row for each."""
    found = ClusterRows(result)
    yield from assumed(result)
    yield from fleet_parts(result.summary.get("fleet", ()), rows)
    if len(found.clusters) <= FEW_CLUSTERS:
        for cluster_id in found.clusters:
            yield from exposure_of_cluster(found, cluster_id, rows)
        return
    yield from _unasked(result, found.clusters)
    answers = sorted(result.summary.get("what_if", ()), key=lambda row: tuple(-row[name] for name in _WORST))
    if answers:
        shown = [_answer(row) for row in first_rows(answers, rows)]
        yield ResultTable("what if, the worst answers first", _ANSWERS, shown)
        yield from cut(answers, rows, "answers")
    detailed = dict.fromkeys(row["cluster_id"] for row in result.summary["worst"])
    if detailed:
        words = ("ktriage", "pipeline", "show", result.place.uri, "--cluster-id", next(iter(detailed)))
        yield f"the failures of one of the first {len(detailed)} clusters: {shlex.join(words)}"


_WORST = ("acknowledged_at_risk", "offline", "under_min_isr")
_ANSWERS = ("cluster", "fails", "records at risk", "offline", "new under min ISR", "on it")


def _answer(row: Mapping[str, Any]) -> ResultRow:
    counts = (_count(row, name) for name in (*_WORST, "partitions"))
    return (row["cluster_id"], _failed(row), *counts)


def assumed(result: JobResult) -> Iterator[ResultPart]:
    """What every count assumes; nothing: the clusters as they are."""
    yield from (f"counted as if {what}" for what in what_if_from(result.asked.get("what_if", {})).assumed)


def exposure_of_cluster(found: ClusterRows, cluster_id: str, rows: int) -> Iterator[ResultPart]:
    """The answers to questions, and the failures and topics, of one cluster."""
    name = found.name(cluster_id)
    yield from _unasked(found.result, [cluster_id])
    if answers := found.of("what_if", cluster_id):
        yield ResultTable(f"{name}: what if", _EXPOSED, list(_exposed(answers, "kind")))
        yield from _acknowledged(name, "what if", answers)
    for together, title in ((1, "one failure"), (2, "two at once: partitions that are on both")):
        worst = [row for row in found.of("worst", cluster_id) if row["together"] == together]
        if worst:
            shown = first_rows(worst, rows)
            yield ResultTable(f"{name}: {title}", _EXPOSED, list(_exposed(shown, "kind")))
            yield from _acknowledged(name, title, shown)
    topics = [
        {**row, "kind": row["topic"], "failed": [f"broker {row['broker']}"]}
        for row in found.of("topics", cluster_id)
    ]
    if topics:
        yield ResultTable(f"{name}: topics", ("topic", *_EXPOSED[1:]), list(_exposed(topics, "kind")))


def _unasked(result: JobResult, clusters: Sequence[str]) -> Iterator[str]:
    """The questions that have no answer for some of these clusters, because they have nothing of what is lost."""
    answered = {(row["cluster_id"], row["failed"][0]) for row in result.summary.get("what_if", ())}
    for text in what_if_from(result.asked.get("what_if", {})).questions:
        without = [name for name in clusters if (name, text) not in answered]
        if without:
            plural = "s" * (len(without) > 1)
            yield f"{text}: nothing of this is in cluster{plural} {some_of(without, NAMED)}"


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


def _acknowledged(name: str, title: str, found: Sequence[Mapping[str, Any]]) -> Iterator[ResultPart]:
    """What the failures among them that take partitions offline, or let Kafka elect whoever is alive, do to
    acknowledged records; of an earlier version's results it is not known.
    """
    rows = [row for row in found if any(row.get(name) for name in ACKNOWLEDGED)]
    if rows:
        most = max(row["acknowledged_at_risk"] for row in rows)
        yield ResultTable(
            f"{name}: {title}: acknowledged records where partitions go offline or elect at once",
            (
                "what",
                "fails",
                "offline",
                "at risk",
                "",
                "only outside the ISR",
                "elected whatever it lost",
                "elected at once",
            ),
            [
                (
                    row["kind"],
                    _failed(row),
                    f"{row['offline']:,}",
                    f"{row['acknowledged_at_risk']:,}",
                    Share(row["acknowledged_at_risk"], most, 10),
                    f"{row['acknowledged_outside_isr']:,}",
                    f"{row['elected_whatever_it_lost']:,}",
                    _count(row, "elected_at_once"),
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


def fleet_parts(fleet: Sequence[Mapping[str, Any]], rows: int, *, table: bool = True) -> Iterator[ResultPart]:
    """One sentence on all clusters, and with ``table`` a row for each, the worst first; nothing of a single one."""
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
    if not table:
        return
    most = max((row["acknowledged_at_risk"] for row in read), default=0)
    named = any(row.get("cluster_name") for row in read)
    columns = (*_FLEET, "name") if named else _FLEET
    shown = [
        (*_fleet_row(row, most), row.get("cluster_name") or "") if named else _fleet_row(row, most)
        for row in first_rows(read, rows)
    ]
    yield ResultTable("clusters, the worst first", columns, shown, ids_first=True)
    yield from cut(read, rows, "clusters")


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
    """What would be changed, what that saves, and what stays exposed and why; of many clusters the sums."""
    found = ClusterRows(result)
    if len(found.clusters) <= FEW_CLUSTERS:
        for cluster_id in found.clusters:
            yield from fixes_of_cluster(found, cluster_id, rows)
        return
    kinds = result.summary["kinds"]
    clusters = {row["cluster_id"] for row in kinds}
    copied = human_bytes(sum(row["bytes"] or 0 for row in kinds))
    yield (
        f"{counted(len(found.clusters), 'cluster')}: one failure takes too much in {len(clusters):,};"
        f" {copied} to be copied"
    )
    listed = [_fix_sums(found, name) for name in clusters]
    listed.sort(key=lambda row: (-row.exposed, -row.fixed, row.cluster_id))
    columns = ("id", "partitions fixed", "still exposed", "copied")
    table = [
        (row.cluster_id, f"{row.fixed:,}", f"{row.exposed:,}", human_bytes(row.copied)) for row in listed
    ]
    yield ResultTable("clusters, the most exposed first", columns, first_rows(table, rows), ids_first=True)
    yield from cut(table, rows, "clusters")


class _FixSums(NamedTuple):
    cluster_id: str
    fixed: int
    exposed: int
    copied: int


def _fix_sums(found: ClusterRows, cluster_id: str) -> _FixSums:
    kinds = found.of("kinds", cluster_id)
    exposed = sum(row["partitions"] for row in kinds if row["kind"] == NOT_FIXED)
    fixed = sum(row["partitions"] for row in kinds) - exposed
    return _FixSums(cluster_id, fixed, exposed, sum(row["bytes"] or 0 for row in kinds))


def fixes_of_cluster(found: ClusterRows, cluster_id: str, rows: int) -> Iterator[ResultPart]:
    """The fixes of one cluster, what they save, and what stays exposed and why."""
    name, kinds = found.name(cluster_id), found.of("kinds", cluster_id)
    copied = sum(row["bytes"] or 0 for row in kinds)
    if not kinds:
        yield f"{name}: no single failure takes more of a partition than it may"
        return
    yield f"{name}: {human_bytes(copied)} to be copied"
    yield ResultTable(
        f"{name}: partitions of which one failure takes too much",
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
    if failures := found.of("failures", cluster_id):
        yield _failures(name, first_rows(failures, rows))
    if fixes := found.of("fixes", cluster_id):
        columns = ("fix", "what", "before", "after", "copied", "min.insync.replicas first")
        yield ResultTable(
            f"{name}: the first fixes", columns, [_fix_row(row) for row in first_rows(fixes, rows)]
        )
    for row in found.of("reasons", cluster_id):
        yield f"  {counted(row['count'], 'partition')} still exposed: {row['why']}"


def _failures(name: str, failures: Sequence[Mapping[str, Any]]) -> ResultTable:
    most = max(row["before"] for row in failures)
    return ResultTable(
        f"{name}: failures before and after the fixes",
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
