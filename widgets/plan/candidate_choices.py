"""Every replica of a plan's row: what electing it would lose, why it ranks lower, or cannot be elected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from recovery.model import Standing
from recovery.plan.edit import ranked
from recovery.plan.plan_review import candidate_harm
from recovery.plan.values import PlanCandidate, PlanRow
from recovery.ranking import Ranking
from recovery.wording.loss_text import lost_ranges
from recovery.wording.quantity_text import offset
from recovery.wording.verdict_text import verdict_text
from widgets.loss_tone import loss_tone, verdict_tone
from widgets.text import Line, Piece, Tone, fold, line


class CandidateChoice(NamedTuple):
    """One replica. ``problem`` is why it cannot be elected, "" where it can; ``role`` what it is to the plan."""

    broker: int
    role: str
    candidate: PlanCandidate | None
    problem: str
    why_not: str

    @property
    def harm(self) -> str:
        return "not known" if self.candidate is None else candidate_harm(self.candidate)


def choices(row: PlanRow, ranking: Ranking, stands: str, *, native: bool = False) -> list[CandidateChoice]:
    """Those that answered, best first, then those that did not, in assignment order. ``stands`` is what the row's
    leader is to the plan (:func:`in_plan`), "" where the row is in none. ``native``: the cluster elects the
    designated leader or nobody.
    """
    by_rank = ranked(row, ranking)
    best = next((candidate for candidate in by_rank if candidate.electable), None)
    roles = _roles(row, best, stands, native=native)
    answered = [_choice(candidate, best, ranking, roles) for candidate in by_rank]
    return answered + [
        CandidateChoice(
            silent.broker,
            "",
            None,
            "did not answer when the plan was made: make a new plan to choose it",
            "nobody knows what it holds",
        )
        for silent in row.unanswered
    ]


def in_plan(*, edited: bool) -> str:
    """The word for the leader of a row: "chosen" where a person chose it (``edited``), "in the plan" where the
    strategy did.
    """
    return "chosen" if edited else "in the plan"


def _choice(
    candidate: PlanCandidate, best: PlanCandidate | None, ranking: Ranking, roles: Mapping[int, list[str]]
) -> CandidateChoice:
    problem = "" if candidate.electable else _standing(candidate.standing)
    why_not = "" if best is None or best.broker == candidate.broker else _why_not(candidate, best, ranking)
    return CandidateChoice(
        candidate.broker, ", ".join(roles.get(candidate.broker, ())), candidate, problem, why_not
    )


def _standing(standing: Standing) -> str:
    return f"{standing} when the plan was made: make a new plan once it can be elected"


def _roles(row: PlanRow, best: PlanCandidate | None, stands: str, *, native: bool) -> Mapping[int, list[str]]:
    """What each broker is to the plan. Nobody is called suggested: the strategy may refuse the best by ranking."""
    successor = None if native or row.successor is None else row.successor.broker
    found: dict[int, list[str]] = {}
    for broker, role in (
        (row.leader, stands),
        (None if best is None else best.broker, "rank 1"),
        (successor, "if it drops out"),
        (row.other_ranking_leader, "other ranking's"),
    ):
        if broker is not None and role:
            found.setdefault(broker, []).append(role)
    return found


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


def choice_lines(choice: CandidateChoice, width: int, indent: str = "  ") -> list[Line]:
    """One replica in full."""
    candidate = choice.candidate
    head = [Piece(f"{choice.broker:>6}  ", Tone.STRONG)]
    if choice.role:
        head.append(Piece(f"{choice.role}  ", Tone.KEY))
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
