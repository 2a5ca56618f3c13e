"""Lines of text: what has no room is not hidden in silence."""

from __future__ import annotations

from textual.containers import Vertical

from tests.unit.widgets.harness import Harness, text_of
from widgets.text import Piece, line
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
