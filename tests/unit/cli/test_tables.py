"""Tables on a narrow terminal, and in a pipe."""

from __future__ import annotations

import pytest

from widgets.text_table import TextColumn, table

COLUMNS = (TextColumn("PARTITION"), TextColumn("LEADER", right=True), TextColumn("WHY", below=True))
LONG = "a-topic-with-a-name-that-somebody-thought-about-for-a-long-time-0"
ROWS = [("orders-0", "2", "because its last record is of a newer epoch than any other"), (LONG, "1", "alone")]


def test_a_pipe_keeps_one_line_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.delenv("KTRIAGE_WIDTH", raising=False)
    assert len(list(table(COLUMNS, ROWS))) == 1 + len(ROWS)


def test_on_a_narrow_terminal_what_is_wide_moves_under_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTRIAGE_WIDTH", "60")
    lines = list(table(COLUMNS, ROWS))
    assert lines[:2] == ["PARTITION  LEADER", "orders-0        2"]
    assert lines[2].startswith("    why: because its last record")
    assert all(len(line) <= 60 for line in lines if LONG not in line)


def test_a_long_name_has_a_block_of_its_own_and_pads_no_other_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KTRIAGE_WIDTH", "60")
    lines = list(table(COLUMNS, ROWS))
    assert lines[lines.index(LONG) + 1] == "    leader: 1 · why: alone"
