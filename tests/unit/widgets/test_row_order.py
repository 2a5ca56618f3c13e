"""Rows arranged in slices come out as if they had been arranged at once."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import NamedTuple

import pytest

from widgets.fields import Field
from widgets.table import Grouping, RowFilter
from widgets.table.row_arrangement import Arrangement, GroupKey, TableQuery, arrange
from widgets.table.row_filter import parse_filter
from widgets.table.row_table import CHUNK, Export, exported
from widgets.table.row_table import run_to_end as at_once
from widgets.table.table_column import Layout, PlacedColumn, lay_out
from widgets.table.table_painter import GUTTER, header
from widgets.text import Tone, plain


class Item(NamedTuple):
    name: str
    number: int
    rack: str


COLUMNS: tuple[Field[Item], ...] = (
    Field("name", "NAME", lambda i: i.name, flex=True),
    Field(
        "number", "NUMBER", lambda i: i.number, lambda i: f"{i.number:,}", sort=lambda i: i.number, right=True
    ),
    Field("rack", "RACK", lambda i: i.rack, priority=1, tone=Tone.DIM),
)
BY_RACK: Grouping[Item] = Grouping("rack", "by rack", lambda i: tuple(i.rack))
WANTED: TableQuery[Item] = TableQuery(lambda i: i.name, lambda i: f"{i.name}\n{i.rack}")


def items(count: int, seed: int = 1) -> tuple[Item, ...]:
    chosen = random.Random(seed)
    return tuple(Item(f"t-{n}", chosen.randrange(50), chosen.choice("abc")) for n in range(count))


def shown(arranged: Arrangement[Item]) -> list[Item]:
    return [arranged.rows[n] for n in arranged.shown]


@pytest.mark.parametrize("reverse", [False, True])
def test_sorting_is_stable_in_both_directions(reverse: bool) -> None:
    rows = items(20_000)
    arranged = at_once(arrange(rows, replace(WANTED, sort=COLUMNS[1], reverse=reverse)))
    assert shown(arranged) == sorted(rows, key=lambda i: i.number, reverse=reverse)


def test_nothing_takes_long_between_two_slices() -> None:
    rows = items(50_000)
    slices = arrange(rows, TableQuery(WANTED.key, WANTED.search, RowFilter("t-"), COLUMNS[1], False, BY_RACK))
    assert sum(1 for _ in slices) > 100


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("T-1", {"t-1", "t-10", "t-11"}),
        ("/^t-1$", {"t-1"}),
        ("!/t-.+", set()),
        ("!t-1", None),
        ("/t-1[01]/", {"t-10", "t-11"}),
    ],
)
def test_filters_as_they_are_typed(typed: str, kept: set[str] | None) -> None:
    rows = items(12)
    arranged = at_once(arrange(rows, TableQuery(WANTED.key, WANTED.search, parse_filter(typed))))
    expected = {f"t-{n}" for n in (0, *range(2, 10))} if kept is None else kept
    assert {i.name for i in shown(arranged)} == expected


@pytest.mark.parametrize("pattern", ["(", "(a+)+b", "[z-a]", "(.*)*x", "a{2,1}"])
def test_an_expression_that_cannot_be_looked_for_says_why_and_lets_no_row_in(pattern: str) -> None:
    bad = RowFilter(pattern, regex=True)
    assert bad.problem()
    assert len(shown(at_once(arrange(items(5), TableQuery(WANTED.key, WANTED.search, bad))))) == 0


def test_text_is_no_expression() -> None:
    assert RowFilter("(a+)+b").problem() is None
    assert RowFilter("t.1").keeps()("t-1") is False


def test_groups_count_their_rows_and_fold() -> None:
    rows = (Item("t-0", 1, "ab"), Item("t-1", 2, "b"), Item("t-2", 3, "b"))
    arranged = at_once(
        arrange(rows, TableQuery(WANTED.key, WANTED.search, grouping=BY_RACK, folded=frozenset({"b"})))
    )
    assert [(group.label, len(group.rows), group.folded) for group in arranged.groups] == [
        ("a", 1, False),
        ("b", 3, True),
    ]
    assert [arranged.identity(n) for n in range(len(arranged.lines))] == [GroupKey("a"), "t-0", GroupKey("b")]
    assert len(arranged.shown) == 3


def test_an_export_holds_every_shown_row_with_its_values() -> None:
    rows = items(CHUNK * 2 + 1)
    arranged = at_once(arrange(rows, TableQuery(WANTED.key, WANTED.search, RowFilter("t-1"))))
    found = json.loads("".join(exported(arranged, COLUMNS, Export.JSON)))
    assert [(o["name"], o["number"]) for o in found] == [(i.name, i.number) for i in rows if "t-1" in i.name]
    text = "".join(exported(arranged, COLUMNS, Export.CSV)).splitlines()
    assert text[0] == "name,number,rack"
    assert len(text) == len(found) + 1


def test_an_export_of_nothing_is_whole() -> None:
    arranged = at_once(arrange((), WANTED))
    assert json.loads("".join(exported(arranged, COLUMNS, Export.JSON))) == []
    assert "".join(exported(arranged, COLUMNS, Export.CSV)) == "name,number,rack\n"


def test_columns_go_by_priority_and_no_number_is_ever_cut() -> None:
    needs = {"name": 30, "number": 11, "rack": 6}
    for width in range(12, 120):
        layout = lay_out(COLUMNS, needs, width)
        for column, start, wide in layout.placed:
            if not column.flex:
                assert wide >= needs[column.id]
            if width >= 30:
                assert start + wide <= width
    assert [column.id for column in lay_out(COLUMNS, needs, 30).dropped] == ["rack"]
    assert lay_out(COLUMNS, needs, 80).dropped == ()


def test_a_column_that_is_empty_gives_its_room_away() -> None:
    layout = lay_out(COLUMNS, {"name": 30, "number": 3, "rack": 0}, 40)
    assert [placed.column.id for placed in layout.placed] == ["name", "number"]
    assert layout.dropped == ()


def test_the_heading_says_how_many_columns_have_no_room_in_as_many_words_as_fit() -> None:
    only = Layout((PlacedColumn(COLUMNS[0], GUTTER, 20),), COLUMNS[1:])
    told = {width: plain(header(only, width, None, reverse=False)) for width in (23, 30, 31, 33, 34, 80)}
    assert {width: (text[:GUTTER], text[23:]) for width, text in told.items()} == {
        23: ("+2 ", ""),
        30: ("+2 ", ""),
        31: ("   ", " +2 cols"),
        33: ("   ", " +2 cols"),
        34: ("   ", " +2 columns"),
        80: ("   ", " +2 columns"),
    }
    assert plain(header(Layout(only.placed, COLUMNS[2:]), 80, None, reverse=False)).endswith(" +1 column")
    assert plain(header(Layout(only.placed, ()), 80, None, reverse=False)).strip() == "NAME"
