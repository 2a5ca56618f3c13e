"""Commands in forked processes, for runs that are killed or lose their disk beside a served cluster."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.command_server import DISK_FULL, Ended, request, start_server


class ForkedRun:
    """One run of a command. ``kill`` may be called at any time, also twice."""

    def __init__(self, server: ForkServer, pid: int, out: Path, err: Path) -> None:
        self._server = server
        self.pid = pid
        self._process = os.pidfd_open(pid)  # refers to this process even if its id is reused
        self._out, self._err = out, err

    def kill(self) -> None:
        """SIGKILL."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._process, signal.SIGKILL)

    def fill_disk(self) -> None:
        """From now on the disk of its journal is full."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._process, DISK_FULL)

    async def ended(self) -> Ended:
        """Waits for its end, without a limit."""
        try:
            line = await self._server.next_line()
        finally:
            os.close(self._process)
        return Ended(
            line["status"], self._out.read_text(errors="replace"), self._err.read_text(errors="replace")
        )


class ForkServer:
    """Starts runs, one at a time."""

    def __init__(self) -> None:
        self._socket, self._process = start_server()
        self._socket.setblocking(False)
        self._buffer = b""

    async def run(self, name: str, *words: str, env: Mapping[str, str], directory: Path) -> ForkedRun:
        """Starts ``name`` with ``words``; its output goes to files in ``directory``."""
        out, err = directory / "stdout", directory / "stderr"
        asked = request(name, words, env, directory, (out, err))
        await asyncio.get_running_loop().sock_sendall(self._socket, asked)
        return ForkedRun(self, (await self.next_line())["pid"], out, err)

    async def next_line(self) -> Any:
        """The server's next line. Raises EOFError if it has ended."""
        while b"\n" not in self._buffer:
            more = await asyncio.get_running_loop().sock_recv(self._socket, 65_536)
            if not more:
                raise EOFError("the fork server has ended")
            self._buffer += more
        line, self._buffer = self._buffer.split(b"\n", 1)
        return json.loads(line)

    def close(self) -> None:
        """Ends the server: it stops when its socket is closed."""
        self._socket.close()
        self._process.wait()
