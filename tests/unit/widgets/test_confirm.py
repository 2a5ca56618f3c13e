"""The confirmation: what somebody half asleep cannot confirm by accident."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from textual.events import Key, Paste
from textual.pilot import Pilot
from textual.widgets import Input

from tests.unit.widgets.harness import Harness, text_of
from widgets import theme
from widgets.dialogs.confirmation import (
    ConfirmAnswer,
    Confirmation,
    ConfirmOption,
    ConfirmPart,
    ConfirmRequest,
)
from widgets.text_lines import Lines

REQUEST = ConfirmRequest(
    "Elect 5 leaders?",
    ("cluster prod-eu, id MkU3OEVBNTcwNTJENDM2Qk, LIVE",),
    "Elect 5 leaders",
    opened_by="a",
    parts=(ConfirmPart("Lost", ("3 of them may lose something",)),),
    expected="3",
    expected_what="the number of partitions that may lose something",
    needs_reason=True,
)
PLAIN = replace(REQUEST, expected=None, needs_reason=False, parts=())
ENDED: list[ConfirmAnswer | None] = []


@asynccontextmanager
async def opened(
    request: ConfirmRequest, size: tuple[int, int] = (80, 24), theme_name: str = theme.DARK
) -> AsyncIterator[Pilot[None]]:
    ENDED.clear()
    app = Harness(Lines(), theme_name=theme_name)
    async with app.run_test(size=size) as pilot:
        app.push_screen(Confirmation(request), ENDED.append)
        await pilot.pause()
        yield pilot


def focused(pilot: Pilot[None]) -> str | None:
    return None if pilot.app.focused is None else pilot.app.focused.id


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
async def test_everything_that_is_asked_can_be_seen(size: tuple[int, int]) -> None:
    async with opened(REQUEST, size) as pilot:
        screen = text_of(pilot.app)
        for word in (
            "LIVE",
            "MkU3OEVBNTcwNTJENDM2Qk",
            "3 of them may lose",
            "[ Cancel ]",
            "[ Elect 5 leaders ]",
        ):
            assert word in screen
        assert focused(pilot) == "cancel"


@pytest.mark.parametrize("typed", ["2,000", "2000"])
async def test_a_number_is_accepted_as_it_is_shown_and_without_its_separators(typed: str) -> None:
    async with opened(replace(REQUEST, expected="2000", needs_reason=False)) as pilot:
        await pilot.press(*typed)
        await pilot.press("tab", "enter")
        await pilot.pause()
        assert [ConfirmAnswer("")] == ENDED


async def test_a_separator_in_the_wrong_place_is_another_number() -> None:
    async with opened(replace(REQUEST, expected="2000", needs_reason=False)) as pilot:
        await pilot.press(*"20,00")
        await pilot.pause()
        assert 'not yet: "20,00" is not 2000' in text_of(pilot.app)
        assert pilot.app.screen.query_one("#confirm").disabled


async def test_what_was_mistyped_is_said_and_the_way_to_the_button_does_not_cancel() -> None:
    named = replace(REQUEST, expected="payments", expected_what="the topic's name (payments)")
    async with opened(named) as pilot:
        await pilot.press(*"paym")
        assert "not yet: type the topic's name (payments)" in text_of(pilot.app), "not wrong so far"
        await pilot.press(*"entz", "tab", *"why", "tab", "enter")
        await pilot.pause()
        assert ENDED == []
        assert 'not yet: "paymentz" is not payments' in text_of(pilot.app)
        assert focused(pilot) == "expected"
        await pilot.press("end", "backspace", "s", "tab", "tab", "enter")
        await pilot.pause()
        assert [ConfirmAnswer("why")] == ENDED


async def test_the_button_says_what_presses_it_and_that_space_does_not() -> None:
    async with opened(PLAIN) as pilot:
        assert "Press Tab to reach [ Elect 5 leaders ], then Enter." in text_of(pilot.app)
        await pilot.press("shift+tab")
        await pilot.pause()
        assert focused(pilot) == "confirm"
        assert "Press Enter for [ Elect 5 leaders ]." in text_of(pilot.app)
        assert "Press Tab" not in text_of(pilot.app)
        await pilot.press("space")
        await pilot.pause()
        assert "Space presses no button. Press Enter for [ Elect 5 leaders ]." in text_of(pilot.app)
        assert ENDED == []
        await pilot.press("enter")
        await pilot.pause()
        assert [ConfirmAnswer("")] == ENDED


async def test_enter_cancels() -> None:
    async with opened(PLAIN) as pilot:
        await pilot.press("enter")
        await pilot.pause()
        assert ENDED == [None]


@pytest.mark.parametrize("opener", ["enter", "space", "a"])
async def test_a_key_that_is_held_down_neither_confirms_nor_cancels(opener: str) -> None:
    async with opened(replace(PLAIN, opened_by=opener)) as pilot:
        await pilot.press(*[opener] * 20)
        await pilot.pause()
        assert ENDED == []


@pytest.mark.parametrize("opener", ["enter", "X"])
async def test_enter_confirms_whatever_key_opened_it(opener: str) -> None:
    async with opened(replace(PLAIN, opened_by=opener)) as pilot:
        assert "then Enter" in text_of(pilot.app)
        await pilot.press("tab")
        assert focused(pilot) == "confirm"
        await pilot.press("space")
        await pilot.pause()
        assert ENDED == []
        await pilot.press("enter")
        await pilot.pause()
        assert [ConfirmAnswer("")] == ENDED


async def test_on_the_smallest_terminal_the_field_and_the_button_in_use_are_seen() -> None:
    long = replace(REQUEST, target=tuple(f"orders-{n}: elect 2" for n in range(20)))
    async with opened(long, (40, 10)) as pilot:
        await pilot.press("tab", "3")
        for key, name in (("", "expected"), ("tab", "reason"), ("x", "reason"), ("tab", "confirm")):
            await pilot.press(*([key] if key else []))
            await pilot.pause()
            assert focused(pilot) == name
            at = pilot.app.focused
            assert at is not None
            shown = at.region.intersection(at.screen.region)
            assert at in {widget for widget, _ in at.screen.get_widgets_at(*shown.offset)}, text_of(pilot.app)


async def test_a_loss_wants_the_number_typed_and_a_reason() -> None:
    async with opened(REQUEST) as pilot:
        await pilot.press("tab", "2", "tab", *"disk", "tab", "tab", "enter")
        await pilot.pause()
        assert not [ended for ended in ENDED if ended is not None], "2 is not 3"
    async with opened(REQUEST) as pilot:
        await pilot.press("tab", "3")
        await pilot.pause()
        assert "not yet: give a reason" in text_of(pilot.app)
        await pilot.press("tab", "space")
        await pilot.pause()
        assert "not yet: give a reason" in text_of(pilot.app), "a blank reason is none"
        await pilot.press(*"disk", "tab")
        assert focused(pilot) == "confirm"
        await pilot.press("enter")
        await pilot.pause()
        assert [ConfirmAnswer("disk")] == ENDED


async def test_enter_in_a_field_confirms_nothing() -> None:
    async with opened(REQUEST) as pilot:
        await pilot.press("tab", "3", "enter", *"disk", "enter", "enter", "enter")
        await pilot.pause()
        assert ENDED == []
        assert focused(pilot) == "reason"


async def test_what_is_typed_on_cancel_goes_into_the_field_and_closes_nothing() -> None:
    async with opened(REQUEST) as pilot:
        await pilot.press("3", "enter", *"disk", "space", *"lost")
        await pilot.pause()
        assert ENDED == []
        assert "disk lost" in text_of(pilot.app)
        await pilot.press("tab", "enter")
        await pilot.pause()
        assert [ConfirmAnswer("disk lost")] == ENDED


async def test_a_space_is_no_cancel() -> None:
    async with opened(PLAIN) as pilot:
        await pilot.press("space", "x", "space")
        await pilot.pause()
        assert ENDED == []
        await pilot.press("enter")
        await pilot.pause()
        assert ENDED == [None]


@pytest.mark.parametrize("name", [theme.PLAIN, theme.DARK])
async def test_a_button_that_cannot_be_pressed_yet_can_be_read_and_the_focus_is_seen(name: str) -> None:
    async with opened(REQUEST, theme_name=name) as pilot:
        assert "[ Elect 5 leaders ]" in text_of(pilot.app)
        assert pilot.app.screen.query_one("#confirm").size.height == 1
        strip = pilot.app.screen.query_one("#cancel").render_line(0)
        assert any(segment.style is not None and segment.style.reverse for segment in strip)


async def test_escape_leaves() -> None:
    async with opened(REQUEST) as pilot:
        await pilot.press("tab", "3", "escape")
        await pilot.pause()
        assert ENDED == [None]


async def test_the_mouse_confirms_with_a_single_click_only() -> None:
    async with opened(PLAIN) as pilot:
        await pilot.click("#confirm")
        await pilot.pause()
        assert [ConfirmAnswer("")] == ENDED
    async with opened(REQUEST) as pilot:
        await pilot.click("#confirm")
        await pilot.pause()
        assert ENDED == []


async def test_a_label_with_brackets_is_text() -> None:
    async with opened(replace(PLAIN, confirm_label="Elect [bold]x[/]", title="[red]t")) as pilot:
        assert "Elect [bold]x[/]" in text_of(pilot.app)
        assert "[red]t" in text_of(pilot.app)


async def test_a_key_goes_through_the_options_and_the_first_one_is_the_default() -> None:
    options = tuple(ConfirmOption(f"way {n}", f"What way {n} means.") for n in range(3))
    async with opened(replace(PLAIN, options=options)) as pilot:
        assert "What way 0 means. Ctrl+R: way 1" in text_of(pilot.app)
        await pilot.press("ctrl+r", "ctrl+r")
        assert "What way 2 means. Ctrl+R: way 0" in text_of(pilot.app)
        await pilot.press("shift+tab", "enter")
    assert [ConfirmAnswer("", 2)] == ENDED


def burst(pilot: Pilot[None], *keys: str) -> None:
    """Keys that come at once, as from a quick hand over a slow line: nothing is handled between two of them."""
    for key in keys:
        pilot.app.post_message(Key("space" if key == " " else key, key if len(key) == 1 else None))


def typed(pilot: Pilot[None], field: str) -> str:
    return pilot.app.screen.query_one(f"#{field}", Input).value


NAMED = replace(REQUEST, expected="payments")


async def test_a_whole_answer_in_one_burst_confirms_what_was_typed() -> None:
    """The button may be pressed only once both fields are filled, and Enter comes before either has drawn it."""
    async with opened(NAMED) as pilot:
        burst(pilot, *"payments", "tab", *"rack c is gone", "tab", "enter")
        await pilot.pause()
        assert [ConfirmAnswer("rack c is gone")] == ENDED


async def test_what_is_typed_faster_than_the_focus_moves_is_not_lost() -> None:
    async with opened(NAMED) as pilot:
        burst(pilot, *"payments")
        await pilot.pause()
        assert typed(pilot, "expected") == "payments"


async def test_keys_that_correct_a_field_stand_in_their_place_within_a_burst() -> None:
    async with opened(NAMED) as pilot:
        burst(pilot, *"paymenz", "backspace", *"ts", "home", "delete", "p", "enter", *"gone")
        await pilot.pause()
        assert (typed(pilot, "expected"), typed(pilot, "reason")) == ("payments", "gone")


async def test_what_is_pasted_goes_into_the_field_that_has_the_focus_by_then() -> None:
    async with opened(NAMED) as pilot:
        pilot.app.post_message(Paste("payments"))
        burst(pilot, "tab")
        pilot.app.post_message(Paste("rack c\nis gone"))
        burst(pilot, "tab", "enter")
        await pilot.pause()
        assert [ConfirmAnswer("rack c")] == ENDED


async def test_what_is_typed_right_after_tab_goes_into_the_next_field() -> None:
    """All keys are there before the first field has handled its Tab."""
    async with opened(NAMED) as pilot:
        await pilot.press("shift+tab")
        burst(pilot, "shift+tab", *"payments", "tab", *"gone")
        await pilot.pause()
        assert (typed(pilot, "expected"), typed(pilot, "reason")) == ("payments", "gone")
