"""One full picture by the live adapter, read and written as ``ktriage status`` does.

``python -m benchmarks.wire.full_picture BOOTSTRAP PARTITIONS [RECORDING]``. With a RECORDING, the bytes of every
response are written to that file, to be replayed.
"""

from __future__ import annotations

import asyncio
import resource
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
from console.cli.main import collect_seldom
from console.jobs.status.overview_report import overview_lines
from console.reading.cluster_reading import ClusterReading
from console.reading.read_cluster import read_cluster
from recovery.model import Lineage, ReplicaLog

DURATION = 240.0
ROWS = 10
"""Partitions that ``ktriage status`` shows."""


class AnswerRecorder:
    """Writes every response frame of a connection, with its request."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []

    def install(self) -> None:
        """Patches the connection's class; measured runs do without it."""
        taken = Transport._handle_frame

        def handle(transport: Any, frame: bytes) -> None:
            self._write(transport, frame)
            taken(transport, frame)

        Transport._handle_frame = handle

    def _write(self, transport: Any, frame: bytes) -> None:
        if id(transport) not in self._numbers:
            self._numbers[id(transport)] = len(self._numbers)
            self._alive.append(transport)  # so that no other object gets its id
        request = transport._requests[0][1]
        kind = getattr(request, "_request", None)
        key, version = (18, 0) if kind is None else (kind.__api_key__, kind.__version__)
        body = b"" if kind is None else request.encode()
        answer = Answer(
            self._numbers[id(transport)], transport.port, key, version, body, frame, kind is not None
        )
        answer.write(self._file)


async def take_overview(bootstrap: str, overviews: list[ClusterReading]) -> None:
    """Appends to ``overviews``: asyncio.run makes a repr of a returned value, which takes seconds here."""
    backend = LiveBackend(ClientSettings(parse_addresses(bootstrap)))
    try:
        overviews.append(await read_cluster(backend, DURATION, time.time()))
    finally:
        await backend.close()


def main(bootstrap: str, partitions: int, recording: str = "") -> int:
    """Prints the seconds that the picture took, the CPU seconds of the process until then, its peak memory in bytes
    and what was read; returns 1 if the picture is incomplete.
    """
    collect_seldom()
    with ExitStack() as stack:
        if recording:
            AnswerRecorder(stack.enter_context(Path(recording).open("wb"))).install()
        began = time.monotonic()
        overviews: list[ClusterReading] = []
        asyncio.run(take_overview(bootstrap, overviews))
        (view,) = overviews
        *_, _last = overview_lines(view, ROWS, time.time())
        seconds = time.monotonic() - began
        # Before the check below, which creates an object for each replica.
        cpu, peak = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    logs = [replica.log for survey in view.surveys for replica in survey.replicas]
    known = sum(isinstance(log, ReplicaLog) and isinstance(log.lineage, Lineage) for log in logs)
    calls = sorted({contact.call for contact in view.contacts})
    print(seconds, cpu, peak, len(view.partitions.states), known, "/".join(calls))
    return 0 if len(view.partitions.states) == partitions and known == 3 * partitions else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]))
