"""A real cluster's answers on a tape, and commands that get them again without the cluster.

A tape holds, for each command, what every node answered to each request, byte for byte, and when. The same request
gets the same answers in the same order, the last of them for ever; the clock stands where it stood.
"""

from __future__ import annotations

import asyncio
import atexit
import errno
import json
import lzma
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, tzinfo
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.command_server import Ended
from tests.unit.cli.command_process import environment

Exchanges = dict[str, list[Any]]
"""The node, with its request in hexadecimal digits → its answers: [bytes in digits, where the header ends], or the
number of the operating system's error; None where it got no answer.
"""
REFUSED = "connect"
SLOW = 600.0
"""Seconds after which a command that does not end is killed: on a busy machine Python alone can take a minute."""


class Tape:
    """The exchanges of each command by its words, and the second since 1970 when it was run."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.bootstrap = ""
        self.commands: dict[str, tuple[float, Exchanges]] = {}
        if file.exists():
            self.bootstrap, self.commands = json.loads(lzma.decompress(file.read_bytes()))

    def keep(self, words: str, at: float, exchanges: Exchanges) -> None:
        """Adds or replaces a command's exchanges, on disk."""
        self.commands[words] = (at, exchanges)
        self.write()

    def write(self) -> None:
        """Replaces the file."""
        text = json.dumps([self.bootstrap, self.commands], sort_keys=True)
        self._file.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def run_taped(
    tape: Path, words: tuple[str, ...], home: Path, more: Mapping[str, str], *, capture: bool
) -> Ended:
    """Runs ``ktriage WORDS…`` in a process whose connections write the tape, or read it."""
    mode = "capture" if capture else "replay"
    # The order of a set of names must be the same in both.
    ended = subprocess.run(
        [sys.executable, "-m", "tests.recorded.taped", mode, str(tape), *words],
        env=environment(home, PYTHONHASHSEED="0", **more),
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SLOW,
        check=False,
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def tape_key(words: tuple[str, ...]) -> str:
    """The command without what only says how its result is printed."""
    return " ".join(words).split(" --output")[0]


def _request(transport: Any, prepared: Any) -> str:
    header = prepared.build_request_header(correlation_id=0, client_id="")
    return f"{transport.host}:{transport.port} {(header.encode() + prepared.encode()).hex()}"


def _capture(transport_type: Any, tape: Path, words: tuple[str, ...]) -> None:
    exchanges: Exchanges = defaultdict(list)
    connect, send = transport_type.connect, transport_type.send

    async def connected(self: Any) -> Any:
        try:
            return await connect(self)
        except OSError as error:
            exchanges[f"{self.host}:{self.port} {REFUSED}"].append(error.errno)
            raise

    def sent(self: Any, request: Any, expect_response: bool = True) -> Any:
        key = _request(self, request.prepare(self._versions))
        answer = send(self, request, expect_response)

        def answered(done: asyncio.Future[Any]) -> None:
            failed = done.cancelled() or done.exception() is not None
            exchanges[key].append(None if failed else [done.result().data.hex(), done.result().offset])

        answer.add_done_callback(answered)
        return answer

    transport_type.connect, transport_type.send = connected, sent
    at = time.time()
    atexit.register(lambda: Tape(tape).keep(tape_key(words), at, exchanges))


def _replay(transport_type: Any, exchanges: Exchanges) -> None:
    from backends.live.codec.aiokafka_requests import RawAnswer

    def next_of(key: str) -> Any:
        answers = exchanges.get(key, [None])
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def connected(self: Any) -> None:
        refused = next_of(f"{self.host}:{self.port} {REFUSED}")
        if refused is not None:
            raise OSError(refused, os.strerror(refused))
        where = f"{self.host}:{self.port} "
        if not any(key.startswith(where) for key in exchanges):
            raise OSError(errno.EHOSTUNREACH, "not on the tape")
        self.on_tape = True
        newest = any(key.startswith(where + "00120004") for key in exchanges)
        await self.ask_versions(4 if newest else 3)

    def sent(self: Any, request: Any, expect_response: bool = True) -> Any:
        self.talking = True
        prepared = request.prepare(self._versions)
        answer = asyncio.get_running_loop().create_future()
        key = _request(self, prepared)
        reply = next_of(key)
        if reply is None:
            if key not in exchanges:
                print("this request is not on the tape:", key[:80], file=sys.stderr)
            answer.set_exception(ConnectionResetError())
        else:
            answer.set_result(RawAnswer(bytes.fromhex(reply[0]), reply[1]))
        return answer

    def drop(self: Any) -> None:
        self.on_tape = False

    transport_type.connect, transport_type.send, transport_type.drop = connected, sent, drop
    transport_type.connected = lambda self: getattr(self, "on_tape", False)


def _stop_clock(at: float) -> None:
    class Stopped(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Stopped:
            return cls.fromtimestamp(at, tz)

    time.time = lambda: at
    from console import provenance
    from console.reading import remembered_voters

    for module in (provenance, remembered_voters):
        assert isinstance(module, ModuleType)
        module.datetime = Stopped  # type: ignore[attr-defined]


def main(mode: str, file: str, *words: str) -> None:
    """Runs the command from its entry point."""
    tape = Path(file)
    at, exchanges = (0.0, {}) if mode == "capture" else Tape(tape).commands[tape_key(words)]
    if mode != "capture":
        _stop_clock(at)
    from backends.live.connections.transport import Transport
    from console.cli import entry

    if mode == "capture":
        _capture(Transport, tape, words)
    else:
        _replay(Transport, exchanges)
    sys.argv = ["ktriage", *words]
    entry.ktriage()


if __name__ == "__main__":
    main(*sys.argv[1:])
