"""Whatever brokers call things, a screen shows text: nothing moves the cursor, and nothing is taken for markup."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from backends.base.protocol import Backend
from backends.metadata_log.directory import DirectoryReading, read_directory
from backends.simulator.membership import SimulatedMembership
from console.target import Target
from recovery.metadata_log.history import MetadataHistory, fold
from recovery.model import TopicPartition
from tests.console.robot import console, screen_text
from tests.hostile_metadata_log import write_hostile_log
from tests.hostile_text import HOSTILE, drives_a_terminal, hostile_backend

SHOWN = [text for text in HOSTILE if drives_a_terminal(text) or any(sign in text for sign in "\n[<")]
"""What can do something to a screen; each takes a console of its own."""


@pytest.mark.parametrize("text", SHOWN, ids=lambda text: ascii(text)[1:21])
async def test_no_pane_passes_on_what_drives_a_terminal(text: str, tmp_path: Path) -> None:
    def make(_target: Target, _say: object) -> Backend:
        return hostile_backend(text)

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


class HostileLog:
    """A metadata log of hostile names, read to its end."""

    def __init__(self, directory: Path) -> None:
        self.history: MetadataHistory = fold(read_directory(DirectoryReading(directory)))
        self.snapshot_offset = 0
        self._unread = len(self.history)

    async def probe(self) -> None:
        """It can be read."""

    async def read(self, *, wait: float = 0.0, progress: object = None) -> int:  # noqa: ARG002
        await asyncio.sleep(wait)
        new, self._unread = self._unread, 0
        return new


@pytest.mark.parametrize("text", SHOWN, ids=lambda text: ascii(text)[1:21])
async def test_the_timeline_passes_on_nothing_that_drives_a_terminal(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = HostileLog(write_hostile_log(tmp_path, text))

    async def hostile(_: SimulatedMembership) -> HostileLog:
        return log

    monkeypatch.setattr(SimulatedMembership, "metadata_log", hostile)
    async with console("last-replica-standing", size=(120, 40)) as robot:
        await robot.opens("7")
        await robot.until(lambda: len(robot.desk.parts.timeline.view.rows) > 10, "the events")
        await robot.idle()
        driving = [line for line in robot.screen.split("\n") if drives_a_terminal(line)]
        assert not driving and len(robot.screen.split("\n")) == 40
        assert "leader changed" in robot.screen
