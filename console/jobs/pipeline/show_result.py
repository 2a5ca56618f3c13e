"""``ktriage pipeline show`` and ``ktriage pipeline report``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from console.errors import InputError, Status
from console.jobs.pipeline.pipeline_page import chat_text, newest_of_each_job, results_page
from console.jobs.pipeline.pipeline_report import show_result
from console.new_files import replace_own, write_new
from console.program import Program
from pipeline.fleet_metrics import exposition, fleet_samples
from pipeline.results import JobResult, read_result, read_results, remove_runs
from pipeline.storage import StoragePath, storage_path
from pipeline.watch.watch_result import WATCH, watch_result
from recovery.wording.quantity_text import counted


def show_results(
    program: Program, results: Sequence[str], rows: int, *, json: bool, cluster_id: str = ""
) -> int:
    """Prints results, with ``cluster_id`` what they say of that cluster; returns the exit status. Raises InputError
    and PipelineError.
    """
    for uri in results:
        show_result(program.screen, _result(storage_path(uri)), rows, json=json, cluster_id=cluster_id)
    return Status.DONE


def _result(place: StoragePath) -> JobResult:
    """The run of that URI, or the newest result there; what a watch has written there is a result too."""
    above = next(place.above(), None)
    if place.name == WATCH and above is not None and (watched := watch_result(above)) is not None:
        return watched
    watched = watch_result(place)
    if watched is not None and all(watched.made_at >= one.made_at for one in read_results(place)):
        return watched
    return read_result(place)


def write_metrics(program: Program, places: Sequence[str], out: Path) -> int:
    """Writes what the tables there say of the fleet into a file for Prometheus; returns the exit status. Raises
    InputError, PipelineError.
    """
    samples = fleet_samples([storage_path(uri) for uri in places])
    if not samples:
        raise InputError(f"{', '.join(places)}: neither snapshots, a run of exposure nor a watch is here")
    replace_own(out, exposition(samples), 0o644)
    clusters = len({sample.cluster_id for sample in samples})
    program.screen.out([f"{out}: {counted(len(samples), 'sample')} of {counted(clusters, 'cluster')}"])
    return Status.DONE


def prune_results(program: Program, source: str, keep: int) -> int:
    """Removes all but the newest runs of each job; returns the exit status. Raises PipelineError."""
    place = storage_path(source)
    old: list[str] = []
    by_job: dict[str, list[str]] = {}
    for result in read_results(place):
        by_job.setdefault(result.job, []).append(result.target.run_id)
    for runs in by_job.values():
        old += runs[:-keep]
    remove_runs(place, old)
    program.screen.out([f"{counted(len(old), 'run')} removed"])
    return Status.DONE


def write_report(program: Program, results: Sequence[str], out: Path, rows: int) -> int:
    """Writes the newest result of each job to a new HTML page, or its first lines to a file of Markdown; returns
    the exit status. Raises InputError, PipelineError.
    """
    places = [storage_path(uri) for uri in results]
    runs = [result for place in places for result in read_results(place)]
    watched = [result for place in places if (result := watch_result(place)) is not None]
    found = newest_of_each_job((*runs, *watched))
    if not found:
        raise InputError(f"{', '.join(results)}: no finished result is here")
    write_new(out, chat_text(found) if out.suffix == ".md" else results_page(found, rows))
    program.screen.out([f"{out}: {', '.join(result.job for result in found)}"])
    return Status.DONE
