"""Whatever brokers call things, a screen shows text: nothing moves the cursor, and nothing is taken for markup."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.base.protocol import Backend
from console.target import Target
from recovery.model import TopicPartition
from tests.console.robot import console, screen_text
from tests.hostile_text import HOSTILE, drives_a_terminal, told_by

SHOWN = [text for text in HOSTILE if drives_a_terminal(text) or any(sign in text for sign in "\n[<")]
"""What can do something to a screen; each takes a console of its own."""


@pytest.mark.parametrize("text", SHOWN, ids=lambda text: ascii(text)[1:21])
async def test_no_pane_passes_on_what_drives_a_terminal(text: str, tmp_path: Path) -> None:
    def make(_target: Target, _say: object) -> Backend:
        return told_by(text)

    async with console("last-replica-standing", size=(120, 40), make=make) as robot:
        await robot.puts_the_cursor_on(TopicPartition(text, 0))
        for pane in ("1", "2", "3", "4", "5", "6"):
            await robot.opens(pane)
            shown = robot.screen
            driving = [line for line in shown.split("\n") if drives_a_terminal(line)]
            assert not driving, f"pane {pane}: {driving}"
            assert len(shown.split("\n")) == 40
        await robot.opens("1")
        await robot.press("c")
        await robot.idle()
        assert not drives_a_terminal(robot.screen), "the question, or why there is none"
        assert "<script>" not in robot.app.export_screenshot()
        assert screen_text(robot.app.export_screenshot())
