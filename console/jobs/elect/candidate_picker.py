"""Choosing another leader for one row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from recovery.acknowledged.verdict import Verdict
from recovery.model import Standing
from recovery.plan.edit import ranked
from recovery.plan.plan_review import candidate_harm
from recovery.plan.values import PlanCandidate, PlanRow
from recovery.ranking import Ranking
from recovery.wording.loss_text import lost_ranges, short_loss
from recovery.wording.quantity_text import offset
from recovery.wording.verdict_text import short_verdict, verdict_text
from widgets.dialogs.dismiss_once import DismissOnce
from widgets.fields import Field
from widgets.lifecycle import screen_is_open, when_ready
from widgets.loss_tone import loss_tone, verdict_tone
from widgets.table import RowTable
from widgets.text import Line, Piece, Tone, fold, line
from widgets.text_lines import Lines


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
        head.append(Piece(f"{choice.role}  ", Tone.STRONG))
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


def _epoch(choice: CandidateChoice) -> str:
    if choice.candidate is None or choice.candidate.last_epoch is None:
        return "?"
    return str(choice.candidate.last_epoch)


def _loses(choice: CandidateChoice) -> str:
    candidate = choice.candidate
    return "not known" if candidate is None else short_loss(candidate.loss, candidate.last_epoch)


def _loses_tone(choice: CandidateChoice) -> Tone:
    candidate = choice.candidate
    return Tone.BAD if candidate is None else loss_tone(candidate.loss, candidate.last_epoch)


def _verdict(choice: CandidateChoice) -> Verdict | None:
    return None if choice.candidate is None else choice.candidate.verdict


def _loses_acknowledged(choice: CandidateChoice) -> str:
    verdict = _verdict(choice)
    return "" if verdict is None else short_verdict(verdict)


_SHORT_ROLES = {"if it drops out": "successor", "in the plan": "in plan", "other ranking's": "other ranking"}


def _role(choice: CandidateChoice) -> str:
    """Short enough for 80 columns; the details have the whole words."""
    if choice.problem:
        return "CANNOT BE ELECTED"
    return ", ".join(_SHORT_ROLES.get(role, role) for role in choice.role.split(", "))


COLUMNS: tuple[Field[CandidateChoice], ...] = (
    Field("broker", "BROKER", lambda c: str(c.broker), sort=lambda c: c.broker, right=True, tone=Tone.STRONG),
    Field("epoch", "EPOCH", _epoch, right=True, priority=4),
    Field(
        "end",
        "LOG END",
        lambda c: "?" if c.candidate is None else offset(c.candidate.log_end),
        right=True,
        priority=3,
    ),
    Field("loses", "OFFSETS LOST", _loses, tone=_loses_tone, priority=1),
    Field(
        "acknowledged",
        "LOSES ACKED",
        _loses_acknowledged,
        tone=lambda c: verdict_tone(_verdict(c)),
        priority=2,
    ),
    Field("role", "ROLE", _role, tone=lambda c: Tone.BAD if c.problem else Tone.STRONG, width=17),
)


class CandidatePicker(DismissOnce[int | None], ModalScreen[int | None]):
    """Every replica of one row. Ends with the broker that was chosen, or None; one that cannot be elected is not
    chosen, and the reason is shown. ``stands`` is what the row's leader is to the plan, "" where it is in none.
    """

    DEFAULT_CSS = """
    CandidatePicker { align: center middle; }
    CandidatePicker > Vertical {
        width: 96%; max-width: 120; height: auto; max-height: 96%; border: round $primary; padding: 0 1;
        background: $surface;
    }
    CandidatePicker RowTable { height: auto; min-height: 3; max-height: 10; }
    CandidatePicker Lines { max-height: 8; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "leave", "Leave it as it is")]

    def __init__(self, row: PlanRow, ranking: Ranking, stands: str = "", *, native: bool = False) -> None:
        super().__init__()
        self._row = row
        self._choices = tuple(choices(row, ranking, stands, native=native))
        self._refused: CandidateChoice | None = None

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Lines(self._head, focusable=False)
            yield RowTable(COLUMNS, lambda choice: choice.broker, noun="replica")
            yield Lines(id="pick-details", focusable=False)

    def on_mount(self) -> None:
        if not screen_is_open(self):  # taken away before it had its parts
            return
        table = self.query_one(RowTable)
        table.update(self._choices)
        table.move_to(self._row.leader)
        table.focus()

    @when_ready
    def on_row_table_cursor_moved(self, message: RowTable.CursorMoved) -> None:
        message.stop()
        self._refused = None
        self.query_one("#pick-details", Lines).show(self._details)

    @when_ready
    def on_row_table_activated(self, message: RowTable.Activated) -> None:
        message.stop()
        if isinstance(message.row, CandidateChoice) and not message.row.problem:
            self.dismiss(message.row.broker)
        else:
            self._refused = message.row
            self.query_one("#pick-details", Lines).show(self._details)

    def action_leave(self) -> None:
        self.dismiss(None)

    def _head(self, width: int) -> list[Line]:
        """One line where it fits: the rows and what they lose need the room of a short terminal more."""
        name = Piece(f"Leader of {self._row.tp}", Tone.STRONG)
        whole = fold(line(name, "   Enter: choose   Esc: leave it"), width)
        return whole if len(whole) == 1 else fold(line(name), width)

    def _details(self, width: int) -> list[Line]:
        row = self.query_one(RowTable).cursor_row
        if not isinstance(row, CandidateChoice):
            return []
        lines = choice_lines(row, width, "")
        if self._refused is not None:
            lines.append(line(Piece(f"not chosen: {self._refused.broker} cannot be elected", Tone.BAD)))
        return lines
