"""The lower limit: one process sends a recording, another only reads it from the sockets and decodes it.

``python -m benchmarks.wire.decode_limit send RECORDING`` prints its port and serves once; ``… read PORT
RECORDING`` prints the seconds of reading, the bytes and the answers. Each recorded connection is one here too.
"""

from __future__ import annotations

import asyncio
import sys
import time
from struct import Struct

from kio.serial import entity_reader

from backends.live.codec.aiokafka_requests import read
from backends.live.codec.message_fields import response_type
from benchmarks.wire.recording import Answer, recorded
from console.cli.main import collect_seldom

_LENGTH = Struct(">i")


def by_connection(path: str) -> dict[int, list[Answer]]:
    """The answers of each connection, in their order, without aiokafka's own ApiVersions."""
    found: dict[int, list[Answer]] = {}
    for answer in recorded(path):
        if answer.ours:
            found.setdefault(answer.connection, []).append(answer)
    return found


async def send(path: str) -> None:
    """Serves each connection once, by its number, as fast as it is read."""
    answers = by_connection(path)
    left = set(answers)
    done = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        (number,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        for answer in answers[number]:
            writer.write(_LENGTH.pack(len(answer.frame)) + answer.frame)
            await writer.drain()
        writer.close()
        left.discard(number)
        if not left:
            done.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with asyncio.timeout(300):
        await done.wait()
    server.close()


async def receive(port: int, calls: dict[int, list[tuple[int, int]]]) -> tuple[float, int]:
    """Seconds, and bytes."""

    async def one(number: int) -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(_LENGTH.pack(number))
        total = 0
        for key, version in calls[number]:
            (size,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
            frame = await reader.readexactly(size)
            kind = response_type(key, version)
            _, head = entity_reader(kind.__header_schema__)(frame, 0)
            read(kind, frame, head)
            total += size
        writer.close()
        return total

    began = time.monotonic()
    sizes = await asyncio.gather(*map(one, calls))
    return time.monotonic() - began, sum(sizes)


def main(verb: str, *arguments: str) -> int:
    if verb == "send":
        asyncio.run(send(arguments[0]))
        return 0
    collect_seldom()
    calls = {
        number: [(answer.api_key, answer.version) for answer in answers]
        for number, answers in by_connection(arguments[1]).items()
    }
    seconds, size = asyncio.run(receive(int(arguments[0]), calls))
    print(seconds, size, sum(map(len, calls.values())))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
