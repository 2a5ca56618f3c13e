"""``ktriage pipeline show`` and ``ktriage pipeline report``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from console.errors import InputError, Status
from console.jobs.pipeline.pipeline_page import newest_of_each_job, results_page
from console.jobs.pipeline.pipeline_report import show_result
from console.new_files import write_new
from console.program import Program
from pipeline.results import read_result, read_results
from pipeline.storage import storage_path


def show_results(program: Program, results: Sequence[str], rows: int, *, json: bool) -> int:
    """Prints results; returns the exit status. Raises PipelineError."""
    for uri in results:
        show_result(program.screen, read_result(storage_path(uri)), rows, json=json)
    return Status.DONE


def write_report(program: Program, results: Sequence[str], out: Path, rows: int) -> int:
    """Writes the newest result of each job to a new HTML page; returns the exit status. Raises InputError,
    PipelineError.
    """
    found = newest_of_each_job(result for uri in results for result in read_results(storage_path(uri)))
    if not found:
        raise InputError(f"{', '.join(results)}: no finished result is here")
    write_new(out, results_page(found, rows))
    program.screen.out([f"{out}: {', '.join(result.job for result in found)}"])
    return Status.DONE
