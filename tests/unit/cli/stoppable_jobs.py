"""``ktriage`` on a cluster in memory that stands still at a chosen moment, in a process that is sent signals.

A real cluster cannot be made to stand still between two requests for as long as a test needs. Run as
``python -m tests.unit.cli.stoppable_jobs MOMENT ARGUMENTS…``; it prints MOMENT on stderr when it is there.
"""

from __future__ import annotations

import asyncio
import sys
import time

from console import backends, signals
from console.cli.main import main as entry
from tests.unit.cli.memory_backend import cluster_of


class Standing:
    """Waits at the moment until the run is told to stop, or for ever."""

    def __init__(self, moment: str) -> None:
        self.moment = moment
        self.signalled = asyncio.Event()

    async def in_survey(self) -> None:
        if self.moment == "survey":
            self._here()
            await asyncio.Event().wait()

    async def in_flight(self) -> None:
        self._here()
        if self.moment == "flight":
            asyncio.get_running_loop().add_reader(sys.stdin.fileno(), self.signalled.set)
            await self.signalled.wait()
        elif self.moment == "hanging":
            await asyncio.Event().wait()
        elif self.moment == "stuck":
            time.sleep(600)  # noqa: ASYNC251  # the loop itself stands still

    def _here(self) -> None:
        print(self.moment, file=sys.stderr, flush=True)


def main() -> None:
    """Runs the command with the rest of the arguments; a line on stdin ends the flight."""
    moment, *arguments = sys.argv[1:]
    standing = Standing(moment)
    backend = cluster_of(3)
    backend.in_survey = standing.in_survey
    backend.before_designate = standing.in_flight
    signals.LIMIT_SECONDS = 1.0 if moment == "hanging" else 600.0
    setattr(backends, "backend", lambda _target, _say: backend)  # noqa: B010  # another factory, for this process
    sys.argv = ["ktriage", *arguments]
    entry()


if __name__ == "__main__":
    main()
