"""``python -m benchmarks.wire.answering RECORDING``: gives every request the answer that was recorded for it.

At the ports of the recording, so that the brokers are found where its answers say. What is not in the recording
ends the connection, and so the picture that asks for it.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from struct import Struct

from benchmarks.wire.recording import recorded

_LENGTH = Struct(">i")
_HEAD = Struct(">hhih")
Asked = tuple[int, int, int, bytes]


async def answer(path: str) -> None:
    """Until SIGTERM; a line on stdout when all ports listen."""
    known: dict[Asked, bytes] = {}
    for one in recorded(path):
        known[one.port, one.api_key, one.version, one.request] = one.frame
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    servers = [await _listen(port, known) for port in sorted({asked[0] for asked in known})]
    print("ready", flush=True)
    await ended.wait()
    for server in servers:
        server.close()


async def _listen(port: int, known: dict[Asked, bytes]) -> asyncio.Server:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (size,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
                request = await reader.readexactly(size)
                key, version, correlation, client = _HEAD.unpack_from(request)
                # Behind a flexible header's client id come its tags: one byte, as the adapter sends none.
                body = request[_HEAD.size + max(0, client) :]
                frame = known.get((port, key, version, body)) or known[port, key, version, body[1:]]
                writer.write(b"".join((_LENGTH.pack(len(frame)), _LENGTH.pack(correlation), frame[4:])))
                await writer.drain()
        except asyncio.IncompleteReadError:
            return
        finally:
            writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", port, reuse_address=True)


if __name__ == "__main__":
    asyncio.run(answer(sys.argv[1]))
