"""The console and kaskade on the same served cluster: start, key latency, memory.

kaskade lists topics and reads no replica's log, so it shows less in that time.
"""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.console.key_latency import Latencies
from benchmarks.console.terminal import ConsoleProcess
from benchmarks.measure import ROOT, BenchmarkError

SCENARIO = "offline-2000"
KEYS = 100


class Peer(NamedTuple):
    """A program on the cluster and three texts: ``frame`` is in its first frame, ``shown`` appears with its list,
    ``whole`` when the list is complete.
    """

    name: str
    argv: tuple[str, ...]
    frame: str
    shown: str
    whole: str


class ConsoleFigures(NamedTuple):
    """Seconds from process start, latencies, and the most memory in bytes."""

    frame: float
    shown: float
    whole: float
    keys: Latencies
    peak: int


@contextmanager
def served(home: Path) -> Iterator[str]:
    """The scenario on the wire; gives the bootstrap address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "console.cli", "simulate", "serve", SCENARIO, "--port-base", str(port)]
    with (home / "served").open("w+") as log:
        server = subprocess.Popen(words, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)
        try:
            deadline = time.monotonic() + 60
            while not (found := re.search(r"brokers at (\S+), controllers", (home / "served").read_text())):
                if time.monotonic() > deadline or server.poll() is not None:
                    raise BenchmarkError(f"the scenario is not served: {(home / 'served').read_text()}")
                time.sleep(0.1)
            yield found.group(1)
        finally:
            server.terminate()
            server.wait(30)


def measured(peer: Peer, home: Path) -> ConsoleFigures:
    """One round."""
    with ConsoleProcess(peer.argv, home) as console:
        frame = console.until(peer.frame)
        shown = console.until(peer.shown)
        whole = console.until(peer.whole)
        console.quiet(1.0)
        return ConsoleFigures(frame, shown, whole, arrow_latencies(console), console.peak())


def arrow_latencies(console: ConsoleProcess) -> Latencies:
    """From the arrow key to the end of the first output that follows it."""
    found = []
    for number in range(KEYS):
        console.quiet(0.05, 1.0)
        pressed = time.perf_counter()
        console.press("\x1b[B" if number % 20 < 10 else "\x1b[A")
        if console.next_bytes(2.0):
            found.append((time.perf_counter() - pressed) * 1000)
    return Latencies(tuple(sorted(found)))


def lines(kaskade: str, rounds: int) -> Iterator[str]:
    """A Markdown section; ``kaskade`` is the path of its program."""
    version = subprocess.run(
        [kaskade, "--version"], capture_output=True, text=True, check=True
    ).stdout.split()[-1]
    with tempfile.TemporaryDirectory() as home, served(Path(home)) as bootstrap:
        peers = (
            Peer(
                "ktriage",
                (sys.executable, "-m", "console.cli", "--bootstrap-server", bootstrap),
                "READ-ONLY",
                "2,000 offline",
                " old",
            ),
            Peer(
                f"kaskade {version}",
                (kaskade, "admin", "-b", bootstrap),
                "Kaskade",
                "Topics [30]",
                "Updated ",
            ),
        )
        rounds_of = [[measured(peer, Path(home)) for _ in range(rounds)] for peer in peers]
    yield "## Beside kaskade"
    yield ""
    yield f"`{SCENARIO}` served on loopback (3,000 partitions in 30 topics, 2,000 offline); medians of {rounds}."
    yield "kaskade lists topics, then asks for their offsets and groups; ktriage lists what is offline, and asks"
    yield "each replica of it for its log. kaskade shows no offsets of a topic without leaders."
    yield ""
    yield f"| | {' | '.join(peer.name for peer in peers)} |"
    yield "|---|---|---|"
    yield _row("process start to first frame, s", rounds_of, lambda r: r.frame)
    yield _row("process start to the list, s", rounds_of, lambda r: r.shown)
    yield _row("process start to everything in it, s", rounds_of, lambda r: r.whole)
    yield _row("key to frame, median ms", rounds_of, lambda r: r.keys.at(0.5))
    yield _row("key to frame, 95th percentile ms", rounds_of, lambda r: r.keys.at(0.95))
    yield _row("most memory, MB", rounds_of, lambda r: r.peak / 1e6)


def _row(what: str, rounds_of: Sequence[Sequence[ConsoleFigures]], value: object) -> str:
    assert callable(value)
    cells = [sorted(value(one) for one in rounds)[len(rounds) // 2] for rounds in rounds_of]
    return f"| {what} | {' | '.join(f'{cell:,.2f}' for cell in cells)} |"


if __name__ == "__main__":
    print("\n".join(lines(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3)))
