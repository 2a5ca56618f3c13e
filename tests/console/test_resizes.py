"""After every change of the terminal's size the screen is the one of that size, whatever the size was before."""

from __future__ import annotations

import re
from functools import partial
from itertools import permutations

import pytest

from tests.console.robot import Robot, console

SIZES = [(80, 24), (100, 30), (119, 30), (120, 30), (121, 40), (200, 50)]


def _without_age(screen: str) -> str:
    """Blanks are left out too: a column is as wide as the longest time in it; and so is the title, which says how
    long a refresh takes.
    """
    screen = screen[max(screen.find("broker 2 down"), 0) :]
    ages = r"picture \d+ \w+ old|asking …|every 10 s|<?\d+ (s|min|h)\b|[▁▂▃▄▅▆▇█ ]"
    return re.sub(ages, "", screen)


def _shows(robot: Robot, screen: str) -> bool:
    return _without_age(robot.screen) == screen


async def _still(robot: Robot) -> None:
    """Waits until the screen is the same at several looks: nothing of the size before is left to be drawn."""
    looks: list[str] = []
    while len(looks) < 4 or len(set(looks[-4:])) > 1:
        await robot.settled()
        looks.append(_without_age(robot.screen))


@pytest.mark.long
async def test_the_red_line_stands_after_every_pair_of_sizes() -> None:
    """It vanished when a terminal was made wider, and stayed away: its scroll bar had taken the width that its text
    needed to need none.
    """
    drawn: dict[tuple[int, int], str] = {}
    # Time stands still: neither does the picture grow old nor is a refresh slow; what says so has a line more.
    async with console("zone-power-loss", size=SIZES[0], clock=lambda: 1_000_000.0) as robot:
        await robot.sees("if 1: unknown")
        for before, after in permutations(SIZES, 2):
            await robot.pilot.resize_terminal(*before)
            await robot.sees("broker 2 down · 8 offline")
            await robot.pilot.resize_terminal(*after)
            await robot.sees("broker 2 down · 8 offline")
            await robot.sees("8 offline, 0 more under min ISR")
            if after not in drawn:
                await _still(robot)
            first = drawn.setdefault(after, _without_age(robot.screen))
            await robot.until(
                partial(_shows, robot, first), f"{after} after {before} as it was first\n{first}"
            )
