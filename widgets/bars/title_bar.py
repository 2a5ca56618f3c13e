"""The top of the screen: which cluster this is, whether it is real, and whether anything can be changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from rich.style import Style
from textual.color import Color, ColorParseError
from textual.strip import Strip

from recovery.cluster_health import ClusterHealth
from recovery.wording.cluster_health_text import health_line
from recovery.wording.quantity_text import age, lasting, printable
from widgets.text import Line, Piece, Tone, cut, fit, line, width_of, without_directories
from widgets.text_lines import Lines, strip_of
from widgets.theme import PLAIN, styles

WIDE = 120


class RefreshState(StrEnum):
    """How the picture is kept fresh."""

    OPENING = "connecting …"
    FRESH = "every 10 s"
    ASKING = "asking …"
    PAUSED = "PAUSED"
    SLOWED = "slowed down"
    LOST = "CLUSTER LOST"
    NOT_REACHED = "NOT REACHED"


@dataclass(frozen=True, slots=True)
class Title:
    """``name`` is the profile, scenario or bootstrap address, and ``mark`` LIVE for a real cluster, else what
    stands for it. ``reads``: what a long refresh is at; "" for none. ``armed_left_s``: seconds until arming
    lapses, None while read-only; ``read_only_why``: why it can never be armed, "" where it can. ``age_s`` of the
    last complete picture, None before the first. ``colour`` is the profile's, a CSS colour. ``health`` is the
    cluster's, None where nothing was seen of it; ``caveat`` says why it may not be that of now, "" where it is.
    """

    name: str
    cluster_id: str
    mark: str
    armed_left_s: float | None = None
    read_only_why: str = ""
    age_s: float | None = None
    refresh: RefreshState = RefreshState.OPENING
    note: str = ""
    reads: str = ""
    colour: str | None = None
    health: ClusterHealth | None = None
    caveat: str = ""


def title_lines(title: Title, width: int) -> list[Line]:
    """One line where there is room, else two, and one for the cluster's health. What must always be visible
    comes first.
    """
    kind = Piece(f" {title.mark} ", Tone.STRONG)
    first = [*_badge(title), Piece(" "), kind, Piece(f" {printable(title.name)}", Tone.STRONG)]
    ident = Piece(f"  cluster {printable(title.cluster_id) or 'not known yet'}")
    fresh = _fresh(title)
    left = line(*first, ident)
    if width >= WIDE and width_of(left) + width_of(fresh) < width:
        gap = " " * (width - width_of(left) - width_of(fresh) - 1)
        return [(*left, Piece(gap), *fresh), _health(title, width)]
    # What went wrong may be long: it stands where there is room, above. The age of the picture is never cut.
    note = Piece(f"  {_note(title)}" if title.note else "", Tone.WARN)
    fresh = _fresh(replace(title, note=""))
    known = _cropped((ident,), max(width - width_of(fresh) - 2, 0))
    gap = " " * max(width - width_of(known) - width_of(fresh) - 1, 1)
    return [
        _cropped(line(*first, note), width),
        _cropped((*known, Piece(gap), *fresh), width),
        _health(title, width),
    ]


def _health(title: Title, width: int) -> Line:
    """What is wrong with the cluster: it loses what matters least where the line is too short."""
    if title.health is None:
        known = "nothing is known of this cluster yet"
        return line(Piece(cut(f" {title.caveat or known}", width), Tone.BAD if title.caveat else Tone.DIM))
    text = health_line(title.health, title.caveat, width - 1)
    fine = title.health.well and not title.health.under_replicated and not title.caveat
    tone = Tone.GOOD if fine else Tone.WARN
    return line(Piece(f" {text}", Tone.BAD if title.health.urgent else tone))


def _badge(title: Title) -> list[Piece]:
    if title.armed_left_s is not None:
        return [Piece(f" ARMED, {lasting(title.armed_left_s)} left ", Tone.BADGE_ARMED)]
    why = f": {printable(title.read_only_why)}" if title.read_only_why else ""
    return [Piece(f" READ-ONLY{why} ", Tone.BADGE_SAFE)]


def _fresh(title: Title) -> tuple[Piece, ...]:
    old = Piece("no picture yet" if title.age_s is None else f"picture {age(title.age_s)} old")
    lost = title.refresh in (RefreshState.LOST, RefreshState.NOT_REACHED, RefreshState.PAUSED)
    state = Piece(f" · {printable(title.reads) or title.refresh.value}", Tone.BAD if lost else Tone.PLAIN)
    note = Piece(f" · {_note(title)}" if title.note else "", Tone.WARN)
    return line(old, state, note)


def _note(title: Title) -> str:
    return without_directories(printable(title.note))


def _cropped(pieces: Line, width: int) -> Line:
    cropped: list[Piece] = []
    for piece in pieces:
        room = width - width_of(cropped)
        if room <= 0:
            break
        # A note is a sentence, and its cause stands first; a name tells most at its end.
        short = cut if piece.tone is Tone.WARN else fit
        cropped.append(piece if width_of((piece,)) <= room else Piece(short(piece.text, room), piece.tone))
    return tuple(cropped)


class TitleBar(Lines):
    """Always in sight."""

    DEFAULT_CSS = """
    TitleBar { height: auto; background: $panel; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, focusable=False)
        self._ink: Style | None = None
        self._colour_name: str | None = None

    def update(self, title: Title) -> None:
        """Shows it; a profile's colour fills the bar, in ink that can be read on it."""
        if title.colour != self._colour_name:
            self._fill(title.colour)
        self.show(lambda width: title_lines(title, width))

    def _fill(self, name: str | None) -> None:
        self._colour_name, self._ink = name, None
        background = _colour(name)
        if background is None:
            self.styles.clear_rule("background")
        else:
            self.styles.background = background
            self._ink = Style(color=background.get_contrast_text(1.0).rich_color, bold=True)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        looks = styles(self.app.theme)
        if self._ink is not None and self.app.theme != PLAIN:
            badges = (Tone.BADGE_ARMED, Tone.BADGE_SAFE)
            looks = {tone: style if tone in badges else self._ink for tone, style in looks.items()}
        shown = self.lines[y] if y < len(self.lines) else ()
        return strip_of(shown, looks, self.size.width).apply_style(self.rich_style)


def _colour(name: str | None) -> Color | None:
    try:
        return Color.parse(name) if name else None
    except ColorParseError:
        return None
