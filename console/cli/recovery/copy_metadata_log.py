"""Runs ``ktriage metadata-log copy``."""

from __future__ import annotations

from pathlib import Path

from backends.base.membership import Membership
from console.cli.base.run import Run
from console.cli.quorum.quorum_run import read_quorum
from console.exit_status import Status
from console.operations.history.metadata_log_copy import MetadataLogCopier
from console.operations.history.metadata_log_files import MetadataLogFiles
from console.output.timeline_report import copied_document, copied_event, copied_line
from console.signals import StopRequest
from recovery.wording.quantity_text import human_bytes


def copy_metadata_log(run: Run, to: Path, *, follow: bool) -> int:
    """Copies the log into ``to``; returns the exit status. Raises BackendError, InputError, NotDone, Stopped."""
    return read_quorum(run, lambda quorum, stop: _copy(run, to, quorum, stop, follow=follow))


async def _copy(run: Run, to: Path, quorum: Membership, stop: StopRequest, *, follow: bool) -> int:
    cluster_id = await quorum.open()
    source = await quorum.metadata_log_bytes()
    files = MetadataLogFiles(to, cluster_id)
    screen = run.screen
    copier = MetadataLogCopier(source, files, screen.say, quorum.pause)

    def show() -> None:
        if not run.json:
            screen.out([copied_line(copier.copied, quorum.title, to)])
        elif follow:
            screen.out([copied_event(copier.copied, cluster_id, to)])
        else:
            screen.out(copied_document(copier.copied, cluster_id, to))

    try:
        if files.cut_bytes:
            screen.say(f"{human_bytes(files.cut_bytes)} at the end were no whole batch, and were cut off")
        progress = screen.progress
        await copier.to_end(lambda done, of: progress("copying the metadata log", done, of))
        show()
        if follow:
            screen.say("what is committed from now on is copied as it comes; Ctrl-C ends this")
            try:
                await copier.follow(stop)
            finally:
                show()
    finally:
        files.close()
    return Status.DONE
