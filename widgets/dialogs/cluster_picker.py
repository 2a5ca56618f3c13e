"""What a bare ``ktriage`` asks: which cluster? Never one that was remembered."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from recovery.wording.quantity_text import printable
from widgets.dialogs.dismiss_once import DismissOnce
from widgets.fields import Field
from widgets.lifecycle import screen_is_open, when_ready
from widgets.table import Grouping, RowTable
from widgets.text import Line, Piece, Tone, cut, fold, line
from widgets.text_lines import Lines


class ClusterKind(StrEnum):
    """Whether something real is behind it."""

    PROFILE = "LIVE"
    SCENARIO = "simulator"
    ADDRESS = "LIVE address"


class ClusterChoice(NamedTuple):
    """A profile, a scenario, or a typed address. ``problem`` is why it cannot be opened, "" where it can."""

    kind: ClusterKind
    name: str
    about: str
    where: str = ""
    read_only: bool = False
    problem: str = ""


_GROUPS = {"LIVE clusters (profiles)": 0, "SIMULATOR scenarios: nothing real": 1}
_TONES = {ClusterKind.PROFILE: Tone.WARN, ClusterKind.SCENARIO: Tone.INFO, ClusterKind.ADDRESS: Tone.WARN}

COLUMNS: tuple[Field[ClusterChoice], ...] = (
    Field("kind", "KIND", lambda p: p.kind.value, tone=lambda p: _TONES[p.kind]),
    Field("name", "NAME", lambda p: printable(p.name), tone=Tone.STRONG),
    Field("mode", "MODE", lambda p: "read-only" if p.read_only else "", priority=2),
    Field("where", "WHERE", lambda p: printable(p.where), priority=3),
    Field(
        "about",
        "ABOUT",
        lambda p: printable(p.problem or p.about),
        flex=True,
        tone=lambda p: Tone.BAD if p.problem else Tone.PLAIN,
    ),
)


class ClusterPicker(DismissOnce[ClusterChoice | None], ModalScreen[ClusterChoice | None]):
    """Profiles, scenarios, and a field for an address; ends with what was chosen, or None. ``profiles``: the file
    that profiles are written into. ``address`` is in the field.
    """

    DEFAULT_CSS = """
    ClusterPicker { align: center middle; background: $background; }
    ClusterPicker > Vertical { width: 100%; height: 100%; padding: 0 1; }
    ClusterPicker > Vertical > Horizontal { height: 1; margin: 0 0 1 0; }
    ClusterPicker .label { width: 20; }
    ClusterPicker Input { width: 1fr; height: 1; padding: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave"),
        Binding("q", "leave", "Leave"),
        Binding("slash", "address", "An address", show=False),
        Binding("tab,shift+tab", "other_field", show=False, priority=True),
        Binding("down", "choices(1)", show=False),
        Binding("up", "choices(-1)", show=False),
    ]

    def __init__(
        self, places: Sequence[ClusterChoice], note: str = "", *, profiles: str = "", address: str = ""
    ) -> None:
        super().__init__()
        self._places = tuple(places)
        self._note = note
        self._profiles = profiles
        self._typed = address

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Lines(self._head, focusable=False)
            with Horizontal():
                yield Lines(self._label, focusable=False, classes="label")
                yield Input(self._typed, placeholder="kafka-1:9092", id="address", select_on_focus=False)
            yield RowTable(
                COLUMNS,
                lambda place: (place.kind, place.name),
                groupings=(Grouping("kind", "by kind", _group, order=_GROUPS.__getitem__),),
                noun="choice",
                empty="no profile and no scenario",
            )
            yield Lines(id="place-about", focusable=False)

    def on_mount(self) -> None:
        if not screen_is_open(self):  # taken away before it had its parts
            return
        table = self.query_one(RowTable)
        table.update(self._places)
        table.group_by("kind")
        (self.query_one(Input) if self._typed or not self._has_profile else table).focus()
        # The cursor is on the first choice: its heading is above it.
        self.call_after_refresh(table.scroll_home, animate=False, force=True)

    @when_ready
    def on_row_table_cursor_moved(self, message: RowTable.CursorMoved) -> None:
        message.stop()
        self.query_one("#place-about", Lines).show(self._about)

    def on_row_table_activated(self, message: RowTable.Activated) -> None:
        message.stop()
        if isinstance(message.row, ClusterChoice) and not message.row.problem:
            self.dismiss(message.row)

    def on_input_submitted(self, message: Input.Submitted) -> None:
        message.stop()
        address = message.value.strip()
        if address:
            self.dismiss(ClusterChoice(ClusterKind.ADDRESS, address, ""))
        else:
            self.query_one(RowTable).action_activate()

    def action_address(self) -> None:
        self.query_one(Input).focus()

    def action_other_field(self) -> None:
        field = self.query_one(Input)
        (self.query_one(RowTable) if field.has_focus else field).focus()

    def action_choices(self, step: int) -> None:
        """From the field to the list."""
        table = self.query_one(RowTable)
        table.focus()
        table.action_cursor(step)

    @property
    def _has_profile(self) -> bool:
        return any(place.kind is ClusterKind.PROFILE for place in self._places)

    def action_leave(self) -> None:
        self.dismiss(None)

    def _head(self, width: int) -> list[Line]:
        lines = fold(
            line(
                Piece("ktriage: which cluster? ", Tone.STRONG),
                *(
                    Piece("Enter", Tone.KEY),
                    Piece(" opens  "),
                    Piece("Tab", Tone.KEY),
                    Piece(" types an address  "),
                ),
                *(Piece("Esc", Tone.KEY), Piece(" leaves")),
            ),
            width,
        )
        if self._profiles and not self._has_profile:
            how = f"Type the host:port of a broker, or write names into {self._profiles}:"
            text = f"No cluster has a name yet. {how}"
            lines += fold(line(Piece(text, Tone.PLAIN)), width)
            lines.append(line(Piece('  clusters: {production: {bootstrap: "kafka-1:9092"}}', Tone.INFO)))
        return lines + (fold(line(Piece(printable(self._note), Tone.WARN)), width) if self._note else [])

    def _label(self, width: int) -> list[Line]:
        return [line(Piece(cut("address of a broker:", width), Tone.STRONG))]

    def _about(self, width: int) -> list[Line]:
        place = self.query_one(RowTable).cursor_row
        if not isinstance(place, ClusterChoice):
            return []
        problem = Piece(f"{printable(place.problem)} " if place.problem else "", Tone.BAD)
        about = ", ".join(part for part in (place.where, place.about, "read-only" * place.read_only) if part)
        return fold(line(Piece(f"{place.name}: ", Tone.STRONG), problem, Piece(printable(about))), width)


def _group(place: ClusterChoice) -> tuple[str, ...]:
    return (list(_GROUPS)[0 if place.kind is ClusterKind.PROFILE else 1],)
