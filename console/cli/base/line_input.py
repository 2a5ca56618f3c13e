"""Reads a line from a terminal without blocking signals and sockets."""

from __future__ import annotations

import asyncio
import os


async def read_line(descriptor: int) -> str:
    """The next line, "" at the end of input. If it is cancelled, no thread stays behind that still reads."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str] = loop.create_future()

    def readable() -> None:
        if not answer.done():
            answer.set_result(os.read(descriptor, 4096).decode(errors="replace"))

    loop.add_reader(descriptor, readable)
    try:
        return await answer
    finally:
        loop.remove_reader(descriptor)
