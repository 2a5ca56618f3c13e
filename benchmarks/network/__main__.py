"""``python -m benchmarks.network [--rounds N]``: writes benchmarks/results/network.md."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import NamedTuple

from backends.live.client.addresses import parse_addresses
from benchmarks.machine_info import described
from benchmarks.measure import environment
from benchmarks.network.relay import RelayedLink, relayed
from benchmarks.wire.served_cluster import served, whole
from console.cli.main import collect_seldom

RESULTS = Path(__file__).parent.parent / "results" / "network.md"
COMMANDS = (("status",), ("check",), ("quorum", "status"), ("log-dirs",))
INCIDENT = Path(__file__).parents[2] / "backends" / "simulator" / "scenarios" / "offline-2000.yaml"
SILENT: Mapping[int, RelayedLink] = {2: RelayedLink.SILENT, 3: RelayedLink.DROPPED}


class Case(NamedTuple):
    """``round_trip`` in seconds; the aim is for ``status``, in seconds from the start of the process."""

    name: str
    scenario: str
    round_trip: float
    links: Mapping[int, RelayedLink]
    aim: float


def cases() -> tuple[Case, ...]:
    incident = INCIDENT.read_text(encoding="utf-8")
    return (
        Case("2,000 of 3,000 offline, beside it", incident, 0.0, {}, 3.0),
        Case("2,000 of 3,000 offline, 100 ms away", incident, 0.1, {}, 3.0),
        Case("2,000 of 3,000 offline, 300 ms away", incident, 0.3, {}, 6.0),
        Case("1,000 partitions, two of 12 brokers are silent", whole(1_000), 0.0, SILENT, 5.0),
    )


class Spent(NamedTuple):
    """Of one command: the median seconds as a person waits for it, and the most round trips one after the other."""

    seconds: float
    round_trips: int


def measured(case: Case, rounds: int, directory: Path) -> list[Spent]:
    """Of each command."""
    with served(case.scenario, directory, native=False) as bootstrap:
        ports = {number: at.port for number, at in enumerate(parse_addresses(bootstrap), 1)}
        with relayed(ports, case.round_trip, case.links) as (relays, servers, options):
            found = []
            for words in COMMANDS:
                runs = []
                for _ in range(rounds):
                    relays.chain = 0
                    seconds = _seconds((*words, "--bootstrap-server", servers, *options), directory)
                    runs.append(Spent(seconds, relays.chain))
                found.append(Spent(median(one.seconds for one in runs), max(one.round_trips for one in runs)))
            return found


def _seconds(words: Sequence[str], directory: Path) -> float:
    began = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "console.cli", *words],
        env=environment(directory),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return time.monotonic() - began


def report(
    machine: Sequence[str], rounds: int, rows: Sequence[tuple[Case, Sequence[Spent]]]
) -> Iterator[str]:
    yield "# Brokers that are far away, or silent"
    yield ""
    yield f"`python -m benchmarks.network`, {datetime.now(UTC):%Y-%m-%d}, medians of {rounds}."
    yield ""
    yield from machine
    yield "- one process serves all brokers; each is reached through a relay, the controllers without one"
    yield "- silent: one takes connections and answers nothing, one answers no connection attempt"
    yield ""
    yield "Seconds from the start of the process to its end; the aim is that of `status`. In brackets: round trips"
    yield "to brokers that were waited for one after the other, connecting included, whatever the load."
    yield ""
    yield f"| | {' | '.join(' '.join(words) for words in COMMANDS)} | aim |"
    yield f"|---|{'---:|' * (len(COMMANDS) + 1)}"
    for case, spent in rows:
        yield f"| {case.name} | {' | '.join(map(shown, spent))} | {case.aim:g} |"


def shown(one: Spent) -> str:
    return f"{one.seconds:.1f} ({one.round_trips})"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.network")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    collect_seldom()
    machine = list(described("4.3.1"))
    rows = []
    for case in cases():
        with tempfile.TemporaryDirectory() as made:
            rows.append((case, measured(case, options.rounds, Path(made))))
        print(case.name, *map(shown, rows[-1][1]), flush=True)
    options.results.write_text("\n".join(report(machine, options.rounds, rows)) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
