"""The forms of ``ktriage log-dirs``: the current state, the effect of a failure, and the replacement of a
disk.
"""

from __future__ import annotations

from backends.base.protocol import Backend
from console.cli.base.run import Run
from console.errors import InputError, Status
from console.operations.disk_swap import read_log_dirs
from console.operations.survey.log_dir_survey import Disks, failures, reckon
from console.output.survey.log_dirs_report import dirs_document, dirs_lines, fails_document, fails_lines
from recovery.disks.failed_dirs import FailedDir, last_copies
from recovery.disks.failure_preview import FailurePreview, if_places_fail
from recovery.disks.values import WHOLE_BROKER, DiskError, LogDirPlace


def place(text: str, *, whole: bool) -> LogDirPlace:
    """``BROKER:DIR``, or ``BROKER`` if a whole broker is allowed. Raises InputError."""
    broker, sign, path = text.partition(":")
    if not broker.isdecimal() or (sign and not path) or (not sign and not whole):
        form = "BROKER:DIR or BROKER" if whole else "BROKER:DIR"
        raise InputError(f"{text!r}: give {form}, such as 1:/var/lib/kafka/2")
    return LogDirPlace(int(broker), path.rstrip("/") or path or WHOLE_BROKER)


def show(run: Run, rows: int) -> int:
    """All dirs; the failed ones with the replicas that were on them."""

    async def job(backend: Backend, _stop: object) -> tuple[Disks, tuple[FailedDir, ...]]:
        disks = await read_log_dirs(backend)
        return disks, await failures(backend, disks)

    disks, failed = run.read(job)
    run.screen.out(dirs_document(disks, failed) if run.json else dirs_lines(disks, failed, rows))
    for broker, why in disks.unknown_dirs:
        run.screen.say(f"unknown: log dirs of broker {broker}: {why}")
    gone = {lost.state.tp for lost in last_copies(failed)}
    offline = {lost.state.tp for dir_ in failed for lost in dir_.lost if lost.state.offline}
    if offline - gone:
        run.next("plan", "--all-offline-partitions", "recovery.json")
    elif failed:
        first = failed[0].place
        run.next("log-dirs", "--swap", str(first))
    return Status.PARTLY if failed or disks.unknown_dirs else Status.DONE


def predict(run: Run, places: list[LogDirPlace], rows: int) -> int:
    """The effect of the failures."""

    async def job(backend: Backend, _stop: object) -> FailurePreview:
        disks = await read_log_dirs(backend)
        already = next((where for where in places if where in disks.failed), None)
        if already is not None:
            raise InputError(f"{already} has already failed: see log-dirs --swap {already}")
        try:
            return if_places_fail(await reckon(backend, disks), places)
        except DiskError as error:
            raise InputError(str(error)) from None

    found = run.read(job)
    run.screen.out(fails_document(found) if run.json else fails_lines(found, rows))
    return Status.DONE


def swap_disk(run: Run, where: LogDirPlace, rows: int, *, wait: bool) -> int:
    """The steps of a swap, what must be recovered first, and how many replicas are back."""
    from console.cli.disks.disk_swap import course  # noqa: PLC0415  # for that option only

    return course(run, where, rows, wait=wait)
