"""``benchmarks/results/pipeline.md``: a section for each area, each with the day and the load of its own run."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import metadata
from typing import NamedTuple

from benchmarks.measure import ROOT
from testbed.kafka.java import java_version

RESULTS = ROOT / "benchmarks" / "results" / "pipeline.md"
_LIBRARIES = ("pyspark", "deltalake", "pyarrow", "duckdb")
_HEAD = """# The pipeline

Every figure is of whole processes, from start to end. CPU time is that of the whole process tree: the command,
Spark's Java, and its Python workers. `python -m benchmarks.pipeline AREA` measures one section again. On a machine
with other work CPU time grows by a half or so, and wall time by any factor: compare figures of the same section.
"""


class Section(NamedTuple):
    """``load``: the load average when it began. ``missed``: each target that was missed, in a line."""

    title: str
    lines: list[str]
    missed: list[str]
    load: str


def load_now() -> str:
    """The load averages of the last 1, 5 and 15 minutes."""
    return ", ".join(f"{value:.1f}" for value in os.getloadavg())


def write_section(area: str, section: Section) -> None:
    """Replaces the area's section, or adds it."""
    text = RESULTS.read_text() if RESULTS.exists() else _HEAD
    written = "\n".join(_lines(area, section)) + "\n"
    sections = re.split(r"(?m)^(?=## )", text)
    marked = _mark(area)
    at = next((number for number, one in enumerate(sections) if marked in one), None)
    if at is None:
        sections.append(written)
    else:
        sections[at] = written
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("\n".join(one.rstrip("\n") + "\n" for one in sections))


def _mark(area: str) -> str:
    return f"`python -m benchmarks.pipeline {area}`"


def _lines(area: str, section: Section) -> Iterator[str]:
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in _LIBRARIES)
    cores = len(os.sched_getaffinity(0))
    yield f"## {section.title}"
    yield ""
    yield f"{_mark(area)}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC; Java {java_version()}, Python"
    yield f"{sys.version.split()[0]}, {versions}; {cores} cores, load average at the start {section.load}."
    yield ""
    yield from section.lines
    if section.missed:
        yield ""
        yield from (f"- **missed**: {line}" for line in section.missed)
