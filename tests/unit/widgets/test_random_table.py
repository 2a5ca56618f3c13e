"""A table under random hands: whatever comes, the cursor and the marks are those of rows that are there."""

from __future__ import annotations

import random
from collections.abc import Hashable

import pytest
from textual.pilot import Pilot

from tests.unit.widgets.harness import Harness, text_of
from tests.unit.widgets.test_rowtable import Item, table
from widgets.table import RowFilter, RowTable

STEPS = 80
FILTERS = (
    None,
    RowFilter("1"),
    RowFilter("t-[0-4]", regex=True),
    RowFilter("7", inverse=True),
    RowFilter("nothing like it"),
)


class Hands:
    """Random actions on one table, and what must hold after each."""

    def __init__(self, seed: int, shown: RowTable[Item], pilot: Pilot[None]) -> None:
        self.random = random.Random(seed)
        self.shown = shown
        self.pilot = pilot
        self.rows: tuple[Item, ...] = ()

    async def act(self) -> str:
        actions = (self.refill, self.sort, self.filter, self.group, self.press, self.mark, self.size)
        action = self.random.choice(actions)
        return f"{action.__name__} {await action()}"

    async def refill(self) -> object:
        names = self.random.sample(range(60), self.random.randrange(0, 60))
        before, there = self.shown.cursor_key, self._visible()
        self.rows = tuple(Item(f"t-{n}", self.random.randrange(40)) for n in names)
        self.shown.update(self.rows)
        if before is not None and before in there & self._visible():
            assert self.shown.cursor_key == before, "the cursor left a row that is there"
        return len(names)

    def _visible(self) -> set[Hashable]:
        arranged = self.shown._state.arrangement
        return {arranged.identity(n) for n in range(len(arranged.lines))}

    async def sort(self) -> object:
        before = self.shown.cursor_key
        self.shown.sort_by(self.random.choice((None, "name", "number")), self.random.random() < 0.5)
        assert self.shown.cursor_key == before
        return self.shown.sort_state

    async def filter(self) -> object:
        chosen = self.random.choice(FILTERS)
        before = self.shown.cursor_key
        self.shown.filter_by(chosen)
        if before in self._visible():
            assert self.shown.cursor_key == before
        return chosen

    async def group(self) -> object:
        chosen = self.random.choice((None, "tens"))
        self.shown.group_by(chosen)
        if chosen and self.random.random() < 0.5:
            self.shown.toggle_group()
        return chosen

    async def press(self) -> object:
        keys = self.random.choices(
            ("up", "down", "pageup", "pagedown", "home", "end", "left", "right", "enter", "space"), k=3
        )
        await self.pilot.press(*keys)
        return keys

    async def mark(self) -> object:
        do = self.random.choice(
            (self.shown.mark_range, self.shown.mark_all_shown, self.shown.clear_marks, self.shown.toggle_mark)
        )
        do()
        return do.__name__

    async def size(self) -> object:
        size = self.random.choice(((80, 24), (30, 6), (120, 40), (8, 3)))
        await self.pilot.resize_terminal(*size)
        return size

    def check(self) -> None:
        shown, names = self.shown, {row.name for row in self.rows}
        assert shown.marks <= names, "a mark of a row that is gone"
        assert len(shown.marked_rows) == len(shown.marks)
        wanted = shown.filter
        keeps = (lambda _: True) if wanted is None else wanted.keeps()
        kept = [row for row in self.rows if keeps(f"{row.name}\n{row.number:,}")]
        column, reverse = shown.sort_state
        if column is not None:
            kept.sort(key=lambda row: row.name if column == "name" else row.number, reverse=reverse)
        assert list(shown.shown_rows) == kept
        hidden = len(shown.marks - {row.name for row in kept})
        assert shown.counts == (len(self.rows), len(kept), len(shown.marks), hidden)
        assert shown.cursor_key is None or shown.cursor_key in names

    async def look(self) -> None:
        await self.pilot.pause()
        if self.shown.size.height > 2 and self._visible():
            assert text_of(self.pilot.app).count("►") == 1


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
async def test_random_hands(seed: int) -> None:
    shown = table()
    async with Harness(shown).run_test(size=(80, 24)) as pilot:
        shown.focus()
        hands = Hands(seed, shown, pilot)
        told: list[str] = []
        for step in range(STEPS):
            told.append(await hands.act())
            try:
                hands.check()
                if step % 10 == 0:
                    await hands.look()
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, step {step}: {told[-6:]}: {error}") from error
