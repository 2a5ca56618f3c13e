"""``quorum evidence`` and ``quorum rebuild``: what is left of a quorum that is lost for good, and the way out."""

from __future__ import annotations

import json as json_text
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from backends.metadata_log.directory import MetadataDirError
from backends.metadata_log.rebuild_steps import UNDONE_BEFORE, unresolved
from console.cli.base.run import Run
from console.errors import InputError, NotDone, Status
from console.jobs.quorum.lost_quorum_evidence import gather_evidence
from console.jobs.quorum.lost_quorum_report import evidence_document, evidence_lines, next_plan_lines
from console.jobs.quorum.quorum_rebuild import (
    RebuildRefused,
    RebuildRequest,
    apply_rebuild,
    make_rebuild,
    read_rebuild,
    save_rebuild,
    save_rehearsed,
    script_of,
    undo_rebuild,
)
from console.jobs.quorum.quorum_rebuild_report import (
    applied_lines,
    host_lines,
    next_line,
    rebuild_document,
    rebuild_lines,
    rebuild_markdown,
    rehearsed_lines,
    remember_line,
    where,
)
from console.jobs.quorum.rebuild_rehearsal import rehearse
from console.new_files import write_new
from console.program import Program
from console.provenance import user
from console.reading.remembered_voters import (
    forget_rebuild,
    remember_copies,
    remember_rebuild,
    remembered_quorum,
)
from console.signals import Stopped
from recovery.membership.controllers_asked import old_voter_names
from recovery.membership.lost_quorum import CopyRelation
from recovery.membership.quorum_rebuild import FORMAT, RebuildPlan, digest
from recovery.wording.quantity_text import both, counted


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
    screen.say(*next_plan_lines(evidence))
    remember_copies(one.copy for one in evidence.copies if one.relation is not CopyRelation.OTHER_CLUSTER)
    return Status.DONE if evidence.whole else Status.PARTLY


def plan_rebuild(program: Program, request: RebuildRequest, file: Path, *, json: bool) -> int:
    """Makes the plan, writes it to the new ``file`` and shows it. Raises NotDone with every reason against it."""
    try:
        made = make_rebuild(request)
    except RebuildRefused as refused:
        program.screen.say(*refused.reasons)
        raise
    save_rebuild(made.plan, file)
    screen = program.screen
    screen.say(*_unresolved(made.plan))
    if json:
        screen.out(rebuild_document(made.plan, file, applied=None))
    else:
        screen.out(rebuild_lines(made.plan, file))
    screen.say(f"wrote {file}; nothing else was written", next_line(made.plan, file))
    return Status.DONE


class Reviewed(NamedTuple):
    """Who reviewed which plan (two-person rule)."""

    by: str
    digest: str

    @classmethod
    def of(cls, by: str | None, digest: str | None) -> Reviewed | None:
        """By what ``--reviewed-by`` and ``--digest`` say. Raises InputError."""
        if by is None and digest is None:
            return None
        if by is None or digest is None:
            raise InputError("give --reviewed-by and --digest together")
        if by.strip() == user():
            raise InputError(f"--reviewed-by {by}: name somebody else; {user()} runs this command")
        return cls(by, digest)

    def __str__(self) -> str:
        return f"reviewed by {self.by}, digest {self.digest}"


def is_rebuild(file: Path) -> bool:
    """Whether the file says that it is a plan of a rebuild; of any format."""
    try:
        members = json_text.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    found = members.get("format") if isinstance(members, dict) else None
    return isinstance(found, str) and found.startswith(FORMAT.rpartition("/")[0])


def review_rebuild(run: Run, file: Path, *, markdown_wanted: bool) -> int:
    """Shows the plan for a second person. Raises InputError."""
    plan, screen = read_rebuild(file), run.screen
    if run.named is not None:
        raise InputError(
            f"{file}: is a plan of quorum rebuild, which is compared with directories, not with a cluster"
        )
    if markdown_wanted:
        screen.out(rebuild_markdown(plan, file))
    elif run.json:
        screen.out(rebuild_document(plan, file, applied=None))
    else:
        screen.out(rebuild_lines(plan, file))
    screen.say(next_line(plan, file, reviewed=True))
    return Status.DONE


def read_reviewed(file: Path, reviewed: Reviewed | None) -> RebuildPlan:
    """The plan, if it is the one that was reviewed. Raises InputError."""
    plan = read_rebuild(file)
    if reviewed is not None and digest(plan) != reviewed.digest.strip().lower():
        raise InputError(
            f"{file}: this is not the plan that was reviewed (a rehearsal changes it too); nothing was written."
            " Have it reviewed: ktriage review"
        )
    return plan


def carry_out(
    program: Program,
    file: Path,
    reason: str,
    *,
    undo: bool,
    ask: bool,
    json: bool,
    reviewed: Reviewed | None = None,
) -> int:
    """Applies the plan, or puts back what was there before. Raises InputError, NotDone."""
    plan, screen = read_reviewed(file, reviewed), program.screen
    if ask and not screen.interactive:
        raise InputError("there is no terminal to ask on: give --yes --reason TEXT; nothing was written")
    screen.say(*(() if undo else _unresolved(plan)))
    shown = rebuild_lines(plan, file)
    if json or undo:
        screen.say(*shown)
    else:
        screen.out(shown)
    if ask:
        reason = program.supervisor.run(lambda _stop: _confirmed(program, plan, reason, undo=undo))
    if undo:
        away = undo_rebuild(plan, reason)
        forget_rebuild(plan)
        put_back = f"is as it was before (Kafka makes the indexes anew); the rebuilt files: {away}"
        screen.out([f"{plan.target}: {UNDONE_BEFORE if away is None else put_back}"])
        return Status.DONE
    try:
        done = apply_rebuild(plan, reason, reviewed="" if reviewed is None else str(reviewed))
    except RebuildRefused as refused:
        screen.say(*refused.reasons)
        raise
    remember_rebuild(plan, file, reason)
    screen.out(rebuild_document(plan, file, applied=True) if json else applied_lines(done, file))
    screen.say(*done.returned)
    return Status.PARTLY if done.returned else Status.DONE


def remember_elsewhere(program: Program, file: Path, *, undo: bool) -> int:
    """Makes known here that the plan was carried out on another host, or taken back there. Nobody is asked, and
    nothing else is written. Raises InputError.
    """
    plan = read_rebuild(file)
    earlier = remembered_quorum(plan.cluster_id)
    node = plan.voter.key.id
    if undo:
        forget_rebuild(plan)
        program.screen.say(
            f"cluster {plan.cluster_id}: the rebuild that made controller {node} the only voter is"
            " forgotten here"
        )
    elif earlier is not None and earlier.epoch > plan.epoch:
        program.screen.say(
            f"cluster {plan.cluster_id}: a newer quorum is known here already (epoch"
            f" {earlier.epoch:,}, seen {earlier.at})"
        )
    else:
        # When the plan was carried out there is not known here; its records have the time of the plan.
        at = datetime.fromtimestamp(plan.time_ms / 1000, UTC).isoformat(timespec="seconds")
        remember_rebuild(plan, file, "carried out on another host", at)
        old = old_voter_names([voter.key for voter in plan.other_voters], [plan.voter.key])
        program.screen.say(
            f"cluster {plan.cluster_id}: known here from now on: controller {node} is the only voter,"
            f" and {both(old)} must not run with their old metadata logs"
        )
    return Status.DONE


def write_script(program: Program, file: Path, script: Path, reviewed: Reviewed | None = None) -> int:
    """Writes the plan as a script to the new file ``script``. Raises InputError, NotDone."""
    plan, screen = read_reviewed(file, reviewed), program.screen
    by = "" if reviewed is None else str(reviewed)
    write_new(script, script_of(plan, rebuild_lines(plan, file), reviewed=by), 0o755)
    screen.out(rebuild_lines(plan, file))
    screen.say(
        f"wrote {script}; nothing else was written",
        f"next: python3 {shlex.quote(script.name)} ({where(plan)}; it asks first)",
        remember_line(file),
    )
    screen.say(*host_lines(plan))
    return Status.DONE


def rehearse_plan(program: Program, file: Path, kafka: Path, limit_seconds: float, *, json: bool) -> int:
    """Rehearses the plan on a copy and writes the report into its file. Raises InputError, NotDone, Stopped."""
    plan, screen, stop = read_rebuild(file), program.screen, program.supervisor.stop

    def progress(what: str, done: int, of: int) -> None:
        if stop.signum is not None:
            raise Stopped(stop.signum, in_flight=False)
        screen.progress(what, done, of)

    rehearsed = rehearse(plan, kafka, limit_seconds, progress)
    save_rehearsed(rehearsed, file)
    screen.out(rebuild_document(rehearsed, file, applied=None) if json else rehearsed_lines(rehearsed, file))
    passed = rehearsed.rehearsal is not None and rehearsed.rehearsal.is_passed
    screen.say(
        f"wrote the report into {file}: its digest is now {digest(rehearsed)}; nothing else was written",
        *((next_line(rehearsed, file),) if passed else ()),
    )
    return Status.DONE if passed else Status.PARTLY


def _unresolved(plan: RebuildPlan) -> tuple[str, ...]:
    """Hosts of the new voter whose names this host does not know: mistyped, or known elsewhere."""
    return tuple(filter(None, (unresolved(endpoint.host) for endpoint in plan.voter.endpoints)))


_NAMED = 10
"""Partitions of strays that the question names; the plan above it has more."""


async def _confirmed(program: Program, plan: RebuildPlan, reason: str, *, undo: bool) -> str:
    """Each voter that must never come back is typed by its id; who mistypes is asked once more. Returns the
    ``reason``, which is asked for where none was given. Raises NotDone.
    """
    run = Run(program, None, json=False)
    wanted, question = _wanted(plan, undo=undo)
    for again in (True, False):
        if sorted((await run.ask(question)).replace(",", " ").split()) == sorted(wanted.split()):
            break
        if not again:
            raise NotDone(f"not confirmed ({wanted} was expected); nothing was written")
        program.screen.say(f"{wanted} was expected; nothing was written yet")
    why = reason or await run.ask("Type the reason, for the journal:")
    if not why:
        raise NotDone("not confirmed: give a reason for the journal; nothing was written")
    return why


def _wanted(plan: RebuildPlan, *, undo: bool) -> tuple[str, str]:
    """What has to be typed, and the question."""
    if undo:
        return str(plan.key.id), f"put the old log of node {plan.key.id} back? Type its node id:"
    wanted = " ".join(map(str, plan.dead)) or str(plan.key.id)
    question = "type the node ids of the controllers that never start again with the metadata logs they had:"
    if not plan.dead:
        question = f"type the node id of the controller that becomes the only voter ({plan.key.id}):"
    if plan.strays:
        partitions = list(dict.fromkeys(f"{one.topic}-{one.partition}" for one in plan.strays))
        more = ", …" if len(partitions) > _NAMED else ""
        question = (
            f"brokers will set {counted(len(plan.strays), 'folder')} aside as strays"
            f" ({', '.join(partitions[:_NAMED])}{more}). To go on, {question}"
        )
    return wanted, question
