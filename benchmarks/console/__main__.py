"""``python -m benchmarks.console``: writes benchmarks/results/console.md."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.console import kaskade, table_speed
from benchmarks.console.key_latency import Latencies, latencies
from benchmarks.console.terminal import COLUMNS, LINES, ConsoleProcess
from benchmarks.wire.served_cluster import served, whole
from console.provenance import version

LARGE = "partitions-200000"
SMALL = "partitions-200.yaml"
RESULTS = Path(__file__).parent.parent / "results" / "console.md"
KEYS = 120
SMALL_SCENARIO = """\
title: 200 partitions
about: the same incident on a small cluster
cluster:
  brokers: {count: 24, racks: [a, b, c]}
  min_isr: 2
  config: {broker.session.timeout.ms: 9000, broker.heartbeat.interval.ms: 2000, auto.leader.rebalance.enable: false}
topics:
  - {name: "events-{n}", count: 2, partitions: 100, replication_factor: 3, records: 10000, min_isr: 2}
faults:
  - {at: 5, do: kill, nodes: [broker-1, broker-2, broker-3], every: 10, note: "brokers 1, 2 and 3 die"}
  - {at: 50, do: start, nodes: [broker-1, broker-2], note: "1 and 2 are back after unclean shutdowns"}
operator: {at: 70}
expect: {offline: 0}
"""
_ALONE = """\
import asyncio, resource
from backends.simulator.adapter import SimulatorBackend
from console.simulator_backend import scenario
async def ask_all():
    backend = SimulatorBackend(scenario({name!r}))
    await backend.open()
    found = await backend.partitions()
    await backend.log_dirs()
    return found
found = asyncio.run(ask_all())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


class Round(NamedTuple):
    """One console from its start: seconds, bytes, and latencies."""

    first_frame: float
    full_picture: float
    peak: int
    all_shown: float
    keys: Latencies
    refreshing: Latencies
    idle_bytes: int


def measured(scenario: str) -> Round:
    """Opens the console on the scenario, lists every partition and moves the cursor in the list."""
    with tempfile.TemporaryDirectory() as home:
        (Path(home) / SMALL).write_text(SMALL_SCENARIO, encoding="utf-8")
        return _measured(("--simulate", scenario), Path(home))


def measured_on_network() -> Round:
    """As :func:`measured`, for 200,000 partitions of 12 brokers that another process serves."""
    with tempfile.TemporaryDirectory() as home, served(whole(200_000), Path(home), native=True) as bootstrap:
        return _measured(("--bootstrap-server", bootstrap), Path(home))


def _measured(cluster: Sequence[str], home: Path) -> Round:
    with ConsoleProcess((sys.executable, "-m", "console.cli", *cluster), home) as console:
        first = console.until("READ-ONLY")
        full = console.until(" old")
        asked = time.perf_counter()
        console.press("O")
        console.until("All partitions")
        shown = time.perf_counter() - asked
        console.quiet(1.0)
        calm = latencies(console, KEYS, refreshing=False)
        busy = latencies(console, KEYS, refreshing=True)
        console.quiet(2.0)
        idle = console.bytes_within(10.0)
        return Round(first, full, console.peak(), shown, calm, busy, idle)


def alone(scenario: str) -> int:
    """The peak memory of the simulator alone for the same questions."""
    done = subprocess.run(
        [sys.executable, "-c", _ALONE.format(name=scenario)], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def lines(small: list[Round], large: list[Round], network: list[Round], simulator: int) -> Iterator[str]:
    yield "# The console"
    yield ""
    yield f"ktriage {version()}, {_machine()}, {time.strftime('%Y-%m-%d')}, {len(large)} rounds, medians."
    yield f"A terminal of {COLUMNS}x{LINES}. The simulator runs on a thread of the same process; in the last column"
    yield "in a process of its own, which serves Kafka's protocol on the same cores (12 brokers, nothing offline)."
    yield "The 200,000-partition scenario has 1,449 partitions offline; every partition is listed."
    yield ""
    yield "| | 200 partitions | 200,000 partitions | 200,000 on the network |"
    yield "|---|---|---|---|"
    for what, value in (
        ("process start to first frame, s", lambda r: r.first_frame),
        ("process start to full picture, s (most of it the simulator's own start)", lambda r: r.full_picture),
        ("all partitions listed, s after the key", lambda r: r.all_shown),
        ("key to frame, median ms", lambda r: r.keys.at(0.5)),
        ("key to frame, 95th percentile ms", lambda r: r.keys.at(0.95)),
        ("key to frame while it refreshes, median ms", lambda r: r.refreshing.at(0.5)),
        ("key to frame while it refreshes, 95th percentile ms", lambda r: r.refreshing.at(0.95)),
        ("key to frame while it refreshes, longest ms", lambda r: r.refreshing.at(1.0)),
        ("peak memory, MB", lambda r: r.peak / 1e6),
        ("bytes in 10 idle seconds, with one refresh", lambda r: float(r.idle_bytes)),
    ):
        yield f"| {what} | {_median(small, value)} | {_median(large, value)} | {_median(network, value)} |"
    beyond = (median(r.peak for r in large) - simulator) / 1e6
    yield ""
    alone_mb = simulator / 1e6
    yield f"The simulator alone, for the same questions: {alone_mb:,.0f} MB; the console adds {beyond:,.0f} MB."


def _machine() -> str:
    libraries = f"Python {platform.python_version()}, textual {metadata.version('textual')}"
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"{libraries}, {platform.machine()}, {os.cpu_count()} cores, load average {load} at the end"


def _median(rounds: list[Round], value: object) -> str:
    assert callable(value)
    return f"{median(value(one) for one in rounds):,.2f}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.console", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kaskade", metavar="PROGRAM", help="the path of kaskade, to compare with it")
    return parser.parse_args()


def main() -> int:
    options = _options()
    rounds = options.rounds
    few = [measured(SMALL) for _ in range(rounds)]
    many = [measured(LARGE) for _ in range(rounds)]
    network = [measured_on_network() for _ in range(rounds)]
    report = [*lines(few, many, network, alone(LARGE)), "", "## The table alone", "", *table_speed.lines()]
    if options.kaskade is not None:
        report += ["", *kaskade.lines(options.kaskade, rounds)]
    text = "\n".join(report) + "\n"
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
