"""A plan in words: counts, progress, one row in full, the requests."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import NamedTuple

from console.app.session.draft import ONLINE, Draft, DraftRescue
from console.jobs.elect.candidate_report import choice_lines, choices, in_plan
from console.jobs.elect.plan_table import PlannedRow, brief_note, status
from recovery.plan.election_requests import requests
from recovery.plan.judgement import RowDecision
from recovery.plan.plan_review import Summary
from recovery.plan.values import Plan, PlanRow
from recovery.wording.group_text import (
    NAMED_OFFSETS,
    affected_group_lines,
    affected_offset_lines,
    internal_loss_lines,
)
from recovery.wording.quantity_text import counted
from widgets.loss_tone import VALUE_TONES
from widgets.text import Line, Piece, Tone, fold, line

BAR = 24
REQUESTS_SHOWN = 30
_NOT_SAVED = Piece(" · NOT SAVED", Tone.WARN)
ACKS_REFUSED = "acks=all is refused until replicas are back"


class BatchProgress(NamedTuple):
    """How far applying is: what is being done in a few words, and ``done`` of ``of`` partitions."""

    what: str
    done: int
    of: int


def summary(
    draft: Draft, totals: Summary | None, batch: BatchProgress | None, how: str, width: int
) -> list[Line]:
    """How far its application is, how many are elected and what that loses (``totals``), how it stands now."""
    plan = draft.plan
    if plan is None or totals is None:
        none = line(Piece("  no plan yet", Tone.STRONG), Piece(f": {how}" if how else ""))
        return fold(none, width, "  ")
    # The bare name: the whole path stands in the command line, and would push out what matters more.
    where = Piece(f" · saved: {draft.file.name}", Tone.DIM) if draft.file else _NOT_SAVED
    header = plan.header
    lines = _progress(batch, width)
    lines += fold(
        line(
            Piece(f"  {counted(totals.elect, 'partition')} to elect", Tone.STRONG),
            Piece(f" · ranking {header.ranking}, strategy {header.strategy}"),
            where,
        ),
        width,
        "  ",
    )
    what = totals.unacknowledged or "something"
    over = bool(draft.outcomes) and draft.partitions <= draft.elected
    may = "may have lost" if over else "may lose"
    lines += fold(
        line(
            # What is lost first, and no count of none: "0 lose nothing" reads as the opposite.
            Piece("  "),
            Piece(f"{totals.may_lose:,} {may} {what}" if totals.may_lose else "", Tone.WARN),
            Piece(
                f" (offsets: {totals.loss})" if totals.may_lose else "",
                Tone.BAD if totals.at_most is None else Tone.WARN,
            ),
            Piece(", " if totals.may_lose and totals.lossless else ""),
            Piece(f"{totals.lossless:,} lose nothing for certain" if totals.lossless else "", Tone.GOOD),
        ),
        width,
        "  ",
    )
    return [
        *lines,
        *_acknowledged(totals, width),
        *_written_back(draft.rescue, width),
        *_groups(plan, width),
        *_compared(draft, width),
    ]


def _groups(plan: Plan, width: int) -> list[Line]:
    """The consumer groups that the elections affect, and whether there may be others."""
    reported = (*internal_loss_lines(plan.rows), *affected_group_lines(plan.affected, plan.groups_unread))
    return [part for text in reported for part in fold(line(Piece(f"  {text}", Tone.WARN)), width, "    ")]


def _acknowledged(totals: Summary, width: int) -> list[Line]:
    """A colour for each value of the verdicts."""
    pieces: list[Piece] = []
    for value, text in totals.acknowledged.parts():
        pieces += [
            Piece("; " if pieces else "  acknowledged records lost: "),
            Piece(text, VALUE_TONES[value]),
        ]
    return fold(line(*pieces), width, "    ") if pieces else []


def _written_back(rescue: DraftRescue | None, width: int) -> list[Line]:
    """What was saved of what the elections cut off, and what of it is there again."""
    if rescue is None:
        return []
    if rescue.restored is None:
        saved = (
            f"  saved before the election: {counted(rescue.offsets, 'offset')}; not seen to be written back"
        )
        return fold(line(Piece(saved, Tone.WARN), Piece(" [B]", Tone.KEY)), width, "    ")
    text = f"  written back since: {rescue.restored:,} records of {rescue.offsets:,} rescued offsets"
    return fold(
        line(Piece(text, Tone.GOOD if rescue.restored == rescue.offsets else Tone.WARN)), width, "    "
    )


_HARMLESS = (RowDecision.SEND, RowDecision.ALREADY_ONLINE)


def _compared(draft: Draft, width: int) -> list[Line]:
    if draft.outcomes:
        words = Counter(outcome.word for outcome in draft.outcomes.values())
        failed = sum(1 for outcome in draft.outcomes.values() if not outcome.good)
        sentence = ", ".join(f"{count:,} {word}" for word, count in words.most_common())
        return fold(line(Piece(f"  came to: {sentence}", Tone.BAD if failed else Tone.GOOD)), width, "  ")
    if not draft.checks:
        return []
    counts = Counter(check.decision for check in draft.checks.values())
    sentence = ", ".join(f"{counts[one]:,} {one}" for one in RowDecision if counts[one])
    moved = sum(counts[one] for one in RowDecision if one not in _HARMLESS)
    return fold(line(Piece(f"  now: {sentence}", Tone.BAD if moved else Tone.GOOD)), width, "  ")


def _progress(batch: BatchProgress | None, width: int) -> list[Line]:
    if batch is None:
        return []
    filled = round(BAR * batch.done / batch.of) if batch.of else 0
    bar = "█" * filled + "·" * (BAR - filled)
    text = f" {batch.done:,} of {batch.of:,}  {batch.what}"
    return fold(line(Piece(f"  {bar}", Tone.INFO), Piece(text, Tone.STRONG)), width, "  ")


def details(row: PlannedRow, plan: Plan, width: int) -> list[Line]:
    """One row in full: its current state, every candidate, the meaning of its topic's marks."""
    head = line(Piece(f"{row.tp}: ", Tone.STRONG), Piece(f"{status(row)}; {brief_note(row)}"))
    lines = fold(head, width, "  ")
    if row.check is not None:
        for sentence in row.check.notes:
            lines += fold(line(Piece(f"note: {sentence}", Tone.WARN)), width, "  ")
    if row.state is not None and row.state.missing:
        sentence = "; ".join(row.state.missing)
        if row.state.leader >= 0 and row.state.usable is False:
            sentence += f"; {ACKS_REFUSED}"
        lines += fold(line(Piece(f"still missing: {sentence}", Tone.WARN)), width, "  ")
    if not isinstance(row.row, PlanRow):
        return lines
    elected = row.outcome is not None and row.outcome.good and row.outcome.word != ONLINE
    if elected:
        what = "WHAT WAS CUT OFF WHEN IT WAS ELECTED"
    else:
        what = f"WHAT ELECTING IT WOULD {'HAVE LOST' if _is_over(row) else 'LOSE'}"
    lines.append(line(Piece(f"BROKER  {what}", Tone.HEAD)))
    for choice in choices(row.row, plan.header.ranking, in_plan(edited=row.edited), native=row.native):
        # Nobody can choose another one any more.
        if not elected or choice.broker == row.row.leader:
            lines += choice_lines(choice, width, "")
    here = [group for group in plan.affected if group.tp == row.tp]
    for text in affected_offset_lines(here, NAMED_OFFSETS):
        lines += fold(line(Piece("group ", Tone.WARN), Piece(text)), width, "  ")
    for mark in row.row.marks:
        lines += fold(line(Piece(f"{mark}: ", Tone.WARN), Piece(mark.meaning)), width, "  ")
    return lines


def _is_over(row: PlannedRow) -> bool:
    """Whether the partition has a leader since the plan was made."""
    decided = (RowDecision.ALREADY_ONLINE, RowDecision.OTHER_LEADER)
    led = row.check is not None and row.check.decision in decided
    return led or (row.outcome is not None and row.outcome.good)


def request_lines(plan: Plan, native: bool, width: int) -> list[Line]:
    """The requests in the order they go out, whole; a long plan's first ones."""
    lines = [
        line(
            Piece("REQUESTS THAT WILL BE SENT", Tone.HEAD),
            Piece("  each checked again right before", Tone.DIM),
        )
    ]
    for request in islice(requests(plan, native), REQUESTS_SHOWN):
        title, *body = request.text().splitlines()
        lines.append(line(Piece(title, Tone.STRONG)))
        for text in body:
            shown = text if len(text) <= 2_000 else f"{text[:2_000]} … {len(text) - 2_000:,} characters more"
            lines += fold(line(Piece(f"  {shown}")), width, "  ")
    return lines
