"""A run that was killed left something behind: whoever looks at the cluster next is told."""

from __future__ import annotations

from console.cli.base.run import Run
from console.paths import cluster_name, records_dir


def remind(run: Run, cluster_id: str) -> bool:
    """Says what this host's journal shows as unfinished, and the command that finishes it; True if there is any.

    A run that is under way at this moment is named, and nothing is to be finished while it holds the lock.
    """
    if not any((records_dir() / cluster_name(cluster_id)).glob("*.jsonl")):
        return False
    # Most hosts never changed this cluster: they do not pay for reading a journal.
    from console.journal.journal import running  # noqa: PLC0415
    from console.journal.unfinished_entries import unfinished  # noqa: PLC0415
    from console.output.resume_report import open_lines  # noqa: PLC0415

    found = unfinished(cluster_id)
    if not found.orders and not found.replacements:
        return False
    going_on = running(cluster_id)
    run.screen.say(*open_lines(found, going_on))
    if going_on is None:
        run.next("resume")
    return True
