"""An unarmed console sends nothing, whatever key is pressed and whatever an action forgets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from backends.base.protocol import Backend
from backends.base.read_only import READ_ONLY
from console import backends
from console.app.base.key_desk import KeyDesk
from console.change.access import Access
from console.change.registry import KEYS
from console.jobs.elect import applier
from console.target import Target
from tests.console.robot import Robot, console, records
from tests.unit.recording_backend import (
    BACKEND_CHANGES,
    MEMBERSHIP_CHANGES,
    Noting,
    calls_everything,
    noting,
)
from widgets.dialogs.confirmation import Confirmation

LEAVES = ("quit",)
ARMS = ("arm",)


@pytest.fixture
def made() -> list[Noting]:
    """The clusters that were opened."""
    return []


@pytest.fixture
def make(made: list[Noting]) -> Callable[[Target, Callable[[str], None]], Any]:
    def noted(target: Target, say: Callable[[str], None]) -> Any:
        made.append(noting(backends.backend(target, say)))
        return made[-1]

    return noted


async def back_at_the_panes(robot: Robot) -> None:
    """With nothing under way: what a key began may open its page later, on a busy machine."""
    while True:
        await robot.until(
            lambda: robot.app.screen is not robot.desk or not robot.desk.busy, "a page or the end"
        )
        shown = robot.app.screen
        if shown is robot.desk:
            return
        await robot.press("escape")
        await robot.until(lambda shown=shown: robot.app.screen is not shown, "a screen less")  # type: ignore[misc]  # as in loops


async def test_no_key_of_an_unarmed_console_sends_a_change(made: list[Noting], make: Any) -> None:
    async with console("last-replica-standing", make=make) as robot:
        await robot.chooses(1)
        for action in KEYS:
            if action.name in (*LEAVES, *ARMS):
                continue
            await robot.opens(action.panes[0])
            await robot.press(action.key)
            await robot.pilot.pause()
            if action.changes and robot.app.screen is not robot.desk:
                await robot.press("enter")  # the wizard begins, if it may
            await back_at_the_panes(robot)
    assert [one.sent for one in made] == [[] for _ in made]


async def test_a_console_that_is_not_armed_shows_what_would_be_sent_and_takes_no_answer(
    made: list[Noting], make: Any, home: Path
) -> None:
    async with console("last-replica-standing", make=make) as robot:
        await robot.plans(1)
        await robot.press("X")
        await robot.asked(Confirmation)
        await robot.sees(
            "payments-0", "READ-ONLY, this is only shown: Esc, then A arms the console", "[ Close ]"
        )
        confirmation = robot.app.screen
        assert not confirmation.query(Input) and confirmation.query_one("#confirm").disabled
        await robot.press("tab", "enter")
        await robot.until(lambda: robot.app.screen is robot.desk, "the panes again")
        await robot.hears("only shown: nothing was sent")
    assert made[0].sent == [] and not records(home)


async def test_a_console_that_can_never_be_armed_shows_a_heal(home: Path) -> None:
    async with console("broker-gone-for-good", size=(100, 40), read_only=True) as robot:
        await robot.opens("8")
        await robot.puts_the_cursor_on(3)
        await robot.press("N")
        await robot.asked(Confirmation)
        await robot.sees("New replicas for 6 partitions in place of broker 3?", "started with --read-only")
        await robot.press("escape")
        await robot.hears("only shown: nothing was sent")
    assert not records(home)


async def test_a_job_that_only_reads_cannot_send_a_change_if_it_tries_armed_or_not(
    made: list[Noting], make: Any
) -> None:
    async with console("last-replica-standing", make=make) as robot:
        everything = [f"{name}: {READ_ONLY}" for name in (*BACKEND_CHANGES, *MEMBERSHIP_CHANGES)]
        assert await robot.session.run(calls_everything) == everything
        await robot.arms()
        assert await robot.session.run(calls_everything) == everything
    assert made[0].sent == []


async def test_an_action_that_forgets_to_look_is_handed_no_cluster_to_change(
    made: list[Noting], make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key's own look, and that after the question, are taken away."""
    monkeypatch.setattr(applier, "refuse_changed", lambda *_given: None)
    monkeypatch.setattr(KeyDesk, "confirm", lambda desk, request: desk.ask(Confirmation(request)))
    async with console("last-replica-standing", make=make) as robot:
        await robot.plans(1)
        robot.desk._keys._handlers()["apply"]()
        await robot.asked(Confirmation)
        await robot.confirms("payments", "unarmed")
        await robot.idle()
        await robot.hears("the console is read-only")
    assert made[0].sent == []


async def test_what_lapses_while_a_change_is_prepared_is_not_sent(made: list[Noting], make: Any) -> None:
    async with console("last-replica-standing", make=make) as robot:
        await robot.arms()
        told: list[str] = []

        async def changes(access: Access[Backend]) -> None:
            access.refuse()
            robot.session.safety = robot.session.safety.disarm()
            try:
                access.changing()
            except Exception as error:
                told.append(str(error))

        with robot.desk.tasks.sending() as halt:
            await robot.session.change(changes, halt)
        assert "the console is read-only" in told[0]
    assert made[0].sent == []
