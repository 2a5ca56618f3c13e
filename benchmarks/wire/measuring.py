"""Runs of the picture, of its limit, and of a recovery, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.commands import ours
from benchmarks.measure import BenchmarkError, environment, run
from benchmarks.wire.serving import offline, served, whole

Say = Callable[[str], None]


class Picture(NamedTuple):
    """Medians: seconds and peak bytes of the process, the limit's seconds for the same bytes, and their size."""

    partitions: int
    native: bool
    seconds: float
    cpu: float
    peak: int
    limit: float
    size: int
    answers: int
    beside: float
    """Seconds of the same picture where a process that only replays answers it."""

    @property
    def ratio(self) -> float:
        return self.seconds / self.limit

    @property
    def ratio_beside(self) -> float:
        return self.beside / self.limit


class Recovery(NamedTuple):
    """Medians of ``kafka-unclean-recovery``: elected, verified, restored."""

    partitions: int
    native: bool
    seconds: float
    peak: int


def picture(partitions: int, native: bool, rounds: int, directory: Path, say: Say) -> Picture:
    """``rounds`` pictures of one served cluster after one that is recorded, and as many replays of that."""
    with served(whole(partitions), directory, native=native) as bootstrap:
        argv = (sys.executable, "-m", "benchmarks.wire.picture", bootstrap, str(partitions))
        recording = directory / "recording"
        run((*argv, str(recording)), directory)
        taken = []
        for number in range(1, rounds + 1):
            measured = run(argv, directory)
            taken.append((float(measured.stdout.split()[0]), measured))
            how = measured.stdout.split(maxsplit=3)[3].strip()
            say(f"  round {number}: {taken[-1][0]:.2f} s, {measured.peak / 2**20:.0f} MiB ({how})")
    beside = _beside(recording, argv, rounds, directory)
    say(f"  answered from the recording: {beside:.2f} s")
    limits = [_replayed(recording, directory) for _ in range(rounds)]
    size, answers = limits[0][1], limits[0][2]
    say(f"  replayed: {median(limit for limit, _, _ in limits):.2f} s for {size / 2**20:.1f} MiB")
    recording.unlink()
    seconds = median(limit for limit, _, _ in limits)
    return Picture(
        partitions,
        native,
        median(one for one, _ in taken),
        median(measured.cpu for _, measured in taken),
        int(median(measured.peak for _, measured in taken)),
        seconds,
        size,
        answers,
        beside,
    )


def _beside(recording: Path, argv: Sequence[str], rounds: int, directory: Path) -> float:
    """The median of ``rounds`` pictures that a process answers from the recording."""
    command = (sys.executable, "-m", "benchmarks.wire.answering", str(recording))
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


def _replayed(recording: Path, directory: Path) -> tuple[float, int, int]:
    module = (sys.executable, "-m", "benchmarks.wire.replay")
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


def recovery(partitions: int, native: bool, rounds: int, directory: Path, say: Say) -> Recovery:
    """Each round at a cluster of its own: what is recovered is not offline any more."""
    taken = []
    for number in range(1, rounds + 1):
        with served(offline(partitions), directory, native=native) as bootstrap:
            argv = ours(
                "kafka-unclean-recovery",
                *("--bootstrap-server", bootstrap, "--all-offline-partitions", "--automated-recovery"),
                *("--output", "json"),
            )
            measured = run(argv, directory)
            told = json.loads(measured.stdout)
            if _elected(told) != partitions:
                raise BenchmarkError(f"{_elected(told)} of {partitions} were elected")
            taken.append(measured)
            say(f"  round {number}: {measured.seconds:.2f} s, {measured.peak / 2**20:.0f} MiB")
    return Recovery(
        partitions,
        native,
        median(measured.seconds for measured in taken),
        int(median(measured.peak for measured in taken)),
    )


def _elected(told: dict[str, Any]) -> int:
    return sum(row["outcome"] == "elected" and row["orderRestored"] for row in told.get("elections", ()))
