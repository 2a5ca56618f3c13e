"""Lines of text: what has no room is not hidden in silence."""

from __future__ import annotations

from textual.containers import Vertical, VerticalScroll

from tests.unit.widgets.harness import Harness, text_of
from widgets.text import Line, Piece, line
from widgets.text_lines import Lines


async def test_a_text_that_another_one_moves_down_says_that_it_goes_on() -> None:
    above, below = Lines(fixed=True), Lines(fixed=True)
    app = Harness(Vertical(above, below))
    async with app.run_test(size=(40, 4)) as pilot:
        below.show(lambda _: [line(Piece(f"row {number}")) for number in (1, 2, 3)])
        above.show(lambda _: [line(Piece("one"))])
        await pilot.pause()
        assert "row 3" in text_of(app)
        above.show(lambda _: [line(Piece("one")), line(Piece("two"))])
        await pilot.pause()
        assert text_of(app).splitlines()[-1] == "row 2 …"


async def test_a_text_that_gets_a_scroll_bar_is_made_once_for_its_new_width() -> None:
    made: list[int] = []

    def rows(width: int) -> list[Line]:
        made.append(width)
        return [line(Piece(f"row {number}")) for number in range(40)]

    text = Lines(rows)
    app = Harness(VerticalScroll(text))
    async with app.run_test(size=(40, 20)) as pilot:
        await pilot.pause()
        assert "row 17" in text_of(app)
        made.clear()
        text.styles.height = 20
        await pilot.pause()
        await pilot.pause()
        assert "row 17" in text_of(app)
        assert len(made) <= 4, f"40 lines were made {len(made)} times, for widths {made}"
