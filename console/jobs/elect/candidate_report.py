"""A replica that could lead a planned row, described once: for the choice of a leader, the details of the plan,
``review`` and JSON.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from console.reading.replica_report import verdict_field
from console.reading.survey_json import loss_json
from recovery.acknowledged.verdict import Verdict
from recovery.plan.edit import NO_ANSWER_THEN, NOT_ELECTABLE_THEN, ranked
from recovery.plan.plan_review import candidate_harm
from recovery.plan.values import PlanCandidate, PlanRow
from recovery.ranking import Ranking
from recovery.wording.loss_text import lost_ranges, short_loss
from recovery.wording.quantity_text import offset
from recovery.wording.replica_text import disk_text
from recovery.wording.verdict_text import verdict_text
from widgets.fields import Field, data_field, json_of, text_field
from widgets.loss_tone import loss_tone, verdict_tone
from widgets.text import Line, Piece, Tone, fold, line

SUCCESSOR = "if it drops out"
BEST = "rank 1"
OTHER_RANKING = "other ranking's"


class CandidateRow(NamedTuple):
    """A replica of a planned row; ``candidate`` None: it did not answer. ``roles`` are what it is to the plan,
    ``problem`` why it cannot be elected, "" where it can, and ``why_not`` why it ranks below the best.
    """

    row: PlanRow
    broker: int
    candidate: PlanCandidate | None
    roles: tuple[str, ...] = ()
    problem: str = ""
    why_not: str = ""

    @property
    def verdict(self) -> Verdict | None:
        return None if self.candidate is None else self.candidate.verdict

    @property
    def harm(self) -> str:
        return "not known" if self.candidate is None else candidate_harm(self.candidate)


def candidate_rows(rows: Iterable[PlanRow], *, native: bool = False) -> list[CandidateRow]:
    """Of each row every replica that answered, best first, then those that did not answer; as a plan that was read
    has them. ``native``: the cluster elects the designated leader or nobody.
    """
    return [
        CandidateRow(row, broker, candidate, _roles(row, broker, "chosen", native=native))
        for row in rows
        for broker, candidate in (
            *((candidate.broker, candidate) for candidate in row.candidates),
            *((broker, None) for broker in row.silent),
        )
    ]


def choices(row: PlanRow, ranking: Ranking, stands: str, *, native: bool = False) -> list[CandidateRow]:
    """Those that answered, best first, then those that did not, in assignment order. ``stands`` is what the row's
    leader is to the plan (:func:`in_plan`), "" where the row is in none. Nobody is called suggested: the strategy
    may refuse the best by ranking.
    """
    by_rank = ranked(row, ranking)
    best = next((candidate for candidate in by_rank if candidate.electable), None)
    offered = [
        CandidateRow(
            row,
            one.broker,
            one,
            _roles(row, one.broker, stands, best, native=native),
            "" if one.electable else f"{one.standing} {NOT_ELECTABLE_THEN}",
            "" if best is None or best.broker == one.broker else _why_not(one, best, ranking),
        )
        for one in by_rank
    ]
    return offered + [
        CandidateRow(row, one.broker, None, (), NO_ANSWER_THEN, "nobody knows what it holds")
        for one in row.unanswered
    ]


def in_plan(*, edited: bool) -> str:
    """The word for the leader of a row: "chosen" where a person chose it (``edited``), "in the plan" where the
    strategy did.
    """
    return "chosen" if edited else "in the plan"


def _roles(
    row: PlanRow, broker: int, stands: str, best: PlanCandidate | None = None, *, native: bool
) -> tuple[str, ...]:
    successor = None if native or row.successor is None else row.successor.broker
    roles = (
        (row.leader, stands),
        (None if best is None else best.broker, BEST),
        (successor, SUCCESSOR),
        (None if best is None else row.other_ranking_leader, OTHER_RANKING),
    )
    return tuple(role for one, role in roles if one == broker and role)


def _why_not(candidate: PlanCandidate, best: PlanCandidate, ranking: Ranking) -> str:
    """Why it ranks below ``best``, the best that can be elected."""
    own, other = candidate.key(ranking), best.key(ranking)
    if own is None or other is None:
        return "its last record's epoch is not known"
    what = "last record" if ranking is Ranking.LAST_RECORD else "leader epoch"
    if own > other:
        return f"its {what} (epoch {own[0]}, end {offset(own[1])}) is better, but it cannot be elected"
    if own[0] < other[0]:
        return f"its {what} is of epoch {own[0]}, older than {best.broker}'s ({other[0]})"
    if own[1] < other[1]:
        return f"its log ends at {offset(own[1])}, {best.broker}'s at {offset(other[1])}"
    return f"as good as {best.broker}, which stands earlier in the assignment"


def choice_lines(choice: CandidateRow, width: int, indent: str = "  ") -> list[Line]:
    """One replica in full."""
    candidate = choice.candidate
    head = [Piece(f"{choice.broker:>6}  ", Tone.STRONG)]
    if choice.roles:
        head.append(Piece(f"{', '.join(choice.roles)}  ", Tone.STRONG))
    if choice.problem:
        head.append(Piece("CANNOT be elected: ", Tone.BAD))
        head.append(Piece(f"{choice.problem}  "))
    if candidate is None:
        return fold(line(*head), width, indent + " " * 8)
    epoch = "?" if candidate.last_epoch is None else str(candidate.last_epoch)
    head.append(Piece(f"epoch {epoch}, end {offset(candidate.log_end)}  "))
    head.append(Piece(f"loses {choice.harm}", loss_tone(candidate.loss, candidate.last_epoch)))
    which = lost_ranges(candidate.loss)
    if which:
        head.append(Piece(f"  {which}", Tone.DIM))
    if candidate.verdict is not None:
        head += [Piece("; "), Piece(verdict_text(candidate.verdict), verdict_tone(candidate.verdict))]
    if choice.why_not and not choice.problem:
        head.append(Piece(f"  ranks lower: {choice.why_not}", Tone.DIM))
    return fold(line(*head), width, indent + " " * 8)


def _role(one: CandidateRow) -> str:
    if one.candidate is None:
        return "did not answer"
    disk = disk_text(one.candidate.disk_read_ms) if one.candidate.disk_read_ms is not None else ""
    return "; ".join(filter(None, (", ".join(one.roles), disk)))


_BRIEF_ROLES = {SUCCESSOR: "successor", "in the plan": "in plan", OTHER_RANKING: "other ranking"}


def _brief_role(one: CandidateRow) -> str:
    """Short enough for 80 columns; the details have the whole words."""
    if one.problem:
        return "CANNOT BE ELECTED"
    return ", ".join(_BRIEF_ROLES.get(role, role) for role in one.roles)


def _epoch(one: CandidateRow) -> str:
    if one.candidate is None:
        return ""
    return "?" if one.candidate.last_epoch is None else str(one.candidate.last_epoch)


def _brief_loss(one: CandidateRow) -> str:
    candidate = one.candidate
    return one.harm if candidate is None else short_loss(candidate.loss, candidate.last_epoch)


def _loss_tone(one: CandidateRow) -> Tone:
    candidate = one.candidate
    return Tone.BAD if candidate is None else loss_tone(candidate.loss, candidate.last_epoch)


CANDIDATE: tuple[Field[CandidateRow], ...] = (
    text_field("PARTITION", lambda one: str(one.row.tp)),
    Field(
        "broker", "BROKER", lambda one: one.broker, lambda one: str(one.broker), tone=Tone.STRONG, right=True
    ),
    Field(
        "role",
        "ROLE",
        _role,
        brief=_brief_role,
        tone=lambda one: Tone.BAD if one.problem else Tone.STRONG,
        width=17,
        json=False,
    ),
    Field(
        "standing",
        "CONTROLLER SAYS",
        lambda one: one.candidate and one.candidate.standing.value,
        lambda one: str(one.candidate.standing) if one.candidate else "",
        screen=False,
    ),
    Field(
        "lastEpoch",
        "LAST EPOCH",
        lambda one: one.candidate and one.candidate.last_epoch,
        _epoch,
        short="EPOCH",
        brief=lambda one: _epoch(one) or "?",
        right=True,
        priority=4,
    ),
    Field(
        "logEnd",
        "LOG END",
        lambda one: one.candidate and one.candidate.log_end,
        lambda one: offset(one.candidate.log_end) if one.candidate else "",
        brief=lambda one: offset(one.candidate.log_end) if one.candidate else "?",
        right=True,
        priority=3,
    ),
    Field(
        "logStart",
        "LOG START",
        lambda one: one.candidate and one.candidate.log_start,
        lambda one: offset(one.candidate.log_start) if one.candidate else "",
        right=True,
        below=True,
        screen=False,
    ),
    Field(
        "loss",
        "OFFSETS LOST",
        lambda one: one.candidate and loss_json(one.candidate.loss),
        lambda one: one.harm,
        brief=_brief_loss,
        tone=_loss_tone,
        priority=1,
    ),
    verdict_field(lambda one: one.verdict, 2),
    text_field("WHICH", lambda one: lost_ranges(one.candidate.loss) if one.candidate else "", below=True),
    data_field("diskReadAtMs", lambda one: one.candidate and one.candidate.disk_read_ms),
)
"""What the election of a replica destroys."""

candidate_json = json_of(CANDIDATE)
