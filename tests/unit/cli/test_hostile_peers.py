"""Commands against a listener that is no Kafka, or answers nonsense: one line, status 3, and an end.

Every command that asks a cluster is held against every answer of the list.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.hostile_text import drives_a_terminal
from tests.unit.cli.command_process import Caller, environment

Answer = Callable[[bytes], bytes]
"""Given the correlation id of the first request, what the listener writes before it closes the connection."""
_GARBAGE = bytes(range(256)) * 16

ANSWERS: dict[str, Answer] = {
    "nothing": lambda _id: b"",
    "garbage": lambda _id: _GARBAGE,
    "garbage in a frame": lambda correlation: b"\0\0\x10\4" + correlation + _GARBAGE,
    "two gigabytes announced": lambda correlation: b"\x7f\xff\xff\xff" + correlation + _GARBAGE,
    "a negative length": lambda correlation: b"\xff\xff\xff\xff" + correlation,
    "a length of zero": lambda _id: b"\0\0\0\0" * 100,
    "only a correlation id": lambda correlation: b"\0\0\0\4" + correlation,
    "half of what was announced": lambda correlation: b"\0\0\0\x64" + correlation + b"\0\0",
    "another correlation id": lambda _id: b"\0\0\0\x0a" + b"\x7f\0\0\1" + b"\0" * 6,
    "HTTP that clears the screen": lambda _id: b"HTTP/1.1 400 Bad Request\r\nX: \x1b[2J\r\n\r\n",
    "a TLS alert": lambda _id: b"\x15\x03\x03\0\2\2\x0a",
}
COMMANDS = (("status",), ("plan", "plan.json"), ("replicas", "--topic", "orders"), ("quorum", "status"))


@contextmanager
def listener(answer: Answer) -> Iterator[str]:
    """The address of a listener that answers every connection once."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_serve, args=(server, answer), daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def _serve(server: socket.socket, answer: Answer) -> None:
    with suppress(OSError):
        while True:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.sendall(answer(connection.recv(4096)[8:12]))
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(4096):
                    pass


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_peer_that_is_no_kafka_is_one_line_and_status_3(
    call: Caller, words: tuple[str, ...], answer: str
) -> None:
    with listener(ANSWERS[answer]) as address:
        ended = call("ktriage", *words, "--bootstrap-server", address)
    assert (ended.status, ended.out) == (3, ""), ended
    assert len(ended.err.splitlines()) == 1 and address in ended.err, ended
    assert not drives_a_terminal(ended.err)
    assert not list(call.home.rglob("*.json")) and not list(call.home.rglob("crashes"))


@pytest.mark.parametrize("start", ["-m console.cli", "entry point"])
def test_a_library_adds_no_line_of_its_own_however_ktriage_is_started(call: Caller, start: str) -> None:
    """aiokafka logs what it does not expect with a traceback."""
    code = "from console.cli.entry import ktriage; ktriage()"
    program = ["-m", "console.cli"] if start == "-m console.cli" else ["-c", code]
    with listener(ANSWERS["a negative length"]) as address:
        ended = subprocess.run(
            [sys.executable, *program, "status", "--bootstrap-server", address],
            env=environment(call.home),
            cwd=call.home,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert (ended.returncode, ended.stdout) == (3, ""), ended
    assert len(ended.stderr.splitlines()) == 1 and address in ended.stderr, ended
