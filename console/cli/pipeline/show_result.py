"""``ktriage pipeline show`` and ``ktriage pipeline package``."""

from __future__ import annotations

import shlex

from console.cli.pipeline.spark_job import Wanted
from console.errors import InputError
from console.exit_status import Status
from console.output.pipeline_report import show_result
from console.program import Program
from pipeline.executor_archive import build
from pipeline.results import read_result
from pipeline.storage import storage_path


def show(program: Program, wanted: Wanted) -> int:
    """Prints results; returns the exit status."""
    if not wanted.results:
        raise InputError("pipeline show needs RESULT: a run's directory, or the one above it for the newest")
    for text in wanted.results:
        show_result(program.screen, read_result(storage_path(text)), wanted.rows, json=wanted.json)
    return Status.DONE


def package(program: Program, wanted: Wanted) -> int:
    """Builds the archive; returns the exit status."""
    archive, files = build(wanted.root)
    program.screen.out([f"{archive.uri}: {files:,} files"])
    words = ("--master", "MASTER", "--archive", archive.path, "--out", "RESULTS")
    program.screen.say(f"next: {shlex.join(('ktriage', 'pipeline', 'drill', *words))}")
    return Status.DONE
