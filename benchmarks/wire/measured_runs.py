"""Runs of the full picture, of its lower limit, and of a recovery, each in a separate process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.command_lines import ours
from benchmarks.measure import BenchmarkError, environment, run
from benchmarks.wire.served_cluster import offline, served, whole

Say = Callable[[str], None]


class PictureRun(NamedTuple):
    """Medians: seconds and peak bytes of the process, seconds of the lower limit, bytes and responses."""

    partitions: int
    native: bool
    seconds: float
    cpu: float
    peak: int
    limit: float
    size: int
    answers: int
    replayed: float
    """Seconds of the same picture when every response comes from a recording."""

    @property
    def ratio(self) -> float:
        return self.seconds / self.limit

    @property
    def ratio_replayed(self) -> float:
        return self.replayed / self.limit


class RecoveryRun(NamedTuple):
    """Medians of ``kafka-unclean-recovery``: elected, verified, restored."""

    partitions: int
    native: bool
    seconds: float
    peak: int


def picture(partitions: int, native: bool, rounds: int, directory: Path, say: Say) -> PictureRun:
    """One recorded full picture of a served cluster, then ``rounds`` measured ones and as many replays."""
    with served(whole(partitions), directory, native=native) as bootstrap:
        argv = (sys.executable, "-m", "benchmarks.wire.full_picture", bootstrap, str(partitions))
        recording = directory / "recording"
        run((*argv, str(recording)), directory)
        taken = []
        for number in range(1, rounds + 1):
            seconds, cpu, peak, _states, _known, calls = run(argv, directory).stdout.split(maxsplit=5)
            taken.append((float(seconds), float(cpu), int(peak)))
            say(f"  round {number}: {float(seconds):.2f} s, {int(peak) / 2**20:.0f} MiB ({calls.strip()})")
    replayed = _with_replay_server(recording, argv, rounds, directory)
    say(f"  answered from the recording: {replayed:.2f} s")
    limits = [_decode_limit(recording, directory) for _ in range(rounds)]
    size, answers = limits[0][1], limits[0][2]
    say(f"  replayed: {limits[0][0]:.2f} s for {size / 2**20:.1f} MiB")
    recording.unlink()
    limit = median(seconds for seconds, _, _ in limits)
    return PictureRun(
        partitions,
        native,
        median(seconds for seconds, _, _ in taken),
        median(cpu for _, cpu, _ in taken),
        int(median(peak for _, _, peak in taken)),
        limit,
        size,
        answers,
        replayed,
    )


def _with_replay_server(recording: Path, argv: Sequence[str], rounds: int, directory: Path) -> float:
    """The median seconds of ``rounds`` full pictures that are answered from the recording."""
    command = (sys.executable, "-m", "benchmarks.wire.replay_server", str(recording))
    answering = subprocess.Popen(command, env=environment(directory), stdout=subprocess.PIPE, text=True)
    assert answering.stdout is not None
    try:
        if not answering.stdout.readline():
            raise BenchmarkError("the recording could not be served")
        return median(float(run(argv, directory).stdout.split()[0]) for _ in range(rounds))
    finally:
        answering.terminate()
        answering.wait(60)
        answering.stdout.close()


def _decode_limit(recording: Path, directory: Path) -> tuple[float, int, int]:
    module = (sys.executable, "-m", "benchmarks.wire.decode_limit")
    sender = subprocess.Popen(
        (*module, "send", str(recording)), env=environment(directory), stdout=subprocess.PIPE, text=True
    )
    assert sender.stdout is not None
    try:
        port = sender.stdout.readline().strip()
        done = run((*module, "read", port, str(recording)), directory)
    finally:
        sender.wait(60)
        sender.stdout.close()
    seconds, size, answers = done.stdout.split()
    return float(seconds), int(size), int(answers)


def recovery(partitions: int, native: bool, rounds: int, directory: Path, say: Say) -> RecoveryRun:
    """Each round has its own cluster, because recovered partitions are no longer offline."""
    taken = []
    for number in range(1, rounds + 1):
        with served(offline(partitions), directory, native=native) as bootstrap:
            argv = ours(
                "kafka-unclean-recovery",
                *("--bootstrap-server", bootstrap, "--all-offline-partitions", "--automated-recovery"),
                *("--recovery-duration-ms", "500", "--output", "json"),
            )
            measured = run(argv, directory)
            result = json.loads(measured.stdout)
            if _elected(result) != partitions:
                raise BenchmarkError(f"{_elected(result)} of {partitions} were elected")
            taken.append(measured)
            say(f"  round {number}: {measured.seconds:.2f} s, {measured.peak / 2**20:.0f} MiB")
    return RecoveryRun(
        partitions,
        native,
        median(measured.seconds for measured in taken),
        int(median(measured.peak for measured in taken)),
    )


def _elected(result: dict[str, Any]) -> int:
    return sum(row["outcome"] == "elected" and row["orderReverted"] for row in result.get("elections", ()))
