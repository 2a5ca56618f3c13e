"""``python -m benchmarks.wire [--rounds N] [--sizes 2000,20000,200000]``: writes ``benchmarks/results/wire.md``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.machine_info import described
from benchmarks.measure import BenchmarkError
from benchmarks.wire.measured_runs import PictureRun, RecoveryRun, picture, recovery
from benchmarks.wire.served_cluster import BROKERS

RESULTS = Path(__file__).parent.parent / "results" / "wire.md"
SIZES = (2_000, 20_000, 200_000)
OFFLINE = 20_000
TARGET = 2.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wire")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=lambda text: [int(part) for part in text.split(",")], default=SIZES)
    parser.add_argument("--offline", type=int, default=OFFLINE)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    machine = list(described("4.3.1"))
    pictures: list[PictureRun] = []
    recoveries: list[RecoveryRun] = []
    with tempfile.TemporaryDirectory() as made:
        directory = Path(made)
        try:
            for size in options.sizes:
                for native in (True, False):
                    print(f"{size:,} partitions, {_calls(native)}", flush=True)
                    pictures.append(picture(size, native, options.rounds, directory, _say))
            for native in (True, False):
                print(f"{options.offline:,} offline, {_calls(native)}", flush=True)
                recoveries.append(recovery(options.offline, native, options.rounds, directory, _say))
        except BenchmarkError as error:
            print(f"benchmarks.wire: {error}", file=sys.stderr)
            return 1
    options.results.parent.mkdir(exist_ok=True)
    lines = report(machine, options.rounds, pictures, recoveries)
    options.results.write_text("\n".join(lines) + "\n")
    print("\n".join(lines[-24:]))
    return 0


def _say(line: str) -> None:
    print(line, flush=True)


def _calls(native: bool) -> str:
    return "native" if native else "emulated"


def report(
    machine: Sequence[str], rounds: int, pictures: Sequence[PictureRun], recoveries: Sequence[RecoveryRun]
) -> list[str]:
    return list(_report(machine, rounds, pictures, recoveries))


def _report(
    machine: Sequence[str], rounds: int, pictures: Sequence[PictureRun], recoveries: Sequence[RecoveryRun]
) -> Iterator[str]:
    yield "# The live adapter against served brokers"
    yield ""
    yield f"`python -m benchmarks.wire`, {datetime.now(UTC):%Y-%m-%d}, medians of {rounds} rounds."
    yield ""
    yield from machine
    yield f"- {BROKERS} brokers, 3 replicas for each partition; one process serves them all on the same cores"
    yield ""
    yield "## The full picture"
    yield ""
    yield "Partitions with their ELR, every replica's log end and last epoch, log dirs and the quorum, from the"
    yield "first connection until everything is known. Limit: the same bytes, sent by a second process, only read"
    yield f"from the sockets and decoded by kio after a length check. Aim: at most {TARGET} times the limit."
    yield "Replayed: the same picture with every response from a recording, so without the simulator's own time."
    yield ""
    yield "| Partitions | Calls | Seconds | CPU s | Peak MiB | Answers | MiB | Limit s | Ratio | Replayed | Ratio |"
    yield "|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    for one in pictures:
        yield (
            f"| {one.partitions:,} | {_calls(one.native)} | {one.seconds:.2f} | {one.cpu:.2f}"
            f" | {one.peak / 2**20:.0f} | {one.answers:,} | {one.size / 2**20:.1f} | {one.limit:.2f}"
            f" | {one.ratio:.2f} | {one.replayed:.2f} | {one.ratio_replayed:.2f} |"
        )
    yield ""
    yield "## Recovery"
    yield ""
    yield "`kafka-unclean-recovery --all-offline-partitions --automated-recovery`, start to verified."
    yield ""
    yield "| Offline partitions | Calls | Seconds | Peak MiB |"
    yield "|---:|---|---:|---:|"
    for done in recoveries:
        peak = f"{done.peak / 2**20:.0f}"
        yield f"| {done.partitions:,} | {_calls(done.native)} | {done.seconds:.2f} | {peak} |"


if __name__ == "__main__":
    sys.exit(main())
