"""Text keeps its words whole, its numbers whole, and never moves somebody's cursor."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from recovery.wording.quantity_text import age, human_bytes, lasting, printable
from widgets.text import Piece, Tone, fit, fold, line, plain


def test_a_line_is_broken_between_words_and_loses_none() -> None:
    text = "the return of broker 3 elects 1,204 of them without an unclean election"
    for width in range(16, 80):
        lines = fold(line(Piece(text)), width, "  ")
        assert all(len(plain(one)) <= width for one in lines)
        assert " ".join(plain(one).strip() for one in lines) == text


def test_a_word_longer_than_the_line_is_shown_whole_over_several() -> None:
    command = "--initial-controllers=" + "x" * 100
    lines = fold(line(Piece(command)), 30, "  ")
    assert "".join(plain(one).strip() for one in lines) == command


def test_tones_survive_folding() -> None:
    lines = fold(line(Piece("elect 2 "), Piece("loses 500 offsets for certain", Tone.BAD)), 20)
    assert all(piece.tone is Tone.BAD for piece in lines[-1])


def test_a_long_partition_keeps_its_number() -> None:
    assert fit("audit.log.of.everything-31", 14).endswith("31")
    assert len(fit("audit.log.of.everything-31", 14)) == 14
    assert fit("short", 8) == "short   "


def test_a_long_name_of_wide_characters_keeps_its_number_and_its_width() -> None:
    for width in range(9, 40):
        shown = fit("漢字" * 20 + "-31", width)
        assert shown.endswith("-31") and "…" in shown and cell_len(shown) == width


def test_what_a_broker_sends_cannot_move_the_cursor() -> None:
    assert "\x1b" not in printable("\x1b[2Jdisk\nerror")
    assert "\n" not in printable("\x1b[2Jdisk\nerror")


@pytest.mark.parametrize(
    ("seconds", "told"), [(3, "<1 min"), (61, "1 min"), (3_700, "1 h 01"), (300_000, "3 days")]
)
def test_durations_are_coarse_so_that_lines_stay(seconds: float, told: str) -> None:
    assert lasting(seconds) == told


def test_an_age_shows_seconds_while_they_matter() -> None:
    assert (age(3.9), age(120)) == ("3 s", "2 min")


def test_a_size_that_is_not_known_is_not_zero() -> None:
    assert human_bytes(-1) == "?"
    assert human_bytes(0) == "0 B"
    assert human_bytes(3 * 1024**3) == "3.0 GiB"
    assert human_bytes(1024**4 - 1024**2) == "1.0 TiB"
