"""``ktriage readiness`` as text, Markdown, a page and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from backends.base.answers import ClusterInfo
from console.output.json_document import document
from console.output.report_blocks import (
    ReportBars,
    ReportBlock,
    ReportCommands,
    ReportHeading,
    ReportList,
    ReportText,
    report_table,
)
from console.reading.survey_json import cluster_json
from recovery.readiness import CheckResult, Readiness, Weakness, Weight
from recovery.wording.quantity_text import both, counted, printable, time_text
from widgets.fields import Field, data_field, json_of
from widgets.text import fold_text, terminal_width

RUNS_SAVED = 50


class ScoredRun(NamedTuple):
    """``lost``: the points that each check lost, without those that lost none or told nothing. ``incomplete``: the
    checks that were not made to their end.
    """

    at_ms: int
    score: int
    lost: Mapping[str, int]
    incomplete: tuple[str, ...] = ()


WEAKNESS: tuple[Field[tuple[str, Weakness]], ...] = (
    Field("weight", "WEIGHT", lambda row: row[1].weight),
    Field("check", "CHECK", lambda row: row[0]),
    Field("evidence", "WHAT", lambda row: printable(row[1].evidence), below=True),
    Field("mend", "MEND", lambda row: printable(row[1].mend), below=True),
    data_field("command", lambda row: row[1].command or None),
)
_CHECK: tuple[Field[CheckResult], ...] = (
    data_field("check", lambda one: one.check),
    data_field("worst", lambda one: one.worst),
    data_field("lost", lambda one: one.lost),
    data_field("of", lambda one: one.worst.points),
    data_field("notLookedAt", lambda one: one.unknown or None),
)


class ReadinessReport(NamedTuple):
    """``complete`` makes a command line that can be copied from one of the rule's. ``earlier`` are the runs before,
    the oldest first.
    """

    cluster: ClusterInfo
    found: Readiness
    earlier: Sequence[ScoredRun]
    at_ms: int
    complete: Callable[[str], str]

    @property
    def this_run(self) -> ScoredRun | None:
        """What is saved of this run; None where no check told anything."""
        score = self.found.score
        return (
            None
            if score is None
            else ScoredRun(self.at_ms, score, _lost(self.found), _incomplete(self.found))
        )


def _lost(found: Readiness) -> dict[str, int]:
    return {one.check: one.lost for one in found.results if one.lost}


def _incomplete(found: Readiness) -> tuple[str, ...]:
    return tuple(one.check for one in found.incomplete)


def saved_runs(runs: Sequence[ScoredRun]) -> dict[str, object]:
    """What is remembered of a cluster: the newest runs."""
    return {"runs": [{**run._asdict(), "lost": dict(run.lost)} for run in runs[-RUNS_SAVED:]]}


def recalled_runs(saved: Mapping[str, Any] | None) -> tuple[ScoredRun, ...]:
    """What was remembered; nothing of what cannot be read."""
    runs = []
    for run in (saved or {}).get("runs", ()):
        try:
            incomplete = tuple(map(str, run.get("incomplete", ())))
            runs.append(ScoredRun(int(run["at_ms"]), int(run["score"]), dict(run["lost"]), incomplete))
        except (KeyError, TypeError, ValueError):
            continue
    return tuple(runs)


def _counts(found: Readiness) -> str:
    number = len(found.weaknesses)
    by_weight = [
        f"{count} {weight}"
        for weight in reversed(Weight)
        if (count := sum(one.weight is weight for _, one in found.weaknesses))
    ]
    many = f"{counted(number, 'weakness', 'weaknesses')}{f' ({both(by_weight)})' if by_weight else ''}"
    whole = sum(one.complete for one in found.results)
    return f"{many}; {whole} of {counted(len(found.results), 'check')} complete"


def _verdict(found: Readiness) -> str:
    worst = max((one.lost for one in found.results), default=0)
    if worst >= Weight.GRAVE.points:
        return "NOT READY"
    if worst >= Weight.SERIOUS.points:
        return "not quite ready"
    return "ready" if all(one.complete for one in found.results) else "ready, as far as could be seen"


def head_lines(report: ReadinessReport) -> Iterator[str]:
    """The score, the counts, and what became of the run before."""
    score = report.found.score
    points = "unknown" if score is None else f"{score} of 100"
    yield f"{_verdict(report.found)}: {_counts(report.found)}; score {points}"
    if report.earlier and score is not None:
        yield _since(report.earlier[-1], score, report.found)


def _since(before: ScoredRun, score: int, found: Readiness) -> str:
    """What became better and worse, of the checks that were made to their end both times."""
    lost = _lost(found)
    known = {one.check for one in found.results if one.complete}.difference(before.incomplete)
    better = sorted(one for one in known if lost.get(one, 0) < before.lost.get(one, 0))
    worse = sorted(one for one in known if lost.get(one, 0) > before.lost.get(one, 0))
    new = sorted(one.check for one in found.results if one.complete and one.check in before.incomplete)
    word = "as before:" if before.score == score else "it was"
    parts = [f"{word} {before.score} at {time_text(before.at_ms)}"]
    parts += [f"better: {', '.join(better)}"] if better else []
    parts += [f"worse: {', '.join(worse)}"] if worse else []
    parts += [f"not looked at then: {', '.join(new)}"] if new else []
    return "; ".join(parts)


def text_lines(report: ReadinessReport) -> Iterator[str]:
    """For a terminal."""
    width = terminal_width()

    def folded(text: str, indent: str = "") -> list[str]:
        return [indent + text] if width is None else fold_text(text, width, indent)

    yield f"cluster {report.cluster.cluster_id}"
    for line in head_lines(report):
        yield from folded(line)
    for check, weakness in report.found.weaknesses:
        yield ""
        yield from folded(f"{weakness.weight.upper()}  {check}: {printable(weakness.evidence)}")
        yield from folded(printable(weakness.mend), "  ")
        if command := report.complete(weakness.command):
            yield f"  run:  {command}"  # two blanks: the line stays whole
    for line in _rest(report.found):
        yield from folded(line.lstrip(), "  " if line.startswith(" ") else "")


def _rest(found: Readiness) -> Iterator[str]:
    if found.incomplete:
        yield ""
        yield "not looked at, or not all of it:"
        for one in found.incomplete:
            yield f"  {one.check}: {printable(one.unknown)}"
    clear = _clear(found)
    if clear:
        yield ""
        yield f"no weakness seen: {', '.join(clear)}"


def _clear(found: Readiness) -> list[str]:
    return [one.check for one in found.results if one.complete and not one.weaknesses]


def report_blocks(report: ReadinessReport, made: str) -> Iterator[ReportBlock]:
    """For Markdown and a page."""
    yield ReportHeading(1, f"Readiness of cluster {report.cluster.cluster_id}")
    yield ReportText(f"{made}.")
    yield ReportList(tuple(head_lines(report)))
    now = report.this_run
    runs = (*report.earlier, now) if now is not None else tuple(report.earlier)
    if len(runs) > 1:
        yield ReportHeading(2, "Score")
        bars = tuple((time_text(run.at_ms), str(run.score), run.score / 100) for run in runs[-12:])
        yield ReportBars("score of 100", bars)
    if report.found.weaknesses:
        yield ReportHeading(2, "Weaknesses")
        yield from report_table(WEAKNESS, report.found.weaknesses)
        commands = dict.fromkeys(report.complete(one.command) for _, one in report.found.weaknesses)
        if lines := tuple(filter(None, commands)):
            yield ReportCommands(lines)
    if report.found.incomplete:
        yield ReportHeading(2, "Not looked at, or not all of it")
        yield ReportList(tuple(f"{one.check}: {one.unknown}" for one in report.found.incomplete))
    if clear := _clear(report.found):
        yield ReportHeading(2, "No weakness seen")
        yield ReportText(f"{', '.join(clear)}.")


def readiness_document(report: ReadinessReport) -> Iterator[str]:
    """``ktriage.readiness/1``."""
    weaknesses = [
        {**json_of(WEAKNESS)(pair), "command": report.complete(pair[1].command) or None}
        for pair in report.found.weaknesses
    ]
    return document(
        "readiness",
        {
            "cluster": cluster_json(report.cluster),
            "score": report.found.score,
            "weaknesses": weaknesses,
            "checks": list(map(json_of(_CHECK), report.found.results)),
            "earlier": [
                {"atMs": run.at_ms, "score": run.score, "lost": dict(run.lost)} for run in report.earlier
            ],
        },
    )
