"""``python -m benchmarks``: measures everything and writes ``benchmarks/results.md``."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import bench_cluster, offline_recovery, plan_speed, status_command
from benchmarks.machine_info import described
from benchmarks.measure import BenchmarkError, Side, run
from benchmarks.profiler import imports, profile
from benchmarks.report import RatioTarget, compared, growth, planned, ratio_of
from testbed.kafka import KafkaCluster, TestbedError
from testbed.kafka.jars import DEFAULT_VERSION

RESULTS = Path(__file__).with_name("results.md")
SIZES = (20_000, 200_000)
PARTS = ("picture", "recovery", "planning")

Say = Callable[[str], None]


def main() -> int:
    options = _options()
    # A terminated benchmark removes its cluster and files, like an interrupted one.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
    try:
        lines = list(_results(options.only or PARTS, options.rounds, _say))
    except (BenchmarkError, TestbedError) as error:
        _say(f"benchmarks: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    text = "\n".join(lines) + "\n"
    options.output.write_text(text, encoding="utf-8")
    print(text)
    _say(f"written to {options.output}")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--only", action="append", choices=PARTS, help="measure this part; may be repeated")
    parser.add_argument("--rounds", type=int, default=5, help="measured rounds after the warm-up")
    parser.add_argument("--output", type=Path, default=RESULTS, help="where the results go")
    return parser.parse_args()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _results(parts: Sequence[str], rounds: int, say: Say) -> Iterator[str]:
    yield "# Benchmarks"
    yield ""
    yield f"Written by `make bench` on {datetime.now(UTC):%Y-%m-%d %H:%M} UTC."
    yield ""
    yield from described(DEFAULT_VERSION)
    with TemporaryDirectory(prefix="ktriage-bench-") as name:
        directory = Path(name)
        if "picture" in parts or "recovery" in parts:
            with bench_cluster.new_cluster(say) as cluster:
                say(f"making {bench_cluster.PARTITIONS:,} partitions")
                bench_cluster.fill(cluster)
                if "picture" in parts:
                    yield from _picture(cluster, rounds, directory, say)
                if "recovery" in parts:
                    yield from _recovery(cluster, rounds, directory, say)
        if "planning" in parts:
            yield from _planning(directory, say)


def _method(rounds: int) -> str:
    return (
        f"Whole processes, run in turn, medians of {rounds} rounds after one warm-up;"
        f" {bench_cluster.PARTITIONS:,} partitions of 3 replicas, 3 brokers and 3 controllers on this machine."
        " Java runs with `-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1`, its fastest start."
    )


def _picture(cluster: KafkaCluster, rounds: int, directory: Path, say: Say) -> Iterator[str]:
    say("the full picture, healthy cluster")
    sides = status_command.measure(cluster, rounds, directory, say)
    yield from (
        "",
        "## The full picture",
        "",
        "`ktriage status --output json`: all partitions with ISR, ELR and LastKnownELR, every replica's last epoch"
        " and log end, log dirs, quorum. Java: `TopicCommand --describe` alone.",
        _method(rounds),
        "",
    )
    target = RatioTarget(status_command.TARGET)
    yield from compared(sides, target)
    arguments = ("status", "--bootstrap-server", cluster.bootstrap(), "--output", "json")
    yield from _why_missed(sides, target, "ktriage", arguments, directory)


def _recovery(cluster: KafkaCluster, rounds: int, directory: Path, say: Say) -> Iterator[str]:
    say("offline partitions to verified leaders")
    sides = offline_recovery.measure(cluster, rounds, directory, say)
    yield from (
        "",
        "## Offline partitions, from start to verified",
        "",
        f"{bench_cluster.PARTITIONS:,} partitions whose only in-sync replica died; the survivor that is listed"
        " first in every assignment has the shorter log. `kafka-unclean-recovery --all-offline-partitions"
        " --automated-recovery` reads every log, saves a plan, reorders, elects the better survivor, reads back,"
        " restores the order, surveys again and writes a journal to disk. Java: `LeaderElectionCommand"
        " --election-type unclean`, which elects the first live replica, here the wrong one. The third row sends"
        " only the requests that change something, in the same parts, and reads and checks nothing.",
        _method(rounds),
        "",
    )
    target = RatioTarget(offline_recovery.TARGET, offline_recovery.AIM)
    yield from compared(sides, target)
    if ratio_of(sides) > target.ratio:
        bench_cluster.take_offline(cluster)
    arguments = ("--bootstrap-server", cluster.bootstrap(), *offline_recovery.WORDS)
    yield from _why_missed(sides, target, "kafka-unclean-recovery", arguments, directory)


def _why_missed(
    sides: Sequence[Side], target: RatioTarget, command: str, arguments: Sequence[str], directory: Path
) -> Iterator[str]:
    if ratio_of(sides) <= target.ratio:
        return
    yield from ("", "Where our time went (cProfile makes Python slower):", "", "```")
    yield from profile(command, arguments, sys.executable, directory)
    if command == "ktriage":
        yield from imports(command, arguments, sys.executable, directory)
    yield "```"


def _planning(directory: Path, say: Say) -> Iterator[str]:
    rows = []
    for name, (words, _) in plan_speed.SHAPES.items():
        for size in SIZES:
            say(f"planning: {words}, {size:,} partitions")
            argv = (sys.executable, "-m", "benchmarks.plan_speed", str(size), name)
            rows.append((words, size, json.loads(run(argv, directory).stdout)))
    yield from (
        "",
        "## Ranking, loss and planning alone",
        "",
        "In memory, 3 replicas for each partition, every log a separate value; CPU time. The plan includes the loss"
        " of every candidate.",
        "",
    )
    yield from planned(rows)
    yield ""
    small, large = SIZES
    for (words, _, few), (_, _, many) in zip(rows[::2], rows[1::2], strict=True):
        yield f"- {words}: {large // small} times the partitions take {growth(few, many):.1f} times the time."


if __name__ == "__main__":
    sys.exit(main())
