"""Reminds the operator of an earlier run that was killed and left something unfinished."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from console.cli.base.run import Run
from console.errors import InputError
from console.journal.errors import JournalError
from console.journal.state_access import records_access
from console.paths import cluster_name, records_dir
from console.provenance import now

if TYPE_CHECKING:
    from console.journal.run_records import ClusterMarks
    from console.reading.cluster_reading import ClusterReading
    from recovery.unread_disks import UnreadDisk


def remind(
    run: Run,
    cluster_id: str,
    present: ClusterReading | ClusterMarks,
    reported: Sequence[UnreadDisk] = (),
    started: Collection[int] = (),
) -> bool:
    """Prints what this host's journal shows as unfinished, and the command that finishes it; True if that comes
    before everything else, as all but a restore of rescued records does. Then the disks that are to be read before
    their brokers start, as far as ``present`` tells; ``reported`` are those that the command told of already.
    ``started``: brokers that are seen to run, where no partition was read; what became of their disks ``status``
    tells.

    A run that is still going on is named; nothing can be finished while it has the lock. A journal that cannot be
    read is named too: what the command read from the cluster was printed already.
    """
    try:
        return _has_runs(cluster_id) and _remind(run, cluster_id, present, reported, started)
    except (InputError, JournalError) as error:
        from console.change.resume_report import unknown_line  # noqa: PLC0415

        run.screen.say(unknown_line(error))
        return False


def resumes_first(cluster_id: str, marks: ClusterMarks) -> bool:
    """Whether :func:`remind` will say that an earlier run is to be finished before everything else."""
    from console.journal.change_kinds import Left  # noqa: PLC0415
    from console.journal.journal import running  # noqa: PLC0415
    from console.journal.unfinished_entries import unfinished  # noqa: PLC0415

    try:
        if not _has_runs(cluster_id) or running(cluster_id) is not None:
            return False
        return not unfinished(cluster_id, marks=marks).without(Left.REQUEST, Left.RECORDS).nothing
    except (InputError, JournalError):
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


def _remind(
    run: Run,
    cluster_id: str,
    present: ClusterReading | ClusterMarks,
    reported: Sequence[UnreadDisk],
    started: Collection[int],
) -> bool:
    from console.change.resume_report import open_lines  # noqa: PLC0415
    from console.journal.change_kinds import RESTORE_RECORDS, Left  # noqa: PLC0415
    from console.journal.journal import running  # noqa: PLC0415
    from console.journal.run_records import ClusterMarks, other_runs_lines  # noqa: PLC0415
    from console.journal.unfinished_entries import unfinished  # noqa: PLC0415

    reading = None if isinstance(present, ClusterMarks) else present
    marks = present if isinstance(present, ClusterMarks) else present.cluster_marks
    left = unfinished(cluster_id, marks=marks).without(Left.REQUEST)
    run.screen.say(*other_runs_lines(left.others))
    if left.unread_disks:
        disks = [disk for disk in left.unread_disks if reading is not None or disk.broker not in started]
        _say_disks(run, disks, reading, reported)
    if left.nothing:
        return False
    going_on = running(cluster_id)
    run.screen.say(*open_lines(left, going_on, now()))
    for_resume = not left.without(Left.RECORDS).nothing
    if going_on is None:
        if for_resume:
            run.next(*left.resume)
        # Records are written to brokers, and the address of a controller leads to none.
        brokers = run.target.kind != "controllers"
        for restore in (change for change in left.of(RESTORE_RECORDS) if brokers and not change.waits):
            run.next(*restore.command)
    return for_resume


def _say_disks(
    run: Run, disks: Sequence[UnreadDisk], present: ClusterReading | None, reported: Sequence[UnreadDisk]
) -> None:
    from console.reading.unread_disks import states_of  # noqa: PLC0415  # few journals have any
    from recovery.unread_disks import still_to_read  # noqa: PLC0415
    from recovery.wording.unread_disk_text import unread_disk_lines  # noqa: PLC0415

    states = None
    if present is not None:
        states = present.disks or states_of(disks, present.cluster, present.partitions.states)
    left = tuple(disk for disk in still_to_read(disks, states) if disk not in reported)
    run.screen.say(*unread_disk_lines(left, states))
