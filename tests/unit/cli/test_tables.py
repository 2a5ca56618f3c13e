"""Tables on a narrow terminal, and in a pipe."""

from __future__ import annotations

import pytest

from widgets.fields import Field, text_field, text_rows
from widgets.text import fold_text

FIELDS: tuple[Field[tuple[str, str, str]], ...] = (
    text_field("PARTITION", lambda row: row[0]),
    text_field("LEADER", lambda row: row[1], right=True),
    text_field("WHY", lambda row: row[2], below=True),
)
LONG = "a-topic-with-a-name-that-somebody-thought-about-for-a-long-time-0"
ROWS = [("orders-0", "2", "because its last record is of a newer epoch than any other"), (LONG, "1", "alone")]


def test_a_pipe_keeps_one_line_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.delenv("KTRIAGE_WIDTH", raising=False)
    assert len(list(text_rows(FIELDS, ROWS))) == 1 + len(ROWS)


def test_on_a_narrow_terminal_what_is_wide_moves_under_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTRIAGE_WIDTH", "60")
    lines = list(text_rows(FIELDS, ROWS))
    assert lines[:2] == ["PARTITION  LEADER", "orders-0        2"]
    assert lines[2].startswith("    why: because its last record")
    assert all(len(line) <= 60 for line in lines if LONG not in line)


def test_a_long_name_has_a_block_of_its_own_and_pads_no_other_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTRIAGE_WIDTH", "60")
    lines = list(text_rows(FIELDS, ROWS))
    assert lines[lines.index(LONG) + 1] == "    leader: 1 · why: alone"


def test_a_table_that_is_cut_says_how_many_rows_are_left_and_what_shows_them() -> None:
    assert (
        list(text_rows(FIELDS, ROWS, limit=1))[-1] == "… and 1 more (--rows 0, or --output json, shows all)"
    )
    assert list(text_rows(FIELDS, ROWS, "  ", limit=1, rest=""))[-1] == "  … and 1 more"
    assert list(text_rows(FIELDS, ROWS, limit=2)) == list(text_rows(FIELDS, ROWS))
    assert list(text_rows(FIELDS, [])) == []


def test_no_word_is_broken_where_text_is_folded() -> None:
    path = "/var/lib/kafka/a-directory-with-a-long-name"
    assert fold_text(f"see  {path} and more of it", 20, "  ") == ["  see", f"  {path}", "  and more of it"]
