"""Runs the app in this process, with the signal handlers that the console needs."""

from __future__ import annotations

import asyncio
import gc
import sys
from typing import TYPE_CHECKING

from console.app.app import Console, Options
from console.app.session.halt import ConsoleSupervisor
from console.app.terminal import SavedTerminal
from console.program import Program
from console.signals import StopRequest
from console.target import Target

if TYPE_CHECKING:
    from backends.metadata_log.copied_log import CopiedMetadataLog

SWITCH_SECONDS = 0.002
"""Seconds that the backend's thread may compute before the screen's thread gets its turn, so that a key is
handled at once.
"""


def start(
    program: Program,
    target: Target | None,
    *,
    read_only: bool,
    guide: bool,
    served: bool,
    copy: CopiedMetadataLog | None,
) -> int:
    """Opens the console and returns its exit status."""
    sys.setswitchinterval(SWITCH_SECONDS)
    # A full collection stops every thread while it walks millions of frozen values, and finds nothing.
    gc.set_threshold(100_000, 50, 1_000)
    terminal = SavedTerminal()
    earlier = program.supervisor

    def last_words(signum: int) -> str:
        terminal.restore()
        return earlier.last_words(signum)

    supervisor = ConsoleSupervisor(last_words)
    supervisor.stop.signum = earlier.stop.signum
    program.supervisor = supervisor
    if not served:
        supervisor.install()
    options = Options(read_only=read_only, served=served, guide=guide, hints=not served, copy=copy)
    app = Console(program, target, options)

    async def work(_stop: StopRequest) -> int:
        status = await app.run_async()
        if app.last_line:
            program.screen.say(app.last_line)
        return 1 if status is None else status

    return asyncio.run(work(supervisor.stop)) if served else supervisor.run(work)
