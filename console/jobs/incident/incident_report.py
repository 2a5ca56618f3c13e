"""The report of an incident, in the order in which it is read: in short, what happened, who decided what and why,
what was lost and saved, what is still open.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from backends.base.answers import Outcome
from console.jobs.incident.affected_groups import affected_groups
from console.jobs.incident.incident import ElectionRound, Incident, RescuedBranchState, RescueState
from console.jobs.incident.incident_fixes import (
    RESTORE,
    fix_blocks,
    repeated_offsets,
    repeated_text,
    restored_records_in_all,
    saved_offsets,
    saved_text,
)
from console.jobs.incident.incident_open import (
    disks_lost,
    gap_lines,
    next_commands,
    not_recorded,
    open_items,
    sentence,
)
from console.jobs.incident.journal_outcomes import election_text, plan_name, worst_elections
from console.jobs.incident.journal_report import (
    end_text,
    event_text,
    journal_time,
    shown_events,
)
from console.jobs.timeline.timeline import VIRTUAL, TimelineSource
from console.jobs.timeline.timeline_report import timeline_row
from console.journal.planned_elections import PlannedElection, planned_entries
from console.journal.run_records import RunRecord
from console.journal.unread_disks import DISK_READ, DISK_WAIVED
from console.output.report_blocks import (
    ReportBlock,
    ReportCommands,
    ReportDrawing,
    ReportHeading,
    ReportList,
    ReportText,
    report_table,
)
from recovery.metadata_log.outages import Outage
from recovery.metadata_log.partition_states import EventKind
from recovery.metadata_log.timeline import ClusterEvent
from recovery.model import NO_LEADER
from recovery.plan.plan_review import row_note
from recovery.wording.loss_text import lost_ranges, range_text
from recovery.wording.quantity_text import age, counted, human_bytes, printable, time_text
from widgets.fields import Field, data_field, partition_fields, text_field

MOST_ROWS = 200
"""Rows of the longest tables; what is left out is counted."""
MOST_DRAWINGS = 20
_MINOR = frozenset(
    {
        EventKind.ISR_GREW,
        EventKind.ISR_SHRANK,
        EventKind.ELR_CHANGED,
        EventKind.REPLICA_ORDER,
        EventKind.RECOVERY_ENDED,
        EventKind.LOG_DIR_ASSIGNED,
        EventKind.LOG_DIRS_CHANGED,
        EventKind.CONTROLLER_REGISTERED,
        EventKind.CONTROLLER_UNREGISTERED,
        EventKind.PARTITION_CREATED,
        EventKind.TOPIC_CREATED,
    }
)
"""Left out first where there are too many events."""


def report_blocks(
    incident: Incident, title: str, made: str, arguments: Sequence[str] = ()
) -> Iterator[ReportBlock]:
    """``title`` and ``arguments`` name the cluster as the caller did, ``made`` says when and by whom the report was
    made.
    """
    sources = incident.sources
    yield ReportHeading(1, f"Incident report: cluster {sources.cluster_id}")
    period = "the whole simulation" if sources.virtual else _period(sources.since_ms, sources.until_ms)
    yield ReportText(f"{f'{title}. ' if title else ''}Period: {period}. Made {made}. All times are UTC.")
    yield ReportHeading(2, "In short")
    yield ReportList(tuple(_in_short(incident)))
    yield ReportHeading(2, "What happened")
    yield from _happened(incident)
    yield ReportHeading(2, "What was decided, by whom, and on which evidence")
    yield from _decided(incident)
    yield ReportHeading(2, "What was rescued and restored")
    yield from _rescued(incident)
    yield from fix_blocks(incident)
    yield ReportHeading(2, "What is still open")
    items = tuple(open_items(incident))
    yield ReportList(items) if items else ReportText("Nothing, as far as these sources tell.")
    if commands := tuple(next_commands(incident, *arguments)):
        yield ReportText("Next commands:")
        yield ReportCommands(commands)
    yield ReportHeading(2, "Sources")
    yield ReportList(tuple(_sources(incident)))


def _period(since_ms: int, until_ms: int) -> str:
    return f"{time_text(since_ms)} to {time_text(until_ms)}"


# In short


def _in_short(incident: Incident) -> Iterator[str]:
    if incident.sources.timeline is not None:
        yield from _outages_in_short(incident.outages)
    elections = [election for one in incident.rounds for election in one.elections]
    runs = counted(len(incident.rounds), "run")
    if not elections:
        yield "No election was requested with ktriage in this period."
    else:
        outcomes = Counter(election.outcome or not_recorded(incident, election.tp) for election in elections)
        counts = ", ".join(f"{count:,} {outcome}" for outcome, count in outcomes.items())
        yield f"Elections requested in {runs}, by partition: {counts}."
        yield from _losses_in_short(incident, [one for one in elections if one.outcome == Outcome.ELECTED])
    if incident.rescues:
        offsets, back = saved_offsets(incident), restored_records_in_all(incident)
        yield f"Read and saved: {counted(offsets, 'offset')}. Restored: {counted(back, 'record')}."
    yield from map(repeated_text, repeated_offsets(incident))
    if groups := affected_groups(incident):
        names = dict.fromkeys(one.group.group for one in groups)
        left = {one.group.group for one in groups if not one.put_right}
        yield (
            f"Consumer groups that had read what was cut off, or may have: {len(names):,};"
            f" {len(names) - len(left):,} of them put right with ktriage."
        )
    still = len(tuple(open_items(incident)))
    yield f"Still open: {counted(still, 'point')} (below)." if still else "Nothing is known to be open."


def _outages_in_short(found: Sequence[Outage]) -> Iterator[str]:
    if not found:
        yield "The metadata log shows no partition that lost its leader in this period."
        return
    still = sum(outage.until_ms is None for outage in found)
    unclean = sum(outage.unclean for outage in found)
    first = min(outage.since_ms for outage in found)
    names = len({outage.tp for outage in found})
    now = f"{still:,} of them still {'has' if still == 1 else 'have'} none"
    if not still:
        now = "it has one again" if names == 1 else "all of them have one again"
    yield (
        f"{counted(names, 'partition')} had no leader for some time, the first from {time_text(first)} on; {now}."
    )
    ended = [outage for outage in found if outage.until_ms is not None]
    if ended:
        longest = max(ended, key=_length)
        yield f"The longest outage that ended: {longest.tp}, {age(_length(longest) / 1000)}."
    if unclean:
        yield f"{counted(unclean, 'unclean election')}: acknowledged records of before may be gone."
    if moved := sum(outage.other_log_dir for outage in found):
        yield f"{counted(moved, 'partition')} led again from another log dir: if it was empty, all is gone."


def _losses_in_short(incident: Incident, elected: Sequence[PlannedElection]) -> Iterator[str]:
    planned = [one for one in elected if one.planned_leader != NO_LEADER]
    if not planned:
        return
    unknown = sum(one.at_most is None for one in planned)
    at_most = None if unknown else sum(one.at_most or 0 for one in planned)
    loss = range_text(sum(one.at_least for one in planned), at_most)
    yield f"Offsets that these elections cut off, as planned: {loss}."
    verdicts = Counter(one.acknowledged or "not judged" for one in planned)
    reported = "; ".join(f"{verdict}: {counted(count, 'partition')}" for verdict, count in verdicts.items())
    yield f"Acknowledged records lost by them: {reported}.{saved_text(incident, planned)}"


def _length(outage: Outage) -> int:
    return 0 if outage.until_ms is None else outage.until_ms - outage.since_ms


# What happened


def _happened(incident: Incident) -> Iterator[ReportBlock]:
    if incident.sources.timeline is None:
        yield ReportText(
            "The cluster's metadata log was not read, so only the runs of this journal are shown."
        )
    if incident.outages:
        yield ReportHeading(3, "Partitions without a leader")
        worst = sorted(incident.outages, key=lambda one: (one.until_ms is not None, -_length(one), one.tp))
        yield from report_table(OUTAGE, worst, MOST_ROWS, "more outages, all shorter, are left out.")
    yield ReportHeading(3, "Course")
    if incident.sources.virtual:
        yield ReportText(f"The cluster is simulated: {VIRTUAL}. The runs have real times and stand last.")
    events, left_out = _shown_events(incident.events)
    source = incident.sources.timeline
    rows = [] if source is None else [_event_row(event, source) for event in events]
    rows += [row for run in incident.runs for row in _run_rows(run)]
    if not incident.sources.virtual:
        rows.sort(key=lambda row: row[0])
    yield from report_table(COURSE, rows)
    if left_out:
        yield ReportText(f"{left_out:,} less important events are left out; ktriage timeline shows them.")


class CourseLine(NamedTuple):
    """Something that happened, or was done: when, by whom or what."""

    time: str
    by: str
    what: str


COURSE: tuple[Field[CourseLine], ...] = (
    text_field("TIME", lambda c: c.time),
    text_field("BY", lambda c: c.by),
    text_field("WHAT", lambda c: c.what),
)


def _ended(outage: Outage) -> str:
    ended = outage.until_ms is not None
    if outage.rebuilt:
        return "by the rebuild"
    how = "deleted" if outage.deleted else "unclean" if outage.unclean else "clean" if ended else ""
    return f"{how}, from another log dir" if outage.other_log_dir else how


def _led(leader: int) -> str:
    return "-" if leader == NO_LEADER else str(leader)


OUTAGE: tuple[Field[Outage], ...] = (
    *partition_fields(lambda o: o.tp),
    Field("sinceMs", "FROM", lambda o: o.since_ms, lambda o: time_text(o.since_ms)),
    Field(
        "untilMs",
        "TO",
        lambda o: o.until_ms,
        lambda o: "still offline" if o.until_ms is None else time_text(o.until_ms),
    ),
    Field("leaderBefore", "LED BEFORE", lambda o: o.leader_before, lambda o: _led(o.leader_before)),
    Field("leaderAfter", "LEADS AFTER", lambda o: o.leader_after, lambda o: _led(o.leader_after)),
    Field("unclean", "ELECTION", lambda o: o.unclean, _ended),
    data_field("otherLogDir", lambda o: o.other_log_dir),
    data_field("deleted", lambda o: o.deleted),
)


def _shown_events(events: Sequence[ClusterEvent]) -> tuple[Sequence[ClusterEvent], int]:
    if len(events) <= MOST_ROWS:
        return events, 0
    major = [event for event in events if event.kind not in _MINOR][-MOST_ROWS:]
    return major, len(events) - len(major)


def _event_row(event: ClusterEvent, source: TimelineSource) -> CourseLine:
    row = timeline_row(event, source.timeline.history, source.own, new=False)
    return CourseLine(time_text(row.time_ms), "ktriage" if row.own else "cluster", row.text)


def _run_rows(run: RunRecord) -> Iterator[CourseLine]:
    who = run.operator
    command = shlex.join(run.header.get("command", ()))
    yield CourseLine(journal_time(run.header.get("at")), who, f"runs {command}")
    planned = planned_entries(run)
    for event in shown_events(run):
        if getattr(event, "entry", None) not in planned:
            yield CourseLine(journal_time(event.at), who, event_text(event).strip())
    if run.ended:
        last = run.events[-1].at if run.events else run.header.get("at")
        yield CourseLine(journal_time(last), who, f"the run {end_text(run, going_on=False)}")


# What was decided


def _decided(incident: Incident) -> Iterator[ReportBlock]:
    if not incident.rounds:
        yield ReportText("No election was requested with ktriage in this period.")
    drawings = MOST_DRAWINGS
    for one in incident.rounds:
        yield from _round(one)
        rows = [row for election in worst_elections(one.elections) if (row := one.row(election))]
        shown = [row for row in rows if not row.loss.none or len(row.candidates) > 1][:drawings]
        drawings -= len(shown)
        yield from map(ReportDrawing, shown)
    if drawings == 0:
        yield ReportText("Other partitions are not drawn; ktriage review shows the plan.")


def _round(one: ElectionRound) -> Iterator[ReportBlock]:
    yield ReportHeading(3, f"{journal_time(one.begun.at)}: {counted(len(one.elections), 'election')}")
    facts = [f"By: {one.run.operator}", f"Command: {shlex.join(one.run.header.get('command', ()))}"]
    facts.append(f"Reason: {one.run.header.get('reason') or 'none was given'}")
    if name := plan_name(one.begun):
        facts.append(f"Plan: {name}")
    file = one.file
    if file is not None and file.plan is not None:
        header = file.plan.header
        facts.append(
            f"Made: {time_text(round(header.made_at.timestamp() * 1000))} by {header.made_by},"
            f" ranking {header.ranking}; SHA-256 of {file.path} now: {file.digest}"
        )
    elif file is not None:
        facts.append(f"Evidence and drawings are missing: {file.problem}")
    yield ReportList(tuple(facts))
    worst = worst_elections(one.elections)
    left_out = "more elections are left out (--output json has all)."
    yield from report_table(decided_fields(one), worst, MOST_ROWS, left_out)


def decided_fields(one: ElectionRound) -> tuple[Field[PlannedElection], ...]:
    """An election that was requested, with what the plan file says of it."""

    def reason(election: PlannedElection) -> str | None:
        row = one.row(election)
        return None if row is None else row.reason

    return (
        data_field("run", lambda _: one.run.run_id),
        *partition_fields(lambda e: e.tp),
        data_field("plan", lambda _: one.begun.detail.get("planId")),
        data_field("plannedLeader", lambda e: e.planned_leader),
        data_field("leaderBefore", lambda e: e.leader_before),
        data_field("leader", lambda e: e.leader),
        data_field("leaderEpoch", lambda e: e.leader_epoch),
        data_field("outcome", lambda e: e.outcome or None),
        data_field("lossAtLeast", lambda e: e.at_least),
        data_field("lossAtMost", lambda e: e.at_most),
        data_field("acknowledged", lambda e: e.acknowledged or None),
        data_field("reason", reason),
        text_field("OLD AND NEW LEADER, LOSS", election_text),
        text_field("EVIDENCE", lambda e: _evidence(one, e)),
    )


def _evidence(one: ElectionRound, election: PlannedElection) -> str:
    row = one.row(election)
    if row is None:
        return "" if one.file is None else "not in the plan file as it is now"
    ranges = lost_ranges(row.loss)
    return "; ".join(filter(None, (row_note(row), ranges and f"cut off: {ranges}", ", ".join(row.marks))))


# Rescues


def _rescued(incident: Incident) -> Iterator[ReportBlock]:
    if disks := (*_disk_lines(incident), *disks_lost(incident)):
        yield ReportList(disks)
    if not incident.rescues:
        yield ReportText("No rescue is known (a directory that no run of apply names: --rescue DIR).")
        return
    yield from report_table(RESCUE, incident.rescues)
    if incident.restores:
        yield ReportText("Restores of this journal:")
        yield from report_table(RESTORE, incident.restores)


def _whole(rescue: RescueState) -> list[RescuedBranchState]:
    return [branch for branch in rescue.branches if branch.whole]


def _rescue_size(rescue: RescueState) -> str:
    sizes = (branch.manifest.size for branch in _whole(rescue) if branch.manifest is not None)
    return "" if rescue.problem else human_bytes(sum(sizes))


def _restored(rescue: RescueState) -> str:
    if rescue.problem:
        return f"cannot be read: {rescue.problem}"
    back = ", ".join(f"{counted(records, 'record')} to {target}" for target, records in rescue.restored)
    return back or "not restored"


RESCUE: tuple[Field[RescueState], ...] = (
    text_field("DIRECTORY", lambda r: str(r.directory)),
    text_field(
        "BRANCHES",
        lambda r: "" if r.problem else f"{len(_whole(r)):,} of {len(r.branches):,} branches whole",
    ),
    text_field(
        "OFFSETS", lambda r: "" if r.problem else counted(sum(b.offsets for b in _whole(r)), "offset")
    ),
    text_field("SIZE", _rescue_size),
    text_field("RESTORED", _restored),
)


def _disk_lines(incident: Incident) -> Iterator[str]:
    """What was done about disks that an election left unread."""
    for run in incident.runs:
        for begun, _ in run.entries(DISK_READ, DISK_WAIVED):
            reason = str(run.header.get("reason") or "")
            why = f": {reason}" if begun.action == DISK_WAIVED and reason else ""
            yield sentence(printable(f"{event_text(begun)}, {run.operator}, {journal_time(begun.at)}{why}"))


def _sources(incident: Incident) -> Iterator[str]:
    sources = incident.sources
    yield f"Journal of this state directory: {counted(len(incident.runs), 'run')} in this period."
    for file in incident.plans:
        yield f"Plan file {file.path}."
    if sources.timeline is not None:
        yield f"{sources.timeline.title}: {counted(len(incident.events), 'event')}."
        yield from sources.timeline.notes
    yield from gap_lines(incident)
    yield "Runs of ktriage with another state directory, and other tools, are in the metadata log only."
