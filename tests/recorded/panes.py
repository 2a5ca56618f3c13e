"""What the panes show of a scenario, as text, and in which tones."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from string import ascii_letters
from typing import Any
from unittest.mock import patch

from testbed.screenshots.panes import Viewer, opened
from tests.recorded.masks import masked

SIZES = ((80, 24), (160, 50))
_WALK = (
    ("1 offline partitions", ()),
    ("1 all partitions", ("O",)),
    ("2 replica log info", ("O", "2")),
    ("3 ELR", ("3",)),
    ("4 quorum", ("4",)),
    ("5 log dirs", ("5",)),
    ("5 log dirs, the first opened", ("enter",)),
    ("6 plan, empty", ("6",)),
    ("7 timeline", ("7",)),
    ("8 brokers", ("8",)),
    ("8 brokers, the second", ("down",)),
    ("proof", ("1", "P")),
    ("choose", ("escape", "1", "a", "c")),
    ("strategy", ("escape", "escape", "1", "T")),
    ("aggressive", ("down", "down", "enter", "a", "c")),
    ("6 plan", ("6",)),
    ("6 requests", ("R",)),
)


def recorded_panes(name: str, size: tuple[int, int]) -> str:
    """Every pane of the scenario on a terminal of that size; the tones of the narrow one too."""
    with tempfile.TemporaryDirectory() as state, patch.dict(os.environ, {"XDG_STATE_HOME": state}):
        return masked(asyncio.run(_walked(name, size)), Path(state), "")


async def _walked(name: str, size: tuple[int, int]) -> str:
    shown = []
    letters: dict[str, str] = {}
    async with opened(name, size) as viewer:
        for title, keys in _WALK:
            await viewer.press(*keys)
            await viewer.settled()
            strips = _strips(viewer)
            shown.append(f"== {title}, after {' '.join(keys) or 'the first look'}")
            shown.append("\n".join(strip.text.rstrip() for strip in strips).rstrip())
            if size == SIZES[0]:
                shown.append(f"-- tones\n{_tones(strips, letters)}")
    legend = "".join(f"{letter}: {style}\n" for style, letter in letters.items())
    return "\n".join([*shown, *(["-- letters of the tones", legend] if legend else [""])])


def _strips(viewer: Viewer) -> list[Any]:
    screen = viewer.app.screen
    return list(screen._compositor.render_strips(screen.size))  # no public way to read a screen


def _tones(strips: list[Any], letters: dict[str, str]) -> str:
    """A letter for each character's colours and weight; ``letters`` has those that were met before."""
    lines = []
    for strip in strips:
        line = ""
        for part in strip:
            for character in part.text:
                style = str(part.style)
                line += " " if character == " " else letters.setdefault(style, ascii_letters[len(letters)])
        lines.append(line.rstrip())
    return "\n".join(lines).rstrip()
