"""Measures a command with everything that it starts: Spark's Java, and the Python workers of that."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.measure import ROOT, BenchmarkError, launch

LAUNCHER = Path(__file__).with_name("tree_launcher.py")
LIMIT_SECONDS = 1500


class TreeFigures(NamedTuple):
    """Wall and CPU time in seconds, and peak memory in bytes of the command's own process, of Java (Spark's driver,
    which has the executor in it), and of the Python workers together. ``read``: bytes that all of it has read from
    files, also from memory. ``output``: what it printed.
    """

    seconds: float
    cpu: float
    command: int
    java: int
    workers: int
    read: int
    output: str = ""


def measured(argv: Sequence[str], directory: Path) -> TreeFigures:
    """Runs the command once. Raises BenchmarkError if it fails or hangs."""
    out, err = directory / "stdout", directory / "stderr"
    launcher = (sys.executable, "-I", "-S", str(LAUNCHER), str(out), str(err), *argv)
    env = os.environ | {"PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(directory / "state")}
    printed = launch(launcher, argv[0], LIMIT_SECONDS, cwd=ROOT, env=env)
    figures = json.loads(printed)
    if figures.pop("status") != 0:
        raise BenchmarkError(f"{' '.join(argv)}\n{err.read_text(errors='replace')[-2000:]}")
    return TreeFigures(**figures, output=out.read_text(errors="replace"))


def medians(runs: Sequence[TreeFigures]) -> TreeFigures:
    """Of each figure by itself."""
    return TreeFigures(
        median(one.seconds for one in runs),
        median(one.cpu for one in runs),
        int(median(one.command for one in runs)),
        int(median(one.java for one in runs)),
        int(median(one.workers for one in runs)),
        int(median(one.read for one in runs)),
        runs[-1].output,
    )
