"""The longest time for which the screen freezes while a long table is in use.

``python -m benchmarks.console.table_speed [ROWS]`` prints Markdown. A stall is the time from one turn of the event
loop to the next while rows are refilled, sorted, filtered, grouped, marked and scrolled; at most 0.3 s is allowed.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from time import perf_counter, process_time
from typing import NamedTuple

from textual.app import App, ComposeResult
from textual.pilot import Pilot

from console.reading.partition_report import PartitionsView
from console.reading.partition_row import PartitionRow, bare_row
from console.reading.partitions_pane import PartitionsPane
from recovery.model import PartitionState
from widgets import theme
from widgets.table import RowFilter, RowTable

ROWS = 200_000
LIMIT_SECONDS = 0.3
TOPIC_SIZE = 100
TURN_SECONDS = 0.005
"""Not less: the pilot waits up to a second until the process uses less than 5 % of a core."""


class Stall(NamedTuple):
    """An action, the seconds until its result was on the screen, and the longest stall in seconds.

    ``computing`` is the most CPU time of this process between two turns; the rest of a stall is time in which
    other processes had the CPU.
    """

    what: str
    seconds: float
    longest: float
    computing: float


class _Bench(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.animation_level = "none"

    def compose(self) -> ComposeResult:
        yield PartitionsPane()

    def on_mount(self) -> None:
        theme.install(self, no_color=False)


def rows_of(rows: int, epoch: int = 1) -> tuple[PartitionRow, ...]:
    """``rows`` partitions; one in a hundred is offline, one in fifty has a replica out of sync."""
    return tuple(_row(number, epoch) for number in range(rows))


def _row(number: int, epoch: int) -> PartitionRow:
    replicas = tuple((number + step) % 12 + 1 for step in range(3))
    isr = () if number % 100 == 0 else replicas[:2] if number % 50 == 0 else replicas
    leader = isr[0] if isr else -1
    topic, partition = f"topic-{number // TOPIC_SIZE:05}", number % TOPIC_SIZE
    state = PartitionState(topic, partition, "", leader, epoch, replicas, isr, (), (), ())
    return bare_row(state, min_isr=2)


async def measure(rows: int) -> list[Stall]:
    """Every action, one after another, on one table."""
    first, second = rows_of(rows), rows_of(rows, epoch=2)
    app = _Bench()
    async with app.run_test(size=(120, 40)) as pilot:
        pane = app.query_one(PartitionsPane)
        return [stall async for stall in _stalls(pilot, pane, first, second)]


async def _stalls(
    pilot: Pilot[None],
    pane: PartitionsPane,
    first: tuple[PartitionRow, ...],
    second: tuple[PartitionRow, ...],
) -> AsyncIterator[Stall]:
    table = pane.table
    table.focus()

    async def fill(rows: tuple[PartitionRow, ...]) -> None:
        pane.update(PartitionsView(None, rows, title="all partitions"))

    steps: tuple[tuple[str, Callable[[], Awaitable[None] | None]], ...] = (
        ("first filling", lambda: fill(first)),
        ("sort by name", lambda: table.sort_by("partition")),
        ("sort by state, from high to low", lambda: table.sort_by("state", reverse=True)),
        ("refill while sorted", lambda: fill(second)),
        ("filter by text", lambda: table.filter_by(RowFilter("topic-017"))),
        ("filter by a regular expression", lambda: table.filter_by(RowFilter("9.*-[0-4]$", regex=True))),
        ("no filter", lambda: table.filter_by(None)),
        ("group by topic", lambda: table.group_by("topic")),
        ("fold a group", table.toggle_group),
        ("no groups", lambda: table.group_by(None)),
        ("mark everything", table.mark_all_shown),
        ("refill while everything is marked", lambda: fill(first)),
        ("no marks", table.clear_marks),
        ("to the end and back, 40 pages", lambda: _scroll(pilot)),
    )
    for what, do in steps:
        yield await _measured(what, do, table, pilot)


async def _scroll(pilot: Pilot[None]) -> None:
    await pilot.press("end", *["pageup"] * 20, "home", *["pagedown"] * 20)


async def _measured(
    what: str, do: Callable[[], Awaitable[None] | None], table: RowTable[PartitionRow], pilot: Pilot[None]
) -> Stall:
    start = perf_counter()
    async with _stall_meter() as stalls:
        doing = do()
        if doing is not None:
            await doing
        await table.wait_settled()
        await pilot.pause()
    return Stall(what, perf_counter() - start, *stalls())


@asynccontextmanager
async def _stall_meter() -> AsyncIterator[Callable[[], tuple[float, float]]]:
    """Measures the time between turns of the event loop, and the CPU time in it."""
    longest = computing = 0.0

    async def turn() -> None:
        nonlocal longest, computing
        last, spent = perf_counter(), process_time()
        while True:
            await asyncio.sleep(TURN_SECONDS)
            now, used = perf_counter(), process_time()
            longest, computing = max(longest, now - last), max(computing, used - spent)
            last, spent = now, used

    watching = asyncio.create_task(turn())
    try:
        yield lambda: (longest, computing)
    finally:
        await asyncio.sleep(TURN_SECONDS)
        watching.cancel()


def report(stalls: list[Stall], rows: int) -> Iterator[str]:
    """A Markdown table, and the verdict."""
    yield f"{rows:,} rows at 120 by 40:"
    yield ""
    yield "| Action | Until it is shown | Longest stall | CPU time in one stall |"
    yield "|---|---|---|---|"
    for stall in stalls:
        yield f"| {stall.what} | {stall.seconds:.2f} s | {stall.longest:.3f} s | {stall.computing:.3f} s |"
    worst = max(stalls, key=lambda stall: stall.longest)
    verdict = "met" if worst.longest <= LIMIT_SECONDS else "MISSED"
    yield ""
    yield f"At most {LIMIT_SECONDS} s: {verdict} (longest {worst.longest:.3f} s, {worst.what})."


def lines(rows: int = ROWS) -> Iterator[str]:
    """Measures and reports."""
    gc.set_threshold(100_000, 50, 1_000)  # as in the console
    yield from report(asyncio.run(measure(rows)), rows)


def main() -> int:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    gc.set_threshold(100_000, 50, 1_000)  # as in the console
    stalls = asyncio.run(measure(rows))
    print("\n".join(report(stalls, rows)))
    return 0 if all(stall.longest <= LIMIT_SECONDS for stall in stalls) else 1


if __name__ == "__main__":
    sys.exit(main())
