"""``python -m testbed.screenshots.panes [DIRECTORY]``: every pane as SVG, and as PNG where resvg-py is installed.

Clock, seed and cursor are fixed, so the same code draws the same picture; a test compares them.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from textual.pilot import Pilot
from textual.widgets import Input

from backends.base.answers import ClusterInfo
from backends.base.errors import Unreachable
from backends.simulator.adapter import SimulatorBackend
from console.app.app import Console, Options
from console.change.registry import TIMELINE
from console.output.screen import Screen
from console.program import Program
from console.provenance import plan_header
from console.rescue_files.rescue_directory import Room, room_for
from console.signals import Supervisor
from console.simulator_backend import scenario
from console.target import Target, resolve
from recovery.plan.values import Header
from recovery.ranking import Ranking
from recovery.rescue_branches import RescueBranch
from recovery.strategy import Strategy
from widgets.bars.message_bars import MessageBar

NARROW, WIDE = (80, 24), (140, 40)
STEP = 0.2
"""Seconds that the clock advances with each key; too few to change a displayed age."""
LIMIT = 120.0
MOMENT = 1_767_225_600.0


class Screenshot(NamedTuple):
    """A scenario on a terminal of ``size``, after ``keys``. ``later``: seconds that the clock advances before the
    first key. ``lost``: the cluster answers only the first read.
    """

    name: str
    scenario: str
    size: tuple[int, int]
    keys: tuple[str, ...] = ()
    lost: bool = False
    read_only: bool = False
    later: float = 0.0


_CHOOSE = ("enter", "c", "down", "enter")
_STORY = (*_CHOOSE, "enter", "6")
PICTURES = (
    *(
        Screenshot(f"{name}-{width}", where, size, keys)
        for name, where, keys in (
            ("1-offline-partitions", "zone-power-loss", ()),
            ("2-replica-log-info", "stale-long-tail", ("enter",)),
            ("3-elr", "four-brokers-min-isr-3", ("3",)),
            ("4-quorum", "last-replica-standing", ("4",)),
            ("5-log-dirs", "disk-failure", ("5",)),
            ("6-plan", "stale-long-tail", _STORY),
            ("7-timeline", "zone-power-loss", ("7",)),
            ("8-brokers", "zone-power-loss", ("8",)),
        )
        for width, size in (("narrow", NARROW), ("wide", WIDE))
    ),
    Screenshot("confirmation", "last-replica-standing", (80, 30), ("enter", "c", "6", "A", "X")),
    Screenshot("advice", "stale-long-tail", NARROW, ("enter", "c")),
    Screenshot("candidates", "stale-long-tail", NARROW, _CHOOSE),
    Screenshot("strategies", "offline-2000", NARROW, ("T",)),
    Screenshot("lost-quorum", "two-of-three-voters-lost", NARROW, ("4",)),
    Screenshot("lost-quorum-guide", "two-of-three-voters-lost", NARROW, ("4", "M")),
    Screenshot("glossary", "last-replica-standing", NARROW, ("W",)),
    Screenshot("armed", "last-replica-standing", NARROW, ("A",)),
    Screenshot("read-only", "last-replica-standing", NARROW, read_only=True),
    Screenshot("disconnected", "last-replica-standing", NARROW, ("r",), lost=True, later=40.0),
    Screenshot("help", "last-replica-standing", WIDE, ("question_mark",)),
)


class _LostCluster(SimulatorBackend):
    """A simulated cluster that does not answer after the first read."""

    reads = 0

    async def cluster(self) -> ClusterInfo:
        self.reads += 1
        if self.reads > 1:
            raise Unreachable("no broker of last-replica-standing answers the operator")
        return await super().cluster()


class _Clock:
    def __init__(self) -> None:
        self.now = MOMENT

    def __call__(self) -> float:
        return self.now


def _fixed_header(cluster_id: str, ranking: Ranking, strategy: Strategy) -> Header:
    """Every drawing has the same plan id and time, because a rescue directory is named after them."""
    made_at = datetime.fromtimestamp(MOMENT, UTC)
    return replace(plan_header(cluster_id, ranking, strategy), plan_id=str(uuid.UUID(int=1)), made_at=made_at)


def _fixed_room(path: Path, branches: Iterable[RescueBranch]) -> Room:
    """Every machine that draws has the same room on its disk."""
    return room_for(path, branches)._replace(free=20 << 30)


class Viewer:
    """Somebody who looks at a console whose clock advances with each key."""

    def __init__(self, app: Console, pilot: Pilot[int], clock: _Clock) -> None:
        self.app = app
        self._pilot = pilot
        self._clock = clock

    def wait(self, seconds: float) -> None:
        """Advances the clock."""
        self._clock.now += seconds

    async def press(self, *keys: str) -> None:
        """Presses one key after the other, each when the one before has led to what it leads to."""
        for key in keys:
            await self._pilot.press(key)
            self.wait(STEP)
            await _wait_idle(self.app, self._pilot)

    async def settled(self) -> str:
        """The screen as SVG, with nothing in it that still moves."""
        for field in self.app.screen.query(Input):
            field.cursor_blink = False
        if self.app.desk is not None:
            self.app.desk.draw_bars()  # as the next tick would, but ticks come in real time
        return await _settled(self.app, self._pilot)


@asynccontextmanager
async def opened(
    name: str, size: tuple[int, int], *, lost: bool = False, read_only: bool = False
) -> AsyncIterator[Viewer]:
    """The console on a scenario, after its first look. ``lost`` as in :class:`Screenshot`."""
    clock = _Clock()
    kind = _LostCluster if lost else SimulatorBackend

    def make(_target: Target, _say: object) -> SimulatorBackend:
        return kind(scenario(name))

    options = Options(read_only=read_only, beats=False, clock=clock, make=make)
    program = Program("ktriage", ("ktriage",), Screen(time.monotonic), Supervisor(lambda _signum: ""))
    app = Console(program, resolve(None, None, name, None), options)
    with ExitStack() as fixed:
        async with app.run_test(size=size) as pilot:
            fixed.enter_context(patch("console.app.session.session.plan_header", _fixed_header))
            fixed.enter_context(patch("console.jobs.rescue.rescue_outlook.room_for", _fixed_room))
            # A message stays until the next: real seconds are not those of the clock.
            fixed.enter_context(patch.object(MessageBar, "SECONDS", 1e6))
            await _wait_idle(app, pilot, first=True)
            yield Viewer(app, pilot, clock)
            fixed.close()
            await app.close_session()


async def draw(picture: Screenshot) -> str:
    """The picture as SVG."""
    async with opened(
        picture.scenario, picture.size, lost=picture.lost, read_only=picture.read_only
    ) as viewer:
        viewer.wait(picture.later)
        await viewer.press(*picture.keys)
        return await viewer.settled()


async def _settled(app: Console, pilot: Pilot[int]) -> str:
    """The screen, once it is drawn the same again: a scroll bar that comes folds texts anew in a later round."""
    before, now = "", app.export_screenshot(title="ktriage")
    async with asyncio.timeout(LIMIT):
        while now != before:
            await pilot.pause()
            before, now = now, app.export_screenshot(title="ktriage")
    return now


async def _wait_idle(app: Console, pilot: Pilot[int], *, first: bool = False) -> None:
    """Waits until no request, action or table update is running."""
    async with asyncio.timeout(LIMIT):
        # The pilot asks every widget whether it is ready, and a loop of that would use all of the processor.
        while not _is_idle(app, first=first):  # noqa: ASYNC110  # any condition
            await asyncio.sleep(0.01)
    desk = app.desk
    if desk is not None and app.screen is desk:
        await desk.table.wait_settled()
    await pilot.pause(0.05)


def _is_idle(app: Console, *, first: bool) -> bool:
    desk, session = app.desk, app.session
    if desk is None or session is None:
        return False
    drawn = session.view.at is not None
    timeline = desk.parts.timeline.view
    if desk.pane == TIMELINE and not timeline.source and not timeline.problem:
        return False
    waits_for_a_person = app.screen is not desk
    return drawn and session.poller.idle and (first or waits_for_a_person or not desk.busy)


def png(svg: str) -> bytes:
    """The picture as PNG; needs resvg-py, which ktriage itself does not need."""
    import resvg_py  # noqa: PLC0415  # only for pictures

    plain = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL).replace("Fira Code", "DejaVu Sans Mono")
    family = "DejaVu Sans Mono"
    drawn = resvg_py.svg_to_bytes(
        svg_string=plain, font_family=family, monospace_family=family, sans_serif_family=family
    )
    return bytes(drawn)


def write(directory: Path, names: Sequence[str] = ()) -> None:
    """Draws the named pictures, or all."""
    directory.mkdir(exist_ok=True)
    for picture in PICTURES:
        if names and picture.name not in names:
            continue
        svg = drawn(picture)
        (directory / f"{picture.name}.svg").write_text(svg, encoding="utf-8")
        try:
            (directory / f"{picture.name}.png").write_bytes(png(svg))
        except ImportError:
            print("no PNG: resvg-py is not installed", file=sys.stderr)
        print(directory / f"{picture.name}.svg", flush=True)


def drawn(picture: Screenshot) -> str:
    """As :func:`draw`, in its own event loop and state directory."""
    with tempfile.TemporaryDirectory() as state:
        before = os.environ.get("XDG_STATE_HOME")
        os.environ["XDG_STATE_HOME"] = state
        try:
            return asyncio.run(draw(picture))
        finally:
            if before is None:
                del os.environ["XDG_STATE_HOME"]
            else:
                os.environ["XDG_STATE_HOME"] = before


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "screenshots"), sys.argv[2:])
