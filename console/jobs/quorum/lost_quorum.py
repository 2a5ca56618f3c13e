"""``quorum evidence``: what is left of a quorum that is lost for good."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from backends.metadata_log.directory import MetadataDirError
from console.errors import InputError, Status
from console.jobs.quorum.lost_quorum_evidence import gather_evidence
from console.jobs.quorum.lost_quorum_report import evidence_document, evidence_lines
from console.program import Program
from console.signals import Stopped


def show_evidence(program: Program, dirs: Sequence[Path], *, json: bool) -> int:
    """Status 1 where a directory could not be read or compared. Raises InputError where none could be read."""
    screen, stop = program.screen, program.supervisor.stop

    def progress(done: int, of: int) -> None:
        if stop.signum is not None:
            raise Stopped(stop.signum, in_flight=False)
        screen.progress("reading copies of the metadata log", done, of)

    try:
        evidence = gather_evidence(dirs, progress=progress)
    except MetadataDirError as error:
        raise InputError(str(error)) from None
    screen.out(evidence_document(evidence) if json else evidence_lines(evidence))
    return Status.DONE if evidence.whole else Status.PARTLY
