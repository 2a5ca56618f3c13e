"""Measuring whole processes: wall time, CPU time and peak memory, of one or of two side by side."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

LAUNCHER = Path(__file__).with_name("timed_process.py")
ROOT = Path(__file__).parent.parent
LIMIT_SECONDS = 300


class BenchmarkError(Exception):
    """Why the benchmark cannot continue, in one line."""


class Measured(NamedTuple):
    """One process: wall and CPU time in seconds, peak memory in bytes, and what it printed."""

    seconds: float
    cpu: float
    peak: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Command:
    """What to run, for at most ``limit`` seconds. ``check`` raises BenchmarkError if it did not do its work."""

    name: str
    argv: tuple[str, ...]
    check: Callable[[Measured], None]
    limit: float = LIMIT_SECONDS


class Figures(NamedTuple):
    """Medians of one side over all rounds, and the fastest and slowest wall time."""

    seconds: float
    cpu: float
    peak: int
    fastest: float
    slowest: float


class Side(NamedTuple):
    """A command with its measurements in the order of the rounds."""

    name: str
    rounds: tuple[Measured, ...]

    @property
    def figures(self) -> Figures:
        times = [one.seconds for one in self.rounds]
        return Figures(
            median(times),
            median(one.cpu for one in self.rounds),
            int(median(one.peak for one in self.rounds)),
            min(times),
            max(times),
        )


def run(argv: Sequence[str], directory: Path, limit: float = LIMIT_SECONDS) -> Measured:
    """Runs the command once. Raises BenchmarkError if it fails or hangs."""
    out, err = directory / "stdout", directory / "stderr"
    launcher = (sys.executable, "-I", "-S", str(LAUNCHER), str(out), str(err), *argv)
    printed = launch(launcher, argv[0], limit, cwd=directory, env=environment(directory))
    seconds, cpu, peak_kib, status = printed.split()
    if int(status) != 0:
        output = (err.read_text(errors="replace") or out.read_text(errors="replace"))[-2000:]
        raise BenchmarkError(f"{' '.join(argv[:3])} … ended with status {status}\n{output}")
    text, errors = out.read_text(errors="replace"), err.read_text(errors="replace")
    return Measured(float(seconds), float(cpu), int(peak_kib) * 1024, text, errors)


def launch(launcher: Sequence[str], name: str, limit: float, *, cwd: Path, env: Mapping[str, str]) -> str:
    """What the launcher prints, within ``limit`` seconds. It and what it started are always gone afterwards.

    Raises BenchmarkError.
    """
    process = subprocess.Popen(
        launcher,
        env=env,
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        printed, problem = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        raise BenchmarkError(f"{name} did not end within {limit:g} s") from None
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.returncode != 0:
        raise BenchmarkError(f"{name} could not be started: {problem.strip()}")
    return printed


def environment(directory: Path) -> dict[str, str]:
    """The environment of both sides: without this Python's settings and the user's ktriage state."""
    inherited = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "XDG_", "KAFKA_"))
    }
    return {
        **inherited,
        "PYTHONPATH": str(ROOT),
        "XDG_STATE_HOME": str(directory / "state"),
        "XDG_CONFIG_HOME": str(directory / "config"),
    }


def side_by_side(
    commands: Sequence[Command],
    rounds: int,
    directory: Path,
    say: Callable[[str], None],
    prepare: Callable[[], None] = lambda: None,
    *,
    warm_up: bool = True,
) -> tuple[Side, ...]:
    """Runs A B A B …; a first round warms up and does not count. ``prepare`` runs before each command."""
    taken: dict[str, list[Measured]] = {command.name: [] for command in commands}
    for number in range(0 if warm_up else 1, rounds + 1):
        for command in commands:
            prepare()
            measured = run(command.argv, directory, command.limit)
            command.check(measured)
            if number:
                taken[command.name].append(measured._replace(stdout="", stderr=""))
            label = f"round {number}" if number else "warm-up"
            say(f"  {label}: {command.name}: {measured.seconds:.2f} s, {measured.peak / 2**20:.0f} MiB")
    return tuple(Side(name, tuple(runs)) for name, runs in taken.items())
