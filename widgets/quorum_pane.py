"""Pane 4: the metadata quorum."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from recovery.model import Unknown
from recovery.wording.quantity_text import counted, lasting, offset, printable
from widgets.base_pane import TablePane
from widgets.table import RowTable, TableColumn
from widgets.text import Line, Piece, Tone, fold, line


class QuorumRole(StrEnum):
    """A node's role in the quorum."""

    LEADER = "leader"
    VOTER = "voter"
    OBSERVER = "observer"
    CONTROLLER = "controller"
    """It has registered; whether it is a voter is unknown."""


class QuorumPaneRow(NamedTuple):
    """One voter or observer. ``lag`` in records behind the leader, ``fetched_s`` and ``caught_up_s`` in seconds
    ago; None where they are unknown. ``note`` says what is wrong with it ("ghost: removed, and still listed").
    """

    role: QuorumRole
    id: int
    directory_id: str
    log_end: int
    lag: int | None
    fetched_s: float | None
    caught_up_s: float | None
    endpoint: str = ""
    note: str = ""

    @property
    def key(self) -> tuple[int, str]:
        return self.id, self.directory_id


class VoterChangePreview(NamedTuple):
    """A change of the voters: what it is, whether it is possible, and why not, or what it would lead to."""

    name: str
    possible: bool
    why: str


@dataclass(frozen=True, slots=True)
class QuorumPaneView:
    """``verdict`` says how many more failures the set tolerates; ``healthy`` is False where that is none, or where
    it does not commit. ``high_watermark``, ``log_end`` and ``kraft_version`` are None where they are not known.
    """

    leader: int
    leader_epoch: int
    high_watermark: int | None
    log_end: int | None
    kraft_version: int | None
    members: tuple[QuorumPaneRow, ...]
    verdict: str
    healthy: bool
    changes: tuple[VoterChangePreview, ...] = ()
    notes: tuple[str, ...] = ()


BEHIND_S = 3.0
"""Seconds since it was caught up, from which a member counts as behind (as the command line has it)."""
_ROLES = {role: number for number, role in enumerate(QuorumRole)}


def _ago(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    if seconds < BEHIND_S:
        return "now"
    return f"{int(seconds)} s ago" if seconds < 60 else f"{lasting(seconds)} ago"


def _behind(member: QuorumPaneRow) -> bool:
    return member.caught_up_s is None or member.caught_up_s >= BEHIND_S


def _lag_tone(member: QuorumPaneRow) -> Tone:
    if not _behind(member):
        return Tone.GOOD
    return Tone.BAD if member.role is not QuorumRole.OBSERVER else Tone.WARN


def _role_tone(member: QuorumPaneRow) -> Tone:
    return {QuorumRole.LEADER: Tone.GOOD, QuorumRole.OBSERVER: Tone.DIM}.get(member.role, Tone.STRONG)


def _note(member: QuorumPaneRow) -> str:
    return printable(member.note) or ("behind" if _behind(member) else "")


def _note_tone(member: QuorumPaneRow) -> Tone:
    return Tone.DIM if member.role is QuorumRole.OBSERVER and not _behind(member) else Tone.WARN


COLUMNS: tuple[TableColumn[QuorumPaneRow], ...] = (
    TableColumn("role", "ROLE", lambda m: m.role.value, sort=lambda m: _ROLES[m.role], tone=_role_tone),
    TableColumn("id", "ID", lambda m: str(m.id), sort=lambda m: m.id, right=True, tone=Tone.STRONG),
    TableColumn(
        "lag",
        "LAG",
        lambda m: "unknown" if m.lag is None else counted(m.lag, "offset"),
        sort=lambda m: -1 if m.lag is None else m.lag,
        export=lambda m: m.lag,
        right=True,
        tone=_lag_tone,
    ),
    TableColumn(
        "caughtUp",
        "CAUGHT UP",
        lambda m: _ago(m.caught_up_s),
        sort=lambda m: m.caught_up_s or 0.0,
        tone=_lag_tone,
    ),
    TableColumn(
        "lastFetch", "LAST FETCH", lambda m: _ago(m.fetched_s), sort=lambda m: m.fetched_s or 0.0, priority=3
    ),
    TableColumn(
        "logEnd", "LOG END", lambda m: offset(m.log_end), sort=lambda m: m.log_end, right=True, priority=5
    ),
    TableColumn("endpoint", "ENDPOINT", lambda m: printable(m.endpoint), priority=4),
    TableColumn("directoryId", "DIRECTORY ID", lambda m: m.directory_id, priority=6),
    TableColumn("note", "NOTE", _note, tone=_note_tone, flex=True),
)


class QuorumPane(TablePane):
    """Voters and observers; the table's keys are (node id, directory id)."""

    DEFAULT_CSS = """
    QuorumPane > .details { max-height: 50%; }
    """

    NAME = "quorum"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._view: QuorumPaneView | Unknown | None = None

    def make_table(self) -> RowTable[Any]:
        return RowTable(
            COLUMNS, lambda member: member.key, noun="member", empty="the quorum is not described"
        )

    def update(self, view: QuorumPaneView | Unknown | None) -> None:
        """Shows the quorum; Unknown: why it cannot be described; None: it was not asked yet."""
        self._view = view
        self.table.update(view.members if isinstance(view, QuorumPaneView) else ())
        self.show_lines()

    def summary_lines(self, width: int) -> list[Line]:
        view = self._view
        if view is None:
            return [line(Piece("  not asked yet", Tone.DIM))]
        if isinstance(view, Unknown):
            return fold(line(Piece(f"  quorum: {printable(str(view))}", Tone.WARN)), width, "  ")
        leader = (
            Piece(f"  led by {view.leader}", Tone.STRONG)
            if view.leader >= 0
            else Piece("  NO LEADER", Tone.BAD)
        )
        known = "nothing committed" if view.high_watermark is None else offset(view.high_watermark)
        version = "not known" if view.kraft_version is None else str(view.kraft_version)
        rest = f" (epoch {view.leader_epoch}) · high watermark {known} · kraft.version {version}"
        verdict = Piece(f"  {view.verdict}", Tone.GOOD if view.healthy else Tone.BAD)
        if view.leader < 0:
            rest = ""
        lines = [*fold(line(leader, Piece(rest)), width, "  "), *fold(line(verdict), width, "  ")]
        for note in view.notes:
            lines += fold(line(Piece(f"  {printable(note)}", Tone.WARN)), width, "  ")
        return lines

    def detail_lines(self, width: int) -> list[Line]:
        view = self._view
        member = self.table.cursor_row
        lines = self._member_lines(member, width) if isinstance(member, QuorumPaneRow) else []
        if not isinstance(view, QuorumPaneView) or not view.changes:
            return lines
        # Whoever reads "possible" in a tone of good news at night takes it for advice.
        lines.append(
            line(
                Piece("CHANGES OF THE VOTERS", Tone.HEAD),
                Piece("  what would be accepted, no advice", Tone.DIM),
            )
        )
        for change in view.changes:
            sign = Piece("possible      ") if change.possible else Piece("not possible  ", Tone.WARN)
            why = f": {printable(change.why)}" if change.why else ""
            lines += fold(line(sign, Piece(change.name, Tone.STRONG), Piece(why)), width, " " * 14)
        return lines

    def _member_lines(self, member: QuorumPaneRow, width: int) -> list[Line]:
        """What the table has no room for: its note may be cut off."""
        who, note = f"{member.role} {member.id}", _note(member)
        text = (
            fold(line(Piece(f"{who}: ", Tone.STRONG), Piece(note)), width, "  ")
            if note not in ("", "broker")
            else []
        )
        return [*text, *self.left_out(width, who)]
