"""``python -m benchmarks.wire.replay_server RECORDING``: answers every request with its recorded response.

It listens on the recorded ports, because the responses name them. A request that is not in the recording closes the
connection, so the run that sends it fails.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from struct import Struct

from benchmarks.wire.recording import recorded

_LENGTH = Struct(">i")
_HEAD = Struct(">hhih")
RequestKey = tuple[int, int, int, bytes]


async def answer(path: str) -> None:
    """Serves until SIGTERM; prints one line when all ports listen."""
    known: dict[RequestKey, bytes] = {}
    for one in recorded(path):
        known[one.port, one.api_key, one.version, one.request] = one.frame
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    servers = [await _listen(port, known) for port in sorted({key[0] for key in known})]
    print("ready", flush=True)
    await ended.wait()
    for server in servers:
        server.close()


async def _listen(port: int, known: dict[RequestKey, bytes]) -> asyncio.Server:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (size,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
                request = await reader.readexactly(size)
                key, version, correlation, client = _HEAD.unpack_from(request)
                # A flexible header has tagged fields after the client id: one byte, because the adapter sends none.
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
