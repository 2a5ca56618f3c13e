"""The console in a browser: on loopback only, and never armed."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest

from tests.unit.cli.command_process import command_line, environment, typing

pytestmark = pytest.mark.long

LIMIT = 60.0


class Served(NamedTuple):
    port: int
    token: str

    def session(self) -> aiohttp.ClientSession:
        """Of a browser that has opened the page."""
        return aiohttp.ClientSession(
            cookies={f"ktriage-{self.port}": self.token}, cookie_jar=aiohttp.CookieJar(unsafe=True)
        )


@pytest.fixture
def served(home: Path) -> Iterator[Served]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
    words = ("--simulate", "last-replica-standing", "--serve", "--port", str(number))
    with (home / "log").open("wb") as log:
        server = subprocess.Popen(
            command_line("ktriage", *words), env=environment(home), cwd=home, stdout=log, stderr=log
        )
        # It prints the address shortly before it listens.
        deadline = time.monotonic() + LIMIT
        while "token=" not in (log_text := (home / "log").read_text(errors="replace")) or not listening(
            number
        ):
            assert server.poll() is None and time.monotonic() < deadline, log_text
            time.sleep(0.05)
        token = log_text.partition("token=")[2].partition(";")[0]
        yield Served(number, token)
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


async def test_a_browser_sees_the_console_and_cannot_arm_it(served: Served) -> None:
    async with asyncio.timeout(LIMIT), served.session() as session:
        url = f"http://127.0.0.1:{served.port}"
        async with session.get(f"{url}/?token={served.token}") as answer:
            assert answer.status == 200
            page_text = await answer.text()
            assert "js/textual.js" in page_text
            loaded = re.findall(r'(?:src|href)="([a-z]+://[^/"]*)', page_text)
            assert set(loaded) == {url}, "nothing comes from another site"
        async with session.ws_connect(f"{url}/ws?width=100&height=30") as page, Browser(page) as browser:
            await browser.sees("payments-0")
            assert "READ-ONLY: served" in browser.shown
            await browser.types("A")
            await browser.sees("log-in")  # words are drawn one by one
            assert "ARMED" not in browser.shown


def test_only_this_machine_reaches_it(served: Served) -> None:
    assert listening(served.port) == [f"0100007F:{served.port:04X}"]


@pytest.mark.parametrize("token", ["", "?token=", "?token=guessed"])
async def test_another_user_of_this_machine_does_not_get_in_without_the_token(
    served: Served, token: str
) -> None:
    async with asyncio.timeout(LIMIT), aiohttp.ClientSession() as session:
        for path in ("", "ws", "static/js/textual.js"):
            async with session.get(f"http://127.0.0.1:{served.port}/{path}{token}") as answer:
                assert answer.status == 403
                assert "printed" in await answer.text()


async def test_the_address_by_another_name_leads_to_the_one_of_the_cookie(served: Served) -> None:
    async with asyncio.timeout(LIMIT), aiohttp.ClientSession() as session:
        address = f"http://localhost:{served.port}/?token={served.token}"
        async with session.get(address, allow_redirects=False) as answer:
            assert answer.headers["Location"] == address.replace("localhost", "127.0.0.1")


def test_a_terminal_that_cannot_show_a_screen_gets_one_line(home: Path) -> None:
    line = command_line("ktriage", "--simulate", "last-replica-standing")
    ended = typing(home, ["env", "TERM=dumb", *line], "")
    assert ended.status == 2
    (said,) = ended.err.strip().splitlines()  # the terminal may echo what is typed
    assert "ktriage status" in said


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


async def test_another_sites_page_and_another_name_are_turned_away(served: Served) -> None:
    async with asyncio.timeout(LIMIT), served.session() as session:
        url = f"http://127.0.0.1:{served.port}"
        for foreign in ({"Origin": "http://evil.example"}, {"Host": f"evil.example:{served.port}"}):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await session.ws_connect(f"{url}/ws", headers=foreign)
            assert refused.value.status == 403
        async with session.ws_connect(
            f"{url}/ws", headers={"Origin": f"http://localhost:{served.port}"}
        ) as page:
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


async def test_whatever_another_page_or_program_sends_a_page_that_is_open_goes_on(served: Served) -> None:
    async with asyncio.timeout(LIMIT), served.session() as session:
        address = f"http://127.0.0.1:{served.port}/ws?width=100&height=30"
        async with session.ws_connect(address) as page, Browser(page) as browser:
            await browser.sees("payments-0")
            for garbage in GARBAGE:
                _, writer = await asyncio.open_connection("127.0.0.1", served.port)
                writer.write(garbage)
                writer.close()
            for message in MESSAGES:
                async with session.ws_connect(address) as other:
                    # A page that the server has closed already takes nothing more: that is an answer, too.
                    with suppress(ConnectionResetError):
                        await other.send_str(message)
            async with session.ws_connect(f"http://127.0.0.1:{served.port}/ws?width=x&height=-1") as other:
                await other.receive()  # what it draws, or that it is refused
            for path in ("../../../etc/passwd", "static/..%2f..%2f..%2fetc/passwd", "download/%1b%5b2J"):
                async with session.get(f"http://127.0.0.1:{served.port}/{path}") as answer:
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
