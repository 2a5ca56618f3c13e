"""The hand-over page for the next person on call."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from console.jobs.incident.incident import Incident
from console.jobs.incident.incident_open import disks_lost, gap_lines, next_commands, open_items
from console.jobs.incident.journal_report import end_text, journal_time
from console.journal.planned_elections import planned_entries
from console.journal.run_records import RunRecord
from console.output.report_blocks import (
    ReportBlock,
    ReportCommands,
    ReportHeading,
    ReportList,
    ReportText,
)

LAST_RUNS = 5
_NOTHING_SENT = "Nothing was sent from this host."


def handover_blocks(incident: Incident, made: str, arguments: Sequence[str]) -> Iterator[ReportBlock]:
    """``arguments`` name the cluster in the commands."""
    yield ReportHeading(1, f"Hand-over: cluster {incident.sources.cluster_id}")
    yield ReportText(f"Made {made}. All times are UTC.")
    yield ReportHeading(2, "Open, the worst first")
    items = tuple(open_items(incident))
    yield ReportList(items) if items else ReportText("Nothing, as far as the sources below tell.")
    if back := tuple(disks_lost(incident)):
        yield ReportText("Brokers that came back, and whose disks were not read before:")
        yield ReportList(back)
    yield ReportHeading(2, "Next commands")
    commands = tuple(next_commands(incident, *arguments))
    yield ReportCommands(commands) if commands else ReportText("None.")
    yield ReportHeading(2, "Last done")
    if incident.recorded:
        done = [*map(_run_line, incident.runs[-LAST_RUNS:]), incident.sources.rebuild]
        # Each begins with its time.
        yield ReportList(tuple(sorted(filter(None, done)))) if any(done) else ReportText(_NOTHING_SENT)
    else:
        yield ReportText("Not known: the journal was not read (below).")
    yield ReportHeading(2, "Not known")
    yield ReportList(
        (*gap_lines(incident), "What other tools and other hosts sent, beside the metadata log.")
    )


def _run_line(run: RunRecord) -> str:
    reason = f"; reason: {run.header['reason']}" if run.header.get("reason") else ""
    more = " (elections: see ktriage journal)" if planned_entries(run) else ""
    command = shlex.join(run.header.get("command", ()))
    ended = end_text(run, going_on=False)
    return f"{journal_time(run.header.get('at'))} {run.operator}: {command}, {ended}{more}{reason}"
