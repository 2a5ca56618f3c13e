"""Reminds the operator of an earlier run that was killed and left something unfinished."""

from __future__ import annotations

from dataclasses import replace

from console.cli.base.run import Run
from console.errors import InputError
from console.journal.errors import JournalError
from console.journal.state_access import records_access
from console.paths import cluster_name, records_dir
from console.provenance import now


def remind(run: Run, cluster_id: str) -> bool:
    """Prints what this host's journal shows as unfinished, and the command that finishes it; True if that comes
    before everything else, as all but a restore of rescued records does.

    A run that is still going on is named; nothing can be finished while it has the lock. A journal that cannot be
    read is named too: what the command read from the cluster was printed already.
    """
    try:
        return _has_runs(cluster_id) and _remind(run, cluster_id)
    except (InputError, JournalError) as error:
        from console.output.resume_report import unknown_line  # noqa: PLC0415

        run.screen.say(unknown_line(error))
        return False


def _has_runs(cluster_id: str) -> bool:
    """Most hosts never changed this cluster: for them no journal is read, which saves time."""
    records_access()
    directory = records_dir() / cluster_name(cluster_id)
    try:
        return any(path.suffix == ".jsonl" for path in directory.iterdir())
    except FileNotFoundError:
        return False
    except OSError as error:
        raise JournalError(f"{directory}: cannot be read: {error.strerror}") from None


def _remind(run: Run, cluster_id: str) -> bool:
    from console.journal.journal import running  # noqa: PLC0415
    from console.journal.unfinished_entries import unfinished  # noqa: PLC0415
    from console.output.resume_report import open_lines  # noqa: PLC0415

    found = unfinished(cluster_id)
    found = replace(found, entries=())
    if found.nothing:
        return False
    going_on = running(cluster_id)
    run.screen.say(*open_lines(found, going_on, now()))
    for_resume = not replace(found, restores=()).nothing
    if going_on is None:
        if for_resume:
            run.next("resume")
        for restore in found.restores:
            run.next(*restore.command)
    return for_resume
