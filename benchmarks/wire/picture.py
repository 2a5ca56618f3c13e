"""One full picture by the live adapter: ``python -m benchmarks.wire.picture BOOTSTRAP PARTITIONS [RECORDING]``.

With a RECORDING every answer's bytes are written there, to be replayed.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

from backends.live.adapter import LiveBackend
from backends.live.client.addresses import parse_addresses
from backends.live.client.settings import ClientSettings
from backends.live.connections.transport import Transport
from benchmarks.wire.recording import Answer
from console.cli.gc_tuning import collect_seldom
from console.operations.overview import Overview, overview
from recovery.model import Lineage, ReplicaLog

DURATION = 240.0


class Recorder:
    """Writes every frame that a transport takes, with the call that it answers."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []

    def install(self) -> None:
        """Into the transport's class: what is measured is run without it."""
        taken = Transport._handle_frame

        def handle(transport: Any, frame: bytes) -> None:
            self._write(transport, frame)
            taken(transport, frame)

        Transport._handle_frame = handle

    def _write(self, transport: Any, frame: bytes) -> None:
        if id(transport) not in self._numbers:
            self._numbers[id(transport)] = len(self._numbers)
            self._kept.append(transport)  # its id is nobody else's meanwhile
        request = transport._requests[0][1]
        kind = getattr(request, "_request", None)
        key, version = (18, 0) if kind is None else (kind.__api_key__, kind.__version__)
        body = b"" if kind is None else request.encode()
        answer = Answer(
            self._numbers[id(transport)], transport.port, key, version, body, frame, kind is not None
        )
        answer.write(self._file)


async def look(bootstrap: str, seen: list[Overview]) -> None:
    """Into ``seen``: asyncio.run makes a repr of what its task returns, which takes seconds of a large picture."""
    backend = LiveBackend(ClientSettings(parse_addresses(bootstrap)))
    try:
        seen.append(await overview(backend, DURATION))
    finally:
        await backend.close()


def main(bootstrap: str, partitions: int, recording: str = "") -> int:
    """Prints the seconds that the picture took; 1 where it is not whole."""
    collect_seldom()
    with ExitStack() as stack:
        if recording:
            Recorder(stack.enter_context(Path(recording).open("wb"))).install()
        began = time.monotonic()
        seen: list[Overview] = []
        asyncio.run(look(bootstrap, seen))
        seconds = time.monotonic() - began
    (view,) = seen
    logs = [replica.log for survey in view.surveys for replica in survey.replicas]
    told = sum(isinstance(log, ReplicaLog) and isinstance(log.lineage, Lineage) for log in logs)
    calls = sorted({contact.call for contact in view.contacts})
    print(seconds, len(view.partitions.states), told, "/".join(calls))
    return 0 if len(view.partitions.states) == partitions and told == 3 * partitions else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]))
