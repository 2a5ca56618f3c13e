"""Work that hangs is left behind: neither Esc nor the end of the console waits for it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from backends.live.client.daemon_thread import in_daemon_thread
from console.errors import InputError
from console.jobs.elect import sources
from recovery.plan.values import Plan
from tests.console.robot import console, soon


async def test_what_it_raises_and_returns_comes_back() -> None:
    assert await in_daemon_thread(lambda: 3, "test") == 3

    def refuses() -> None:
        raise InputError("no")

    with pytest.raises(InputError, match="no"):
        await in_daemon_thread(refuses, "test")


async def test_what_is_cancelled_is_left_behind_and_may_end_later() -> None:
    ends, ended = threading.Event(), threading.Event()

    def hangs() -> None:
        ends.wait()
        ended.set()

    waiting = asyncio.create_task(in_daemon_thread(hangs, "test"))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    ends.set()
    await soon(ended.is_set)


HANGS = """
import asyncio, threading
from backends.live.client.daemon_thread import in_daemon_thread

async def leaves():
    try:
        await asyncio.wait_for(in_daemon_thread(threading.Event().wait, "test"), 0.05)
    except TimeoutError:
        print("left")

asyncio.run(leaves())
"""


def test_a_read_that_never_comes_back_does_not_keep_the_process(pytestconfig: pytest.Config) -> None:
    run = subprocess.run(  # this interpreter
        [sys.executable, "-c", HANGS],
        cwd=pytestconfig.rootpath,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "left\n", "")


async def test_a_pipe_is_no_plan_and_nothing_is_loaded(home: Path) -> None:
    os.mkfifo(home / "pipe")
    async with console("last-replica-standing") as robot:
        await robot.press("o")
        await robot.answers(str(home / "pipe"))
        await robot.hears("a pipe, not a plan file")
        await robot.idle()
        assert robot.session.draft.plan is None


async def test_reading_a_plan_is_told_and_escape_gives_it_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that hangs, of another host say, cannot be had here: reading waits until it is given up."""
    over = threading.Event()

    def hangs(_path: Path, given_up: Callable[[], bool]) -> Plan:
        while not given_up():
            over.wait(0.01)
        over.set()
        raise InputError("given up")

    monkeypatch.setattr(sources, "read_regular", hangs)
    async with console("last-replica-standing") as robot:
        await robot.press("o")
        await robot.answers("/somewhere/plan.json")
        await robot.hears("reading /somewhere/plan.json; Esc gives it up")
        await robot.press("escape")
        await robot.hears("loading a plan: stopped; nothing was sent")
        await robot.idle()
        await soon(over.is_set)
        assert robot.session.draft.plan is None
