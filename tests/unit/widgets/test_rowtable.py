"""The table as somebody works with it: the selection stays on its row whatever happens around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from textual.geometry import Region
from textual.pilot import Pilot

from tests.unit.widgets.harness import Harness, text_of
from widgets.fields import Field
from widgets.table import Grouping, RowFilter, RowTable
from widgets.table.row_arrangement import GroupKey
from widgets.table.table_messages import Activated, MarksGone, RowGone


class Item(NamedTuple):
    name: str
    number: int


class Built:
    """Counts how many cells were made."""

    cells = 0


def _name(item: Item) -> str:
    Built.cells += 1
    return item.name


def table(*, noun: str = "partition", stays_on_top: bool = False) -> RowTable[Item]:
    return RowTable(
        (
            Field("name", "NAME", _name, flex=True),
            Field("number", "NUMBER", lambda i: f"{i.number:,}", sort=lambda i: i.number, right=True),
        ),
        lambda item: item.name,
        groupings=(Grouping("tens", "by tens", lambda i: (f"group {i.number // 10}",)),),
        noun=noun,
        empty="no partition is offline",
        stays_on_top=stays_on_top,
    )


def items(numbers: Sequence[int]) -> tuple[Item, ...]:
    return tuple(Item(f"t-{n}", n) for n in numbers)


async def ready(pilot: Pilot[None], shown: RowTable[Item], rows: tuple[Item, ...]) -> None:
    shown.update(rows)
    shown.focus()
    await shown.wait_settled()
    await pilot.pause()


async def test_a_refresh_never_moves_the_cursor_onto_another_row() -> None:
    shown = table()
    async with Harness(shown).run_test(size=(40, 10)) as pilot:
        await ready(pilot, shown, items(range(50)))
        await pilot.press("down", "down", "down")
        assert shown.cursor_key == "t-3"
        line = _screen_line(pilot, "t-3")
        shown.update(items([77, 88, *range(50)]))
        await pilot.pause()
        assert shown.cursor_key == "t-3"
        assert _screen_line(pilot, "t-3") == line, "the row stays where the eye is"


@pytest.mark.parametrize("key", ["", "down", "space"])
async def test_the_cursor_is_on_the_worst_row_until_somebody_acts(key: str) -> None:
    """Which is the worst shows while answers come: nobody has chosen the row that was first by accident."""
    shown = table(stays_on_top=True)
    async with Harness(shown).run_test(size=(40, 10)) as pilot:
        await ready(pilot, shown, items(range(50)))
        await pilot.press(*([key] if key else []))
        at = shown.cursor_key
        shown.update(items([77, 88, *range(50)]))
        await pilot.pause()
        assert shown.cursor_key == ("t-77" if not key else at)
        assert _screen_line(pilot, str(shown.cursor_key)) == (1 if not key else _screen_line(pilot, str(at)))


async def test_a_row_that_goes_away_is_told_and_nothing_is_opened() -> None:
    shown = table()
    app = Harness(shown)
    async with app.run_test(size=(40, 10)) as pilot:
        await ready(pilot, shown, items(range(9)))
        await pilot.press("down", "down")
        shown.update(items([0, 1, 5, 6]))
        await pilot.pause()
        (gone,) = [message for message in app.heard if isinstance(message, RowGone)]
        assert (gone.key, gone.now, shown.cursor_key) == ("t-2", "t-5", "t-5")
        assert not [message for message in app.heard if isinstance(message, Activated)]


async def test_sort_and_filter_keep_the_cursor_on_its_row() -> None:
    shown = table()
    async with Harness(shown).run_test(size=(40, 10)) as pilot:
        await ready(pilot, shown, items(range(500)))
        shown.move_to("t-44")
        shown.sort_by("number", reverse=True)
        assert shown.cursor_key == "t-44"
        shown.filter_by(RowFilter("4"))
        assert shown.cursor_key == "t-44"
        assert shown.counts.shown == sum(1 for n in range(500) if "4" in str(n))
        shown.filter_by(None)
        assert shown.cursor_key == "t-44"
        await pilot.pause()
        assert "►" in text_of(pilot.app)


async def test_marks_are_rows_and_not_places() -> None:
    shown = table()
    app = Harness(shown)
    async with app.run_test(size=(40, 10)) as pilot:
        await ready(pilot, shown, items(range(20)))
        await pilot.press("space", "space")
        assert shown.marks == {"t-0", "t-1"}
        shown.sort_by("number", reverse=True)
        assert {row.name for row in shown.marked_rows} == {"t-0", "t-1"}
        shown.filter_by(RowFilter("t-1"))
        assert shown.counts.hidden_marks == 1, "a mark that the filter hides is counted"
        shown.update(items(range(1, 20)))
        await pilot.pause()
        assert shown.marks == {"t-1"}
        (gone,) = [message for message in app.heard if isinstance(message, MarksGone)]
        assert gone.keys == {"t-0"}


async def test_a_range_goes_from_the_last_mark_to_the_cursor() -> None:
    shown = table()
    async with Harness(shown).run_test(size=(40, 12)) as pilot:
        await ready(pilot, shown, items(range(20)))
        shown.move_to("t-3")
        shown.toggle_mark()
        shown.move_to("t-7")
        shown.mark_range()
        assert shown.marks == {f"t-{n}" for n in range(3, 8)}
        shown.filter_by(RowFilter("t-1"))
        shown.mark_all_shown()
        assert len(shown.marks) == 5 + len({"t-1", *(f"t-{n}" for n in range(10, 20))})
        shown.clear_marks()
        assert not shown.marks


async def test_a_heading_marks_and_folds_its_group() -> None:
    shown = table()
    async with Harness(shown).run_test(size=(60, 20)) as pilot:
        await ready(pilot, shown, items(range(30)))
        shown.group_by("tens")
        shown.move_to(GroupKey("group 1"))
        assert shown.cursor_key is None, "a heading is no row"
        await pilot.press("space")
        assert shown.marks == {f"t-{n}" for n in range(10, 20)}
        shown.move_to("t-12")
        await pilot.press("left")
        await pilot.pause()
        screen = text_of(pilot.app)
        assert "▸ group 1  10 partitions, 10 marked" in screen
        assert "t-12" not in screen
        await pilot.press("right")
        await pilot.pause()
        assert "t-12" in text_of(pilot.app)


async def test_the_heading_above_the_first_row_is_seen() -> None:
    """The cursor keeps its line, and the heading of its group would stand one line above the table."""
    shown = table()
    async with Harness(shown).run_test(size=(60, 8)) as pilot:
        await ready(pilot, shown, items(range(30)))
        shown.group_by("tens")
        await shown.wait_settled()
        await pilot.pause()
        assert shown.cursor_key == "t-0"
        assert "group 0" in text_of(pilot.app)


async def test_two_hundred_thousand_rows_are_not_built_to_be_shown() -> None:
    shown = table()
    async with Harness(shown).run_test(size=(80, 24)) as pilot:
        Built.cells = 0
        await ready(pilot, shown, items(range(200_000)))
        await pilot.press("end", "pageup", "home", "pagedown")
        await pilot.pause()
        assert Built.cells < 2_000
        assert shown.cursor_key == "t-22"


async def test_the_last_whole_picture_stays_until_the_next_is_whole() -> None:
    shown = table()
    async with Harness(shown).run_test(size=(60, 20)) as pilot:
        await ready(pilot, shown, items(range(50_000)))
        shown.sort_by("number", reverse=True)
        assert not shown.settled
        assert shown.shown_rows[0].number == 0
        shown.sort_by("number")
        shown.filter_by(RowFilter("777"))
        await shown.wait_settled()
        assert shown.sort_state == ("number", False), "the later wish counts"
        assert [row.number for row in shown.shown_rows[:2]] == [777, 1777]


async def test_a_refresh_that_changes_nothing_paints_nothing() -> None:
    shown = table()
    async with Harness(shown).run_test(size=(60, 20)) as pilot:
        await ready(pilot, shown, items(range(100)))
        painted: list[Region] = []
        refresh = shown.refresh

        def counting(*regions: Region, **options: bool) -> RowTable[Item]:
            painted.extend(regions or [shown.region])
            refresh(*regions, **options)
            return shown

        shown.refresh = counting  # type: ignore[method-assign]  # watches what is repainted
        shown.update(items(range(100)))
        assert painted == []
        changed = list(items(range(100)))
        changed[4] = changed[4]._replace(number=5)
        shown.update(tuple(changed))
        assert [region.y for region in painted] == [5], "one line for one changed row"


async def test_the_mouse_chooses_rows_and_sorts_by_the_header() -> None:
    shown = table()
    app = Harness(shown)
    async with app.run_test(size=(60, 20)) as pilot:
        await ready(pilot, shown, items(range(100)))
        await pilot.click(RowTable, offset=(6, 4))
        assert shown.cursor_key == "t-3"
        column = text_of(app).splitlines()[0].index("NUMBER")
        await pilot.click(RowTable, offset=(column + 1, 0))
        assert shown.sort_state == ("number", False)
        await pilot.click(RowTable, offset=(column + 1, 0))
        assert shown.sort_state == ("number", True)
        assert shown.cursor_key == "t-3"
        await pilot.click(RowTable, offset=(6, 4), times=2)
        assert [message.key for message in app.heard if isinstance(message, Activated)] == [shown.cursor_key]


async def test_a_refresh_does_not_pull_back_somebody_who_scrolled_away() -> None:
    shown = table()
    async with Harness(shown).run_test(size=(40, 10)) as pilot:
        await ready(pilot, shown, items(range(200)))
        shown.scroll_to(y=100, animate=False)
        await pilot.pause()
        assert "t-100 " in text_of(pilot.app) and shown.cursor_key == "t-0"
        shown.update(items([900, 901, *range(200)]))
        await pilot.pause()
        assert text_of(pilot.app).splitlines()[1].split()[0] == "t-100", "the same row is at the top"
        assert shown.cursor_key == "t-0"
        shown.update(items(range(5)))
        await pilot.pause()
        assert "t-0" in text_of(pilot.app)


async def test_what_matches_is_seen_and_an_empty_table_says_why() -> None:
    shown = table()
    async with Harness(shown).run_test(size=(60, 20)) as pilot:
        await ready(pilot, shown, ())
        assert "no partition is offline" in text_of(pilot.app)
        shown.update(items(range(9)))
        shown.filter_by(RowFilter("zzz"))
        await pilot.pause()
        assert "the filter hides all 9" in text_of(pilot.app)
        assert shown.cursor_key is None
        await pilot.press("enter", "space", "down", "end", "left")
        assert not shown.marks


async def test_a_terminal_of_any_size_shows_whole_numbers_or_none() -> None:
    shown = table()
    rows = (Item("a-topic-with-a-long-name-0", 123_456_789), Item("b-1", 7))
    async with Harness(shown).run_test(size=(80, 24)) as pilot:
        await ready(pilot, shown, rows)
        for width, height in ((1, 1), (5, 2), (19, 3), (40, 8), (500, 200), (24, 24)):
            await pilot.resize_terminal(width, height)
            await pilot.pause()
            await pilot.press("down", "up", "end", "home")
            digits = [word for word in text_of(pilot.app).replace(",", "").split() if word.isdigit()]
            assert set(digits) <= {"123456789", "7"}, (width, height, digits)


def _screen_line(pilot: Pilot[None], name: str) -> int:
    return next(y for y, line in enumerate(text_of(pilot.app).splitlines()) if f"{name} " in f"{line} ")
