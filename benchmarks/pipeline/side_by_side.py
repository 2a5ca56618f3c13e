"""What is measured side by side: the command lines of a job and of its peers, and their rows in a table."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from deltalake import DeltaTable

from benchmarks.measure import BenchmarkError
from benchmarks.pipeline.process_tree import TreeFigures, measured, medians

MIB = 2**20
BARE, START = "bare", "start of Spark alone"
"""Sides of every job."""
BARE_LIMIT = 2.0
"""The target of :func:`over_bare`."""


class Sides(NamedTuple):
    """The command lines to measure, by name; ``{out}`` in one is a new directory in each round."""

    directory: Path
    commands: dict[str, tuple[str, ...]]

    def measured(self, rounds: int) -> dict[str, TreeFigures]:
        """The medians. The sides take turns, so that a change of the machine's load meets all of them."""
        runs: dict[str, list[TreeFigures]] = {name: [] for name in self.commands}
        for number in range(rounds):
            for name, words in self.commands.items():
                word = re.sub("[^a-z0-9]+", "-", name)
                out = str(self.directory / f"out-{word}-{number}")
                found = measured([word.replace("{out}", out) for word in words], self.directory)
                sys.stderr.write(f"{name}: {found.seconds:.1f} s, {found.cpu:.1f} s of CPU time\n")
                runs[name].append(found)
        return {name: medians(found) for name, found in runs.items()}


def job_command(job: str, lake: Path, *more: str) -> tuple[str, ...]:
    return (
        *(
            str(Path(sys.executable).with_name("ktriage")),
            "pipeline",
            job,
            "--in",
            str(lake),
            "--out",
            "{out}",
        ),
        *("--master", "local[2]", "--output", "json", *more),
    )


def peer_command(name: str, lake: Path) -> tuple[str, ...]:
    return (sys.executable, "-m", "benchmarks.pipeline.peers", name, str(lake))


def figures_row(name: str, found: TreeFigures, beside: TreeFigures | None = None) -> str:
    ratio = "" if beside is None else f"{found.cpu / beside.cpu:.2f}"
    memory = " + ".join(f"{size / MIB:,.0f}" for size in (found.command, found.java, found.workers))
    return f"| {name} | {found.seconds:.1f} s | {found.cpu:.1f} s | {ratio} | {memory} MiB |"


FIGURES_HEAD = (
    "| | wall | CPU | by the peer | memory: command + Java + workers |",
    "|:---|---:|---:|---:|---:|",
)


def over_bare(found: Mapping[str, TreeFigures], job: str, bare: str = BARE) -> list[str]:
    """What a job takes beyond Spark's start, by what the barest job over the same columns takes beyond it."""
    start = found[START].cpu
    ratio = (found[job].cpu - start) / max(found[bare].cpu - start, 0.1)
    if ratio <= BARE_LIMIT:
        return []
    return [
        f"{job}: beyond Spark's start {ratio:.2f} times the CPU time of the barest job (target: {BARE_LIMIT})"
    ]


def check_rows(tables: Path | Sequence[Path], peer: TreeFigures) -> None:
    """Raises BenchmarkError if the peer found another number of rows than the job wrote."""
    written = 0
    for table in [tables] if isinstance(tables, Path) else tables:
        written += sum(DeltaTable(str(table)).get_add_actions(flatten=True)["num_records"].to_pylist())
    if written != int(peer.output):
        raise BenchmarkError(f"the job wrote {written} rows, the peer found {peer.output.strip()}")
