"""``ktriage pipeline show`` and ``ktriage pipeline package``."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from console.exit_status import Status
from console.output.pipeline_report import show_result
from console.program import Program
from pipeline.executor_archive import build
from pipeline.results import read_result
from pipeline.storage import storage_path


def show_results(program: Program, results: Sequence[str], rows: int, *, json: bool) -> int:
    """Prints results; returns the exit status. Raises PipelineError."""
    for uri in results:
        show_result(program.screen, read_result(storage_path(uri)), rows, json=json)
    return Status.DONE


def write_package(program: Program, out: str) -> int:
    """Writes the archive into the directory ``out``; returns the exit status. Raises PipelineError."""
    archive, files = build(storage_path(out))
    program.screen.out([f"{archive.uri}: {files:,} files"])
    words = ("--master", "MASTER", "--archive", archive.path, "--out", "RESULTS")
    program.screen.say(f"next: {shlex.join(('ktriage', 'pipeline', 'drill', *words))}")
    return Status.DONE
