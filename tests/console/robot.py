"""An operator at the console, in verbs. Every verb waits for what it leads to, and never for a time."""

from __future__ import annotations

import asyncio
import html
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from backends.base.protocol import Backend
from console.app.app import Console, Options
from console.app.base.question_dialogs import ChoiceQuestion
from console.app.main_screen.main_screen import MainScreen
from console.app.session.session import Session
from console.app.session.view import Link
from console.jobs.elect.candidate_picker import CandidatePicker
from console.jobs.elect.planner import COMPARE
from console.output.screen import Screen
from console.paths import state_dir
from console.program import Program
from console.signals import Supervisor
from console.target import Target, resolve
from recovery.model import TopicPartition
from recovery.plan.values import Plan
from tests.unit.widgets.harness import text_of
from widgets.bars.message_bars import MessageBar
from widgets.dialogs.confirmation import Confirmation
from widgets.table import RowTable

PATIENCE = 40.0
"""Seconds after which something that should come is missing: a machine may be slow, a test may not hang."""

_TEXT = re.compile(r'<text class="[^"]*" x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>', re.DOTALL)


def screen_text(svg: str) -> str:
    """The characters of a screenshot, line by line, as a person reads them."""
    rows: dict[float, list[tuple[float, str]]] = {}
    for x, y, text in _TEXT.findall(svg):
        if text.strip():
            rows.setdefault(float(y), []).append((float(x), html.unescape(text).replace("\xa0", " ")))
    lines = []
    for y in sorted(rows):
        line = ""
        for x, text in sorted(rows[y]):
            line = line.ljust(round(x / 12.2)) + text
        lines.append(line)
    return "\n".join(lines)


class Robot:
    """Somebody at the keyboard."""

    def __init__(self, app: Console, pilot: Pilot[int]) -> None:
        self.app = app
        self.pilot = pilot

    # What is seen

    @property
    def desk(self) -> MainScreen:
        desk = self.app.desk
        assert desk is not None, "no cluster is open"
        return desk

    @property
    def session(self) -> Session:
        return self.desk.session

    @property
    def screen(self) -> str:
        """Everything that is on the screen."""
        return text_of(self.app)

    @property
    def said(self) -> str:
        return self.desk.query_one(MessageBar).text

    async def until(self, condition: Callable[[], object], what: str) -> None:
        """Waits until it is so; a condition that never comes fails with what is on the screen."""
        deadline = time.monotonic() + PATIENCE
        if condition():
            return
        # The pilot asks every widget whether it is ready, and a loop of that would use all of the processor.
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"never came: {what}\n{self.screen}")
            await asyncio.sleep(0.02)
        await self.pilot.pause(0)

    async def until_slowly(self, asked: Callable[[], Awaitable[int]], what: str) -> None:
        """Waits until a question to a real cluster is answered by a broker's id."""
        deadline = time.monotonic() + 3 * PATIENCE
        while await asked() < 0:
            if time.monotonic() > deadline:
                raise AssertionError(f"never came: {what}\n{self.screen}")
            await self.pilot.pause(0.2)

    async def sees(self, *texts: str) -> None:
        """Waits until the screen holds each of the texts."""

        def all_there() -> bool:
            screen = self.app.screen
            if not (screen.size.height == screen._compositor.size.height == self.app.size.height):
                return (
                    False  # it was opened, or its terminal made larger, a moment ago, and is not laid out yet
                )
            shown = self.screen
            return all(text in shown for text in texts)

        await self.until(all_there, f"{texts} on the screen")

    async def hears(self, text: str) -> None:
        """Waits until the line at the bottom says it."""
        await self.until(lambda: text in self.said, f"{text!r} said; last was {self.said!r}")

    async def looked(self) -> None:
        """Waits until a whole picture is there and drawn."""
        await self.until(lambda: self.session.view.at is not None, "a whole picture")
        await self.settled()

    async def settled(self) -> None:
        await self.desk.table.wait_settled()
        await self.pilot.pause()

    async def looks_again(self) -> None:
        """Asks for a look, and waits for the picture that it brings."""
        before = self.session.poller.state.schedule.ended
        await self.press("r")
        await self.until(lambda: self.session.poller.state.schedule.ended != before, "another look")
        await self.settled()

    # What is done

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
        await self.pilot.pause()

    def hits(self, *keys: str) -> None:
        """Keys in one burst, as they come over a slow line: none waits for what the one before led to."""
        for key in keys:
            character = " " if key == "space" else key if len(key) == 1 else None
            self.app.post_message(Key(key, character))

    async def types(self, text: str) -> None:
        await self.pilot.press(*("space" if char == " " else char for char in text))

    async def opens(self, pane: str) -> None:
        await self.press(pane)
        await self.until(lambda: self.desk.pane == pane, f"pane {pane}")
        await self.settled()

    async def puts_the_cursor_on(self, key: object) -> None:
        await self.until(lambda: self.desk.table.move_to(key), f"a row {key}")
        await self.until(lambda: self.desk.table.cursor_key == key, f"the cursor on {key}")

    async def filters(self, text: str) -> None:
        await self.press("slash")
        await self.types(text)
        await self.press("enter")
        await self.settled()

    async def arms(self) -> None:
        await self.press("A")
        await self.until(lambda: self.session.safety.armed, "an armed console")

    async def chooses(self, broker: int | None = None) -> None:
        """Puts the row under the cursor into the plan; ``broker`` where it is asked whose log to keep."""
        before = self.session.draft.plan
        await self.press("c")
        if broker is not None and not await self._elected_at_once(before):
            await self._keeps_the_log_of(broker)
        await self.until(lambda: self.session.draft.plan is not before, "a row in the plan")
        await self.idle()

    async def _keeps_the_log_of(self, broker: int) -> None:
        """By hand: where the line of that log asks for a reason, the comparison of the logs does not."""
        await self.asked(ChoiceQuestion)
        offered = [option.id for option in self.app.screen.query_one(OptionList).options]
        if str(broker) in offered:
            await self.takes(str(broker))
            return
        await self.takes(COMPARE)
        await self.picks(broker)

    async def _elected_at_once(self, before: Plan | None) -> bool:
        """Whether the strategy chose by itself, because the verdict of the best candidate is none."""

        def asked() -> bool:
            return isinstance(self.app.screen, ChoiceQuestion)

        await self.until(lambda: asked() or self.session.draft.plan is not before, "a plan or a question")
        return not asked()

    async def plans(self, broker: int | None = None) -> None:
        """Chooses, and looks at the plan."""
        await self.chooses(broker)
        await self.opens("6")

    async def saves(self, name: str) -> None:
        """The plan, to a new file."""
        await self.press("w")
        await self.answers(name)
        await self.hears("the plan is in")

    async def takes(self, answer: str) -> None:
        """The answer of that name, of those that are offered."""
        await self.asked(ChoiceQuestion)
        options = self.app.screen.query_one(OptionList)
        options.highlighted = options.get_option_index(answer)
        await self.press("enter")

    async def picks(self, broker: int) -> None:
        """In the candidate picker."""
        await self.asked(CandidatePicker)
        picker = self.app.screen
        assert isinstance(picker, CandidatePicker)
        await self.until(lambda: picker.query_one(RowTable).move_to(broker), f"candidate {broker}")
        await self.press("enter")

    async def picks_in_vain(self, broker: int) -> None:
        """A candidate that cannot be elected: the picker stays, and says why."""
        picker = self.app.screen
        assert isinstance(picker, CandidatePicker)
        await self.until(lambda: picker.query_one(RowTable).move_to(broker), f"candidate {broker}")
        await self.press("enter")
        await self.sees("CANNOT")
        assert self.app.screen is picker

    async def asked(self, screen: type) -> None:
        await self.until(lambda: isinstance(self.app.screen, screen), f"a {screen.__name__}")
        await self.pilot.pause()

    async def answers(self, text: str) -> None:
        """The line of text that is asked for."""
        await self.until(lambda: bool(self.app.screen.query(Input)), "a question")
        self.app.screen.query_one(Input).value = text
        await self.press("enter")

    async def asks_to_apply(self) -> Confirmation:
        await self.press("X")
        await self.asked(Confirmation)
        confirmation = self.app.screen
        assert isinstance(confirmation, Confirmation)
        return confirmation

    async def confirms(self, typed: str = "", reason: str = "") -> None:
        """Fills the confirmation by the keyboard, presses its button, and is back at the desk."""
        await self.fills(typed, reason)
        await self.until(lambda: self.app.screen is self.desk, "the desk again")

    async def fills(self, typed: str = "", reason: str = "") -> None:
        """Fills the confirmation by the keyboard, and presses its button."""
        confirmation = self.app.screen
        assert isinstance(confirmation, Confirmation)
        for field, text in (("#expected", typed), ("#reason", reason)):
            if confirmation.query(field):
                confirmation.query_one(field, Input).value = text
        await self.reads_the_warnings()
        button = confirmation.query_one("#confirm")
        await self.until(lambda: not button.disabled, f"a complete confirmation: {confirmation.missing}")
        button.focus()
        await self.until(lambda: button.has_focus, "the button in focus")
        await self.press("enter")

    async def reads_the_warnings(self) -> None:
        """Page by page, as far as the confirmation asks for it."""
        confirmation = self.app.screen
        while isinstance(confirmation, Confirmation) and "read the warnings" in confirmation.missing:
            await self.press("pagedown")

    async def idle(self) -> None:
        """Waits until nothing is under way."""
        await self.until(lambda: not self.desk.busy, "the end of the work")

    async def applies(self, typed: str = "", reason: str = "") -> None:
        await self.asks_to_apply()
        await self.confirms(typed, reason)
        await self.idle()

    def leaders(self) -> dict[TopicPartition, int]:
        """Who leads what was planned, as the last picture has it."""
        partitions = self.session.view.partitions
        assert partitions is not None
        planned = self.session.draft.partitions
        return {state.tp: state.leader for state in partitions.states if state.tp in planned}

    async def link_is(self, link: Link) -> None:
        await self.until(lambda: self.session.poller.state.link is link, f"the link {link}")


def program(argv: Sequence[str] = ("ktriage",)) -> Program:
    return Program("ktriage", tuple(argv), Screen(time.monotonic), Supervisor(lambda _signum: ""))


@asynccontextmanager
async def console(
    target: Target | str | None,
    *,
    size: tuple[int, int] = (80, 24),
    make: Callable[[Target, Callable[[str], None]], Backend] | None = None,
    looked: bool = True,
    crashes: bool = False,
    **options: object,
) -> AsyncIterator[Robot]:
    """A console on a target, or on the scenario of that name, with somebody at it. Unless ``crashes``, it reports
    no defect of its own.
    """
    where = resolve(None, None, target, None) if isinstance(target, str) else target
    more = dict(options, beats=options.get("beats", False), hush=options.get("hush", 0.0))
    chosen = Options(**more) if make is None else Options(**more, make=make)  # type: ignore[arg-type]  # by name
    app = Console(program(), where, chosen)
    async with app.run_test(size=size) as pilot:
        robot = Robot(app, pilot)
        try:
            if where is not None:
                await robot.until(lambda: app.desk is not None and app.screen is app.desk, "the desk")
                if looked:
                    await robot.looked()
            yield robot
        finally:
            await app.close_session()
    assert crashes or not reports(), "a defect was reported: " + "".join(r.read_text() for r in reports())


def reports() -> list[Path]:
    """The crash files."""
    return sorted((state_dir() / "crashes").glob("*"))


def records(state: Path) -> list[list[dict[str, Any]]]:
    """The lines of each journal file under a state directory, oldest run first."""
    files = sorted(state.rglob("*.jsonl"))
    return [[json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] for file in files]


async def soon(condition: Callable[[], object]) -> None:
    """Waits for something that is not on a screen."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110  # any condition
            await asyncio.sleep(0.01)
