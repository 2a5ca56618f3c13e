"""Text as values: pieces with a tone, lines of pieces. Nothing here knows Textual, so panes are tested as text.

A tone says what a piece means; the theme says how that looks. No meaning is carried by a tone alone: every state
has a word or a sign in its text.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple


def cell_len(text: str) -> int:
    """Screen columns. A command prints plain text and does without rich, which takes a tenth of its time."""
    if text.isascii() and text.isprintable():
        return len(text)
    from rich.cells import cell_len as measured  # noqa: PLC0415  # only for wide characters

    return measured(text)


def set_cell_size(text: str, width: int) -> str:
    """Cut off, or filled up with blanks, to ``width`` screen columns."""
    if text.isascii() and text.isprintable():
        return text[:width].ljust(width)
    from rich.cells import set_cell_size as resized  # noqa: PLC0415  # as above

    return resized(text, width)


_NARROWEST = 40
_DIRECTORIES = re.compile(r"(?<![^\s(])(?:~|\.{1,2})?/(?:[^\s/]+/)*")


class Tone(StrEnum):
    """What a piece of text means."""

    PLAIN = "plain"
    DIM = "dim"
    STRONG = "strong"
    HEAD = "head"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    INFO = "info"
    KEY = "key"
    TAB = "tab"
    CURSOR = "cursor"
    MATCH = "match"
    CUT = "cut"
    BADGE_SAFE = "badge-safe"
    BADGE_ARMED = "badge-armed"
    EPOCH_0 = "epoch-0"
    EPOCH_1 = "epoch-1"
    EPOCH_2 = "epoch-2"
    EPOCH_3 = "epoch-3"
    EPOCH_4 = "epoch-4"
    EPOCH_5 = "epoch-5"


class Piece(NamedTuple):
    """A run of text in one tone."""

    text: str
    tone: Tone = Tone.PLAIN


Line = tuple[Piece, ...]
Content = Callable[[int], Sequence[Line]]
"""Lines for a given width in columns."""

BLANK: Line = ()


def line(*parts: str | Piece) -> Line:
    """A line of pieces; strings are plain, empty ones are left out."""
    pieces = (part if isinstance(part, Piece) else Piece(part) for part in parts)
    return tuple(piece for piece in pieces if piece.text)


def plain(pieces: Iterable[Piece]) -> str:
    """The text alone, as somebody sees it who sees no colour."""
    return "".join(piece.text for piece in pieces)


def width_of(pieces: Iterable[Piece]) -> int:
    """How many columns the line takes."""
    return sum(cell_len(piece.text) for piece in pieces)


def fold(pieces: Line, width: int, indent: str = "", *, whole_words: bool = False) -> list[Line]:
    """The line broken between words at ``width`` columns; what follows is indented by ``indent``.

    A word that is longer than a line has one of its own and is broken there: nothing is left out. ``whole_words``:
    it is not broken, so that a command or a path can be copied.
    """
    lines: list[Line] = []
    current: list[Piece] = []
    used = 0
    for word, tone in _words(pieces):
        size = cell_len(word)
        if used + cell_len(word.rstrip()) > width and used > len(indent):
            lines.append(_trimmed(current))
            current, used = ([Piece(indent)] if indent else []), len(indent)
        while not whole_words and used + cell_len(word.rstrip()) > width > len(indent):
            head, word = _split(word, width - used)  # noqa: PLW2901  # the rest of a word too long for any line
            lines.append((*current, Piece(head, tone)))
            current, used = ([Piece(indent)] if indent else []), len(indent)
            size = cell_len(word)
        current.append(Piece(word, tone))
        used += size
    lines.append(_trimmed(current))
    return lines


def fold_text(text: str, width: int, indent: str = "") -> list[str]:
    """Plain text in lines of at most ``width`` columns, all of them indented; no word is broken."""
    return [plain(folded) for folded in fold(line(indent + text), width, indent, whole_words=True)]


def terminal_width() -> int | None:
    """The width of the terminal in columns, or KTRIAGE_WIDTH if it is set; None: a pipe or a file, one line
    per row.
    """
    width = os.environ.get("KTRIAGE_WIDTH", "")
    if width.isdecimal():
        return max(int(width), _NARROWEST)
    try:
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError, AttributeError):  # a pipe, a file, or no stdout at all
        return None
    # A terminal without a size (script, docker -t, CI) reports 0.
    return max(columns or shutil.get_terminal_size().columns, _NARROWEST)


def _words(pieces: Line) -> Iterable[tuple[str, Tone]]:
    """Words with the blanks behind them."""
    for text, tone in pieces:
        start = 0
        for end in range(1, len(text) + 1):
            if end == len(text) or (text[end - 1] == " " and text[end] != " "):
                yield text[start:end], tone
                start = end


def _split(text: str, width: int) -> tuple[str, str]:
    used = 0
    for index, char in enumerate(text):
        used += cell_len(char)
        if used > width:
            return text[: max(index, 1)], text[max(index, 1) :]
    return text, ""


def _trimmed(pieces: Sequence[Piece]) -> Line:
    if not pieces:
        return ()
    last = pieces[-1]
    return tuple(piece for piece in (*pieces[:-1], Piece(last.text.rstrip(), last.tone)) if piece.text)


def fit(text: str, width: int) -> str:
    """Exactly ``width`` columns; what is too long loses its middle, since the number at its end tells most."""
    if width <= 0:
        return ""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    if width <= 4:
        return set_cell_size("…", width)
    keep = width - 1
    tail = min(keep // 2, max(keep // 3, 4))
    # A wide character takes two columns: both parts are measured, the end from behind.
    return f"{set_cell_size(text, keep - tail)}…{set_cell_size(text[::-1], tail)[::-1]}"


def cut(text: str, width: int) -> str:
    """At most ``width`` columns; what is too long loses its end, since a sentence tells most at its beginning."""
    if cell_len(text) <= width:
        return text
    return f"{set_cell_size(text, width - 1).rstrip()}…" if width > 0 else ""


def without_directories(text: str) -> str:
    """The text with its paths as bare names: what happened matters more than where."""
    return _DIRECTORIES.sub("", text)
