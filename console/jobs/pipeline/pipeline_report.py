"""Results of the pipeline in the terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from console.jobs.pipeline.exposure_parts import exposure_parts, fix_parts
from console.output.bar_table import ResultPart, ResultRow, ResultTable, Share, first_rows, terminal_lines
from console.output.json_document import document
from console.output.screen import Screen
from pipeline.results import JobResult
from recovery.wording.loss_text import range_text
from recovery.wording.quantity_text import counted


def show_result(screen: Screen, result: JobResult, rows: int, *, json: bool) -> None:
    """Prints a result: its tables with bars, and its URI."""
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
    screen.out(line for part in result_parts(result, rows) for line in terminal_lines(part))
    screen.say(f"result: {result.place.uri}")


def result_parts(result: JobResult, rows: int) -> Iterator[ResultPart]:
    """What a result says, the counts first; of each table the first ``rows``, 0 for all."""
    yield from _PARTS[result.job](result, rows)


def mean(cell: Mapping[str, Any], name: str) -> str:
    """A mean with its interval, such as 12.3 ± 0.4; "?" if it is unknown."""
    value, spread = cell.get(name), cell.get(f"{name}_ci")
    if value is None:
        return "?"
    return f"{value:,.2f}" if spread is None else f"{value:,.2f} ± {spread:,.2f}"


def _drill(result: JobResult, rows: int) -> Iterator[ResultPart]:  # noqa: ARG001  # a registry's signature
    summary = result.summary
    yield f"{counted(summary['incidents'], 'incident')}, {summary['failed']:,} that could not be run"
    cells: list[dict[str, Any]] = summary["cells"]
    groups = list(dict.fromkeys((cell["scenario"], cell["min_isr"]) for cell in cells))
    for scenario, min_isr in groups:
        inside = [c for c in cells if (c["scenario"], c["min_isr"]) == (scenario, min_isr)]
        most = max((c["lost_acknowledged"] or 0.0) for c in inside)
        level = "" if min_isr < 0 else f", min ISR {min_isr}"
        yield ResultTable(
            f"{scenario}{level}: mean per incident, ± 95 % confidence{_few(c['incidents'] for c in inside)}",
            (
                "arm",
                "acks=all lost",
                "",
                "that lose",
                "other lost",
                "rescuable",
                "lost for good",
                "partition s offline",
                "choices",
                "waits",
                "offline at the end",
            ),
            [
                (
                    c["arm"],
                    mean(c, "lost_acknowledged"),
                    Share(c["lost_acknowledged"] or 0.0, most),
                    f"{c['losing']:,} of {c['incidents']:,}",
                    mean(c, "lost_other"),
                    mean(c, "rescuable"),
                    mean(c, "lost_for_good"),
                    mean(c, "unavailable_s"),
                    mean(c, "decisions"),
                    mean(c, "waits"),
                    mean(c, "offline_after"),
                )
                for c in inside
            ],
        )

    # Results of earlier versions have no differences.
    if "paired" in summary:
        yield from _paired(summary["paired"])


FEW_INCIDENTS = 30
"""With fewer, an interval that takes the mean as normally distributed, or resamples them, is too narrow."""


def _few(incidents: Iterable[int]) -> str:
    return " (too narrow: few incidents)" if min(incidents, default=0) < FEW_INCIDENTS else ""


def _paired(paired: Mapping[str, Any]) -> Iterator[ResultPart]:
    """How each method differs from the baseline on the same incidents, over all scenarios."""
    overall = [row for row in paired["rows"] if row["scenario"] == "all"]
    for min_isr in dict.fromkeys(row["min_isr"] for row in overall):
        level = "" if min_isr < 0 else f", min ISR {min_isr}"
        chosen = [row for row in overall if row["min_isr"] == min_isr]
        yield ResultTable(
            f"compared with {paired['baseline']} on the same incidents{level}: mean difference [95 % bootstrap]"
            f"{_few(row['pairs'] for row in chosen)}",
            ("arm", "incidents", "acks=all lost", "loses less, more", "partition s offline", "less, more"),
            [
                (
                    row["arm"],
                    f"{row['pairs']:,}",
                    difference(row, "lost_acknowledged"),
                    f"{row['lost_acknowledged_less']:,}, {row['lost_acknowledged_more']:,}",
                    difference(row, "unavailable_s"),
                    f"{row['unavailable_s_less']:,}, {row['unavailable_s_more']:,}",
                )
                for row in chosen
            ],
        )
    if paired["worst"]:
        yield ""
        yield "the incidents in which each method lost most"
    for row in paired["worst"]:
        yield f"  {row['lost_acknowledged']:,} acks=all lost: {row['replay']}"


def difference(row: Mapping[str, Any], name: str) -> str:
    """A mean difference with its interval, such as -12.30 [-14.10, -10.20]; "[?]" if the interval is unknown."""
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    between = "?" if low is None else f"{low:+,.2f}, {high:+,.2f}"
    return f"{row[name]:+,.2f} [{between}]"


def _plan(result: JobResult, rows: int) -> Iterator[ResultPart]:
    summary = result.summary
    asked = result.asked
    yield f"ranking {asked['ranking']}, strategy {asked['strategy']}, {counted(len(asked['clusters']), 'cluster')}"
    verdicts: dict[str, dict[str, int]] = {}
    for row in summary["verdicts"]:
        verdicts.setdefault(row["cluster_id"], {})[row["verdict"]] = row["partitions"]
    losses = {row["cluster_id"]: row for row in summary["losses"]}
    partitions = summary.get("partitions", {})
    listed = sorted(asked["clusters"], key=lambda one: -losses.get(one, {}).get("at_least", 0))
    most = max((row["at_least"] for row in losses.values()), default=0)
    columns = ("id", "partitions", "to elect", "lose nothing", "lose at least", "", "unknown bound", "others")
    rows_shown = [
        _cluster_row(one, partitions.get(one, 0), verdicts.get(one, {}), losses.get(one), most)
        for one in (listed[:rows] if rows else listed)
    ]
    yield ResultTable("clusters", columns, rows_shown, ids_first=True)
    if len(listed) > rows > 0:
        yield f"… and {len(listed) - rows:,} more clusters (--rows 0 shows all)"
    worst = summary["worst"]
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
                for row in (worst[:rows] if rows else worst)
            ],
        )
    yield from _quarantine(summary)


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
        f"{loss['at_least']:,}",
        Share(loss["at_least"], most),
        f"{loss['unknown']:,}",
        others,
    )


def _quarantine(summary: Mapping[str, Any]) -> Iterator[ResultPart]:
    """The broken rows and the clusters that were left out, and why: nothing is dropped silently."""
    yield from _broken_rows(summary)
    for row in summary["refused"]:
        yield f"left out: cluster {row['cluster_id']}: {row['reason']}"


def _broken_rows(summary: Mapping[str, Any]) -> Iterator[ResultPart]:
    if summary["quarantined"]:
        yield ResultTable(
            "quarantined rows",
            ("cluster", "rows", "why"),
            [(row["cluster_id"], f"{row['rows']:,}", row["reason"]) for row in summary["quarantined"]],
        )


def _history(result: JobResult, rows: int) -> Iterator[ResultPart]:
    summary = result.summary
    for cluster_id, moments in result.asked["clusters"].items():
        gaps = summary["gaps"].get(cluster_id, 0)
        others = summary.get("other_chains", {}).get(cluster_id, 0)
        yield (
            f"{cluster_id}: {counted(moments, 'snapshot')}"
            + (f", {counted(gaps, 'gap')}: what happened there is unknown" if gaps else "")
            + (f"; {others:,} others not used: another collector took them meanwhile" if others else "")
        )
    yield from _continued(summary.get("continued"))
    yield ResultTable(
        "incidents",
        ("cluster", "kind", "outcome", "incidents", "together, s at least"),
        [
            (r["cluster_id"], r["kind"], r["outcome"], f"{r['incidents']:,}", f"{r['at_least_s'] or 0:,.0f}")
            for r in summary["counts"]
        ],
    )
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
            for r in first_rows(summary["offenders"], rows)
        ],
    )
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
            for r in first_rows(summary["longest"], rows)
        ],
    )
    if summary["events"]:
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
                for r in first_rows(summary["events"], rows)
            ],
        )
    yield from _broken_rows(summary)
    for row in summary["refused"]:
        yield f"cluster {row['cluster_id']}, snapshot {row['snapshot']}: {row['reason']}"


def _continued(continued: Mapping[str, Any] | None) -> Iterator[str]:
    """Of which earlier run the result takes the rows, and which clusters were read whole, and why."""
    if continued is not None:
        clusters = counted(continued["clusters"], "cluster")
        yield f"continues {continued['run']}: only later snapshots of {clusters} were read"
        for name, why in continued["read_whole"].items():
            yield f"{name}: every snapshot was read: {why}"


def _exposure(result: JobResult, rows: int) -> Iterator[ResultPart]:
    yield from exposure_parts(result, rows)
    yield from _quarantine(result.summary)


def _fixes(result: JobResult, rows: int) -> Iterator[ResultPart]:
    yield from fix_parts(result, rows)
    yield from _quarantine(result.summary)


def _seconds(at_least: float | None, at_most: float | None) -> str:
    least = f"{at_least or 0:,.0f}"
    return f"{least} to {at_most:,.0f}" if at_most is not None else f"at least {least}"


_PARTS: dict[str, Callable[[JobResult, int], Iterator[ResultPart]]] = {
    "drill": _drill,
    "plan": _plan,
    "exposure": _exposure,
    "fixes": _fixes,
    "history": _history,
}
