"""Results of the pipeline in the terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from console.errors import InputError
from console.jobs.pipeline.exposure_parts import (
    FEW_CLUSTERS,
    ClusterRows,
    assumed,
    cut,
    exposure_of_cluster,
    exposure_parts,
    fix_parts,
    fixes_of_cluster,
    fleet_parts,
)
from console.output.bar_table import ResultPart, ResultRow, ResultTable, Share, first_rows, terminal_lines
from console.output.json_document import document
from console.output.screen import Screen
from pipeline.exposure.fix_choice import NOT_FIXED
from pipeline.results import JobResult
from recovery.wording.loss_text import range_text
from recovery.wording.quantity_text import counted, human_bytes, ids


def show_result(screen: Screen, result: JobResult, rows: int, *, json: bool, cluster_id: str = "") -> None:
    """Prints a result: its tables with bars, and its URI; with ``cluster_id`` what it says of that cluster. Raises
    InputError if it is not about it, or of a job that there is not.
    """
    if json:
        fields = {
            "job": result.job,
            "result": result.place.uri,
            "madeAt": result.made_at.isoformat(),
            "asked": dict(result.asked),
            "summary": dict(result.summary),
        }
        screen.out(document("pipeline", fields))
        return
    if result.job not in _PARTS:
        raise InputError(
            f"{result.place.uri}: a result of {result.job}, which this version of ktriage does not show"
        )
    parts = parts_of_cluster(result, cluster_id, rows) if cluster_id else result_parts(result, rows)
    screen.out(line for part in parts for line in terminal_lines(part))
    screen.say(f"result: {result.place.uri}")


def result_parts(result: JobResult, rows: int) -> Iterator[ResultPart]:
    """What a result says, the counts first; of each table the first ``rows``, 0 for all."""
    yield from _PARTS[result.job](result, rows)


def parts_of_cluster(result: JobResult, cluster_id: str, rows: int) -> Iterator[ResultPart]:
    """What the result says of one cluster. Raises InputError if it is not about it, or does not list it."""
    found = ClusterRows(result)
    if result.job not in _OF_CLUSTER:
        raise InputError(f"--cluster-id: a result of {result.job} is not about clusters")
    refused = found.of("refused", cluster_id)
    if cluster_id not in found.clusters and not refused:
        raise InputError(f"--cluster-id {cluster_id}: {result.place.uri} is not about it")
    if cluster_id in found.clusters:
        yield from _OF_CLUSTER[result.job](found, cluster_id, rows)
    yield from quarantine(found.of("quarantined", cluster_id), refused, 0)


def fleet_line(result: JobResult) -> str:
    """The result in one sentence, without the names of clusters."""
    return _LINES[result.job](result)


def _plan(result: JobResult, rows: int) -> Iterator[ResultPart]:
    found = ClusterRows(result)
    yield _plan_line(result)
    losses = {row["cluster_id"]: row for row in result.summary["losses"]}
    listed = sorted(found.clusters, key=lambda one: -losses.get(one, {}).get("at_least", 0))
    yield from _planned(found, listed, rows)
    yield from _choices(result.summary["worst"], rows)
    yield from quarantine(result.summary["quarantined"], result.summary["refused"], rows)


def _plan_line(result: JobResult) -> str:
    summary, asked = result.summary, result.asked
    verdicts: dict[str, int] = {}
    for row in summary["verdicts"]:
        verdicts[row["verdict"]] = verdicts.get(row["verdict"], 0) + row["partitions"]
    said = (
        ", ".join(f"{count:,} {verdict}" for verdict, count in sorted(verdicts.items())) or "nothing offline"
    )
    unknown = sum(row["unknown"] for row in summary["losses"])
    at_least = sum(row["at_least"] or 0 for row in summary["losses"])
    lost = f"; {loss_of(at_least, unknown)} lost" if summary["losses"] else ""
    return (
        f"ranking {asked['ranking']}, strategy {asked['strategy']}, {counted(len(asked['clusters']), 'cluster')}:"
        f" {said}{lost}"
    )


def loss_of(at_least: int, unknown: int) -> str:
    """Offsets that are lost for certain, where ``unknown`` partitions may lose any number; never 0 for unknown."""
    if not unknown:
        return f"{at_least:,}"
    return f"{at_least:,} or more" if at_least else "unknown"


def _planned(found: ClusterRows, clusters: Sequence[str], rows: int) -> Iterator[ResultPart]:
    """A row for each cluster."""
    summary = found.result.summary
    verdicts: dict[str, dict[str, int]] = {}
    for row in summary["verdicts"]:
        verdicts.setdefault(row["cluster_id"], {})[row["verdict"]] = row["partitions"]
    losses = {row["cluster_id"]: row for row in summary["losses"]}
    most = max((row["at_least"] for row in losses.values()), default=0)
    columns = ("id", "partitions", "to elect", "lose nothing", "loses", "", "unknown bound", "others", "name")
    names = found.result.asked.get("names", {})
    partitions = summary.get("partitions", {})
    listed = [
        (
            *_cluster_row(one, partitions.get(one, 0), verdicts.get(one, {}), losses.get(one), most),
            names.get(one, ""),
        )
        for one in first_rows(clusters, rows)
    ]
    yield ResultTable("clusters", columns if any(names.values()) else columns[:-1], listed, ids_first=True)
    yield from cut(clusters, rows, "clusters")


def _choices(worst: Sequence[Mapping[str, Any]], rows: int) -> Iterator[ResultPart]:
    if worst:
        top = max(row["at_least"] for row in worst)
        yield ResultTable(
            "the worst choices",
            ("cluster", "partition", "leader", "loses", "", "why"),
            [
                (
                    row["cluster_id"],
                    f"{row['topic']}-{row['partition']}",
                    str(row["chosen"]),
                    range_text(row["at_least"], row["at_most"]),
                    Share(row["at_least"], top),
                    row["reason"],
                )
                for row in first_rows(worst, rows)
            ],
        )


def _plan_of_cluster(found: ClusterRows, cluster_id: str, rows: int) -> Iterator[ResultPart]:
    asked = found.result.asked
    yield f"ranking {asked['ranking']}, strategy {asked['strategy']}"
    yield from _planned(found, [cluster_id], 0)
    yield from _choices(found.of("worst", cluster_id), rows)


def _cluster_row(
    name: str, partitions: int, verdicts: Mapping[str, int], loss: Mapping[str, int] | None, most: int
) -> ResultRow:
    others = ", ".join(
        f"{count:,} {verdict}" for verdict, count in sorted(verdicts.items()) if verdict != "elect"
    )
    if loss is None:
        return name, f"{partitions:,}", "0", "", "", "", "", others
    return (
        name,
        f"{partitions:,}",
        f"{loss['elect']:,}",
        f"{loss['lossless']:,}",
        loss_of(loss["at_least"] or 0, loss["unknown"]),
        Share(loss["at_least"] or 0, most),
        f"{loss['unknown']:,}",
        others,
    )


def quarantine(
    broken: Sequence[Mapping[str, Any]], refused: Sequence[Mapping[str, Any]], rows: int
) -> Iterator[ResultPart]:
    """The broken rows and what was left out, and why: nothing is dropped silently."""
    if broken:
        yield ResultTable(
            "quarantined rows",
            ("cluster", "rows", "why"),
            [
                (row["cluster_id"], f"{row['rows']:,}", row["reason"])
                for row in first_rows(sorted(broken, key=lambda row: -row["rows"]), rows)
            ],
        )
        yield from cut(broken, rows, "of them")
    for row in first_rows(refused, rows):
        yield f"left out: cluster {row['cluster_id']}: {row['reason']}"
    yield from cut(refused, rows, "that were left out")


def _history(result: JobResult, rows: int) -> Iterator[ResultPart]:
    found, summary = ClusterRows(result), result.summary
    yield from _continued(summary.get("continued"))
    if len(found.clusters) <= FEW_CLUSTERS:
        yield from (_snapshots(found, name) for name in found.clusters)
        yield _incident_counts(summary["counts"])
    else:
        yield _history_line(result)
        sums: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        for row in summary["counts"]:
            sums.setdefault((row["kind"], row["outcome"]), []).append(row)
        yield _incident_counts(
            [
                {
                    "cluster_id": f"{len(mine):,}",
                    "kind": kind,
                    "outcome": outcome,
                    "incidents": sum(row["incidents"] for row in mine),
                    "at_least_s": sum(row["at_least_s"] or 0 for row in mine),
                }
                for (kind, outcome), mine in sorted(sums.items())
            ],
            "clusters",
        )
    yield from _incidents(summary["offenders"], summary["longest"], summary["events"], rows)
    yield from quarantine(summary["quarantined"], (), rows)
    for row in first_rows(summary["refused"], rows):
        yield f"cluster {row['cluster_id']}, snapshot {row['snapshot']}: {row['reason']}"
    yield from cut(summary["refused"], rows, "snapshots that were left out")


def _history_line(result: JobResult) -> str:
    clusters, summary = result.asked["clusters"], result.summary
    gaps = sum(count > 0 for count in summary["gaps"].values())
    offline = [row for row in summary["counts"] if row["kind"] == "offline"]
    unknown = sum(row["incidents"] for row in offline if row["outcome"] == "unknown")
    return (
        f"{counted(len(clusters), 'cluster')}, {counted(sum(clusters.values()), 'snapshot')}, {gaps:,} with gaps:"
        f" {counted(sum(row['incidents'] for row in offline), 'time')} that a partition was offline,"
        f" {unknown:,} of them with an unknown end"
    )


def _snapshots(found: ClusterRows, cluster_id: str) -> str:
    gaps = found.result.summary["gaps"].get(cluster_id, 0)
    others = found.result.summary.get("other_chains", {}).get(cluster_id, 0)
    return (
        f"{found.name(cluster_id)}: {counted(found.result.asked['clusters'][cluster_id], 'snapshot')}"
        + (f", {counted(gaps, 'gap')}: what happened there is unknown" if gaps else "")
        + (f"; {others:,} others not used: another collector took them meanwhile" if others else "")
    )


def _incident_counts(counts: Sequence[Mapping[str, Any]], whose: str = "cluster") -> ResultTable:
    return ResultTable(
        "incidents",
        (whose, "kind", "outcome", "incidents", "together, s at least"),
        [
            (r["cluster_id"], r["kind"], r["outcome"], f"{r['incidents']:,}", f"{r['at_least_s'] or 0:,.0f}")
            for r in counts
        ],
    )


def _history_of_cluster(found: ClusterRows, cluster_id: str, rows: int) -> Iterator[ResultPart]:
    yield _snapshots(found, cluster_id)
    yield _incident_counts(found.of("counts", cluster_id))
    offenders, longest, events = (found.of(name, cluster_id) for name in ("offenders", "longest", "events"))
    yield from _incidents(offenders, longest, events, rows)


def _incidents(
    offenders: Sequence[Mapping[str, Any]],
    longest: Sequence[Mapping[str, Any]],
    events: Sequence[Mapping[str, Any]],
    rows: int,
) -> Iterator[ResultPart]:
    if offenders:
        yield ResultTable(
            "repeat offenders",
            ("cluster", "partition", "kind", "incidents", "s at least"),
            [
                (
                    r["cluster_id"],
                    f"{r['topic']}-{r['partition']}",
                    r["kind"],
                    f"{r['incidents']:,}",
                    f"{r['at_least_s'] or 0:,.0f}",
                )
                for r in first_rows(offenders, rows)
            ],
        )
    if longest:
        yield ResultTable(
            "the longest",
            ("cluster", "partition", "kind", "began", "seconds", "outcome", "how", "by"),
            [
                (
                    r["cluster_id"],
                    f"{r['topic']}-{r['partition']}",
                    r["kind"],
                    r["began"],
                    _seconds(r["at_least_s"], r["at_most_s"]),
                    r["outcome"],
                    r["how"] or "",
                    r["who"] or "",
                )
                for r in first_rows(longest, rows)
            ],
        )
    if events:
        yield ResultTable(
            "quorum, brokers and log dirs, newest first",
            ("when", "cluster", "what", "was", "is", ""),
            [
                (
                    r["when"],
                    r["cluster_id"],
                    r["subject"],
                    r["was"],
                    r["now"],
                    "in a gap" if r["in_a_gap"] else "",
                )
                for r in first_rows(events, rows)
            ],
        )


def _continued(continued: Mapping[str, Any] | None) -> Iterator[str]:
    """Of which earlier run the result takes the rows, and which clusters were read whole, and why."""
    if continued is not None:
        clusters = counted(continued["clusters"], "cluster")
        yield f"continues {continued['run']}: only later snapshots of {clusters} were read"
        for name, why in continued["read_whole"].items():
            yield f"{name}: every snapshot was read: {why}"


def _exposure(result: JobResult, rows: int) -> Iterator[ResultPart]:
    yield from exposure_parts(result, rows)
    yield from quarantine(result.summary["quarantined"], result.summary["refused"], rows)


def _exposure_of_cluster(found: ClusterRows, cluster_id: str, rows: int) -> Iterator[ResultPart]:
    yield from assumed(found.result)
    yield from exposure_of_cluster(found, cluster_id, rows)


def _exposure_line(result: JobResult) -> str:
    fleet = result.summary.get("fleet", ())
    said = [part for part in fleet_parts(fleet, 1, table=False) if isinstance(part, str)]
    clusters = said[0] if said else counted(len(result.asked.get("clusters", ())), "cluster")
    return "; ".join((*map(str, assumed(result)), clusters))


def _fixes(result: JobResult, rows: int) -> Iterator[ResultPart]:
    yield from fix_parts(result, rows)
    yield from quarantine(result.summary["quarantined"], result.summary["refused"], rows)


def _fixes_line(result: JobResult) -> str:
    kinds = result.summary["kinds"]
    exposed = sum(row["partitions"] for row in kinds if row["kind"] == NOT_FIXED)
    fixed = sum(row["partitions"] for row in kinds) - exposed
    copied = human_bytes(sum(row["bytes"] or 0 for row in kinds))
    return f"{counted(fixed, 'partition')} can be fixed by copying {copied}, {exposed:,} stay exposed"


def _watch(result: JobResult, rows: int) -> Iterator[ResultPart]:
    yield _watch_line(result)
    yield from _watched(result.summary["open"], result.summary["topics"], rows)


def _watch_line(result: JobResult) -> str:
    summary = result.summary
    ended = sum(row["incidents"] for row in summary["counts"])
    unclean = sum(row["incidents"] for row in summary["counts"] if row["outcome"] == "unclean election")
    unknown = sum(row["incidents"] for row in summary["counts"] if row["outcome"] == "unknown")
    return (
        f"{counted(summary['open_count'], 'incident')} open, {ended:,} ended: {unclean:,} by an unclean election,"
        f" {unknown:,} at an unknown time"
    )


def _watch_of_cluster(found: ClusterRows, cluster_id: str, rows: int) -> Iterator[ResultPart]:
    yield from _watched(found.of("open", cluster_id), found.of("topics", cluster_id), rows)


def _watched(
    now: Sequence[Mapping[str, Any]], topics: Sequence[Mapping[str, Any]], rows: int
) -> Iterator[ResultPart]:
    if now:
        yield ResultTable(
            "open incidents, the oldest first",
            ("cluster", "partition", "offline since", "ISR", "ELR", "last known ELR", "min ISR"),
            [
                (
                    row["cluster_name"],
                    f"{row['topic']}-{row['partition']}",
                    _moment(row["since"]) + ("" if row["since_exact"] else " or before"),
                    *(
                        "?" if row[name] is None else ids(row[name])
                        for name in ("isr", "elr", "last_known_elr")
                    ),
                    "?" if row["min_isr"] is None else str(row["min_isr"]),
                )
                for row in first_rows(now, rows)
            ],
        )
        yield from cut(now, rows, "open incidents")
    if topics:
        most = max((row["minutes"] or 0.0) for row in topics)
        yield ResultTable(
            "topics, by the minutes that their partitions were offline",
            ("cluster", "topic", "minutes", "", "incidents", "unclean elections", "end unknown", "last"),
            [
                (
                    row["cluster_name"],
                    row["topic"] or "?",
                    "unknown" if row["minutes"] is None else f"{row['minutes']:,.2f}",
                    Share(row["minutes"] or 0.0, most),
                    f"{row['incidents']:,}",
                    f"{row['unclean_elections']:,}",
                    f"{row['end_unknown']:,}",
                    _moment(row["last_since"]),
                )
                for row in first_rows(topics, rows)
            ],
        )
        yield from cut(topics, rows, "topics")


def _moment(text: str) -> str:
    """A time in ISO 8601, to the second."""
    return f"{text[:10]} {text[11:19]}"


def _seconds(at_least: float | None, at_most: float | None) -> str:
    least = f"{at_least or 0:,.0f}"
    return f"{least} to {at_most:,.0f}" if at_most is not None else f"at least {least}"


_PARTS: dict[str, Callable[[JobResult, int], Iterator[ResultPart]]] = {
    "plan": _plan,
    "exposure": _exposure,
    "fixes": _fixes,
    "history": _history,
    "watch": _watch,
}
_OF_CLUSTER: dict[str, Callable[[ClusterRows, str, int], Iterator[ResultPart]]] = {
    "plan": _plan_of_cluster,
    "exposure": _exposure_of_cluster,
    "fixes": fixes_of_cluster,
    "history": _history_of_cluster,
    "watch": _watch_of_cluster,
}
_LINES: dict[str, Callable[[JobResult], str]] = {
    "plan": _plan_line,
    "exposure": _exposure_line,
    "fixes": _fixes_line,
    "history": _history_line,
    "watch": _watch_line,
}
