"""``python -m benchmarks.simulator [--rounds N]``: writes ``benchmarks/results/simulator.md``.

Every figure is a median over separate processes, in CPU time: events and virtual seconds per second on one core,
load time and memory, time per partition, and a recovery from start to end.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from benchmarks.machine_info import described
from benchmarks.measure import BenchmarkError, run

RESULTS = Path(__file__).parent.parent / "results" / "simulator.md"
ROUNDS = 5
BROKERS = (3, 30, 100)
PARTITIONS = (2_000, 20_000, 200_000)
RECOVERY_AT_MOST = 0.5
COMMAND_AT_MOST = 3.0
MIB = 2**20
Figures = Mapping[str, float]


def main() -> int:
    """1 if an aim is missed or a process did not do its work."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulator", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    rounds = parser.parse_args().rounds
    _, _, system, *_ = described("")
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    machine = (f"- Python {platform.python_version()}", system, f"- load average when it began: {load}")
    try:
        with tempfile.TemporaryDirectory() as directory:
            speeds = {n: _median("speed", n, rounds, Path(directory)) for n in BROKERS}
            incidents = {n: _median("incident", n, rounds, Path(directory)) for n in PARTITIONS}
            commands = _median("commands", 0, rounds, Path(directory))
            recovery = _median("recovery", 0, rounds, Path(directory))
    except BenchmarkError as error:
        print(error, file=sys.stderr)
        return 1
    met = (
        recovery["seconds"] <= RECOVERY_AT_MOST and commands["later"] + commands["offline"] <= COMMAND_AT_MOST
    )
    lines = [*_head(machine, rounds), *_speeds(speeds), *_incidents(incidents), *_rest(commands, recovery)]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"written to {RESULTS}", file=sys.stderr)
    return 0 if met else 1


def _median(name: str, argument: int, rounds: int, directory: Path) -> Figures:
    """Each value's median over the rounds."""
    runs: list[Figures] = []
    for _ in range(rounds):
        line = (sys.executable, "-m", "benchmarks.simulator.runs", name, str(argument))
        runs.append(json.loads(run(line, directory).stdout))
    found = {key: median(one[key] for one in runs) for key in runs[0]}
    print(f"  {name} {argument}: {found}", file=sys.stderr)
    return found


def _head(machine: Sequence[str], rounds: int) -> Iterator[str]:
    yield "# The simulator"
    yield ""
    yield f"{datetime.now(UTC):%Y-%m-%d}, medians of {rounds} processes each, CPU time of one core."
    yield ""
    yield from machine
    yield ""


def _speeds(speeds: Mapping[int, Figures]) -> Iterator[str]:
    yield "## Speed: ten partitions a broker, each written ten times a second, every invariant checked"
    yield ""
    yield "| brokers | events a second | virtual seconds a second |"
    yield "|---:|---:|---:|"
    for brokers, figures in speeds.items():
        yield f"| {brokers} | {figures['events']:,.0f} | {figures['virtual']:.2f} |"
    yield ""


def _incidents(incidents: Mapping[int, Figures]) -> Iterator[str]:
    yield "## Size: 24 brokers, replication factor 3; the cluster is loaded, then one broker dies"
    yield ""
    yield "| partitions | load | peak memory once loaded | death of a broker | µs a partition |"
    yield "|---:|---:|---:|---:|---:|"
    for partitions, figures in incidents.items():
        each = (figures["load"] + figures["kill"]) / partitions * 1e6
        peak = f"{figures['peak'] / MIB:.0f} MiB"
        row = f"| {partitions:,} | {figures['load']:.2f} s | {peak} | {figures['kill']:.2f} s |"
        yield f"{row} {each:.1f} |"
    yield ""


def _rest(commands: Figures, recovery: Figures) -> Iterator[str]:
    yield "## Commands on the incident with 200,000 partitions"
    yield ""
    yield f"- the first one replays it: {commands['first']:.1f} s"
    yield f"- later ones go on from its checkpoint: {commands['later']:.2f} s"
    both = commands["later"] + commands["offline"]
    verdict = "met" if both <= COMMAND_AT_MOST else "**missed**"
    yield (
        f"- list all partitions and survey those that are offline: {commands['offline']:.2f} s, with opening"
        f" {both:.2f} s (aim: at most {COMMAND_AT_MOST:g} s): {verdict}"
    )
    yield f"- survey all 600,000 replicas: {commands['all']:.2f} s; peak memory {commands['peak'] / MIB:.0f} MiB"
    yield ""
    yield "## The last replica standing, from its start to a verified recovery"
    yield ""
    verdict = "met" if recovery["seconds"] <= RECOVERY_AT_MOST else "**missed**"
    yield f"{recovery['seconds']:.2f} s beyond start-up (aim: at most {RECOVERY_AT_MOST:g} s): {verdict}"


if __name__ == "__main__":
    sys.exit(main())
