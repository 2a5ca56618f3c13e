"""The console in a browser: on loopback only, and never armed."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest

from tests.unit.cli.command_process import command_line, environment

pytestmark = pytest.mark.long

LIMIT = 60.0


@pytest.fixture
def port(home: Path) -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
    words = ("--simulate", "last-replica-standing", "--serve", "--port", str(number))
    with (home / "log").open("wb") as log:
        server = subprocess.Popen(
            command_line("ktriage", *words), env=environment(home), cwd=home, stdout=log, stderr=log
        )
        yield number
        server.send_signal(signal.SIGINT)
        server.wait(30)


class Browser:
    """A page that shows the console: what it is sent, and what it types."""

    def __init__(self, page: aiohttp.ClientWebSocketResponse) -> None:
        self._page = page
        self._drawn = asyncio.Event()
        self._open = True
        self.shown = ""

    async def __aenter__(self) -> Browser:
        # A page that is not read does not answer the server's pings, and is closed.
        self._reading = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._reading.cancel()

    async def _read(self) -> None:
        async for message in self._page:
            if message.type is aiohttp.WSMsgType.BINARY:
                self.shown += message.data.decode(errors="replace")
                self._drawn.set()
        self._open = False
        self._drawn.set()

    async def sees(self, text: str) -> None:
        while text not in self.shown:
            assert self._open, f"the page was closed: {self._page.close_code}"
            self._drawn.clear()
            await self._drawn.wait()

    async def types(self, text: str) -> None:
        await self._page.send_str(json.dumps(["stdin", text]))


async def test_a_browser_sees_the_console_and_cannot_arm_it(port: int) -> None:
    async with asyncio.timeout(LIMIT), aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{port}"
        while True:
            try:
                async with session.get(url) as answer:
                    assert answer.status == 200
                    break
            except aiohttp.ClientConnectorError:
                await asyncio.sleep(0.1)
        async with session.ws_connect(f"{url}/ws?width=100&height=30") as page, Browser(page) as browser:
            await browser.sees("payments-0")
            assert "READ-ONLY: served" in browser.shown
            await browser.types("A")
            await browser.sees("log-in")  # words are drawn one by one
            assert "ARMED" not in browser.shown


def test_only_this_machine_reaches_it(port: int) -> None:
    deadline = time.monotonic() + LIMIT
    while not (mine := listening(port)):
        assert time.monotonic() < deadline, "nobody listens"
        time.sleep(0.05)
    assert mine == [f"0100007F:{port:04X}"]


def listening(port: int) -> list[str]:
    """Local addresses, as the kernel writes them, at which somebody listens on that port."""
    rows = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text(encoding="utf-8").splitlines()[1:]
    ]
    return [row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")]


def test_a_port_that_cannot_be_is_refused(home: Path) -> None:
    ended = subprocess.run(
        command_line("ktriage", "--serve", "--port", "80"),
        env=environment(home),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 2
    assert "--port 80" in ended.stderr


async def test_another_sites_page_and_another_name_are_turned_away(port: int) -> None:
    async with asyncio.timeout(LIMIT), aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{port}"
        while not listening(port):  # noqa: ASYNC110  # another process
            await asyncio.sleep(0.05)
        for foreign in ({"Origin": "http://evil.example"}, {"Host": f"evil.example:{port}"}):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await session.ws_connect(f"{url}/ws", headers=foreign)
            assert refused.value.status == 403
        async with session.ws_connect(f"{url}/ws", headers={"Origin": f"http://localhost:{port}"}) as page:
            assert not page.closed


GARBAGE = (
    b"\0" * 1_000,
    b"GET / HTTP/9.9\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xff" * 64,
    b"GET /" + b"A" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX: \x1b[2J\x00\r\n\r\n",
    b"POST /ws HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\nx",
)
"""What anybody on this machine can send to the port: no HTTP, TLS, a long line, a body that never comes."""
MESSAGES = (
    "no JSON",
    "[]",
    '["stdin", 7]',
    '["resize", {"width": "x", "height": -1}]',
    json.dumps(["stdin", "\x1b]52;c;cm0gLXJm\x07\x1b[2J\0\u202e"]),
)


async def test_whatever_another_page_or_program_sends_a_page_that_is_open_goes_on(port: int) -> None:
    async with asyncio.timeout(LIMIT), aiohttp.ClientSession() as session:
        while not listening(port):  # noqa: ASYNC110  # another process
            await asyncio.sleep(0.05)
        address = f"http://127.0.0.1:{port}/ws?width=100&height=30"
        async with session.ws_connect(address) as page, Browser(page) as browser:
            await browser.sees("payments-0")
            for garbage in GARBAGE:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(garbage)
                writer.close()
            for message in MESSAGES:
                async with session.ws_connect(address) as other:
                    # A page that the server has closed already takes nothing more: that is an answer, too.
                    with suppress(ConnectionResetError):
                        await other.send_str(message)
            async with session.ws_connect(f"http://127.0.0.1:{port}/ws?width=x&height=-1") as other:
                await other.receive()  # what it draws, or that it is refused
            for path in ("../../../etc/passwd", "static/..%2f..%2f..%2fetc/passwd", "download/%1b%5b2J"):
                async with session.get(f"http://127.0.0.1:{port}/{path}") as answer:
                    assert "root:" not in await answer.text()
            browser.shown = ""
            await browser.types("2")
            await browser.sees("LAST")


def test_a_port_that_somebody_has_is_one_line(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        number = other.getsockname()[1]
        ended = subprocess.run(
            command_line("ktriage", "--serve", "--port", str(number)),
            env=environment(home),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert f"--port {number}" in ended.stderr
    assert not list(home.rglob("crashes"))
