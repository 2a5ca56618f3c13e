"""``ktriage quorum add``, ``remove``, ``upgrade`` and ``update-endpoint``."""

from __future__ import annotations

from dataclasses import dataclass

from backends.base.errors import NoLeader
from backends.base.membership import Membership
from console.cli.base.run import Run
from console.cli.quorum.quorum_run import given_directory, given_endpoints, work
from console.cli.quorum.recording import recorded
from console.errors import InputError, NotDone
from console.exit_status import Status
from console.operations.remembered_voters import leaderless, remember_new_voters
from console.operations.voter_change import Changed, Prepared, carry_out, prepare_add, prepare_remove
from console.output.quorum_change_report import changed_document, changed_lines
from console.output.quorum_report import preflight_lines
from console.signals import StopRequest
from recovery.membership.replica_lookup import NotChosen
from recovery.wording.quantity_text import printable


@dataclass(frozen=True, slots=True)
class Request:
    """One verb with what it was given."""

    verb: str
    node: int | None
    directory_id: str | None
    endpoints: tuple[str, ...]
    dry_run: bool
    ask: bool
    reason: str
    confirmed: frozenset[int] = frozenset()

    @property
    def node_id(self) -> int:
        """Raises InputError where none was given."""
        if self.node is None:
            raise InputError(f"quorum {self.verb} needs the controller's node id")
        return self.node


def change(run: Run, request: Request) -> int:
    """Prepares, shows the preflight, asks, sends, tells what came of it."""
    if request.verb == "update-endpoint":
        from console.cli.quorum.endpoint_update import update_endpoint  # noqa: PLC0415  # for that verb only

        # It sends nothing, so there is nothing to ask, and a cluster that may only be read may be waited for.
        return update_endpoint(run, request)
    if not request.dry_run:
        run.refuse_if_read_only()
        if request.ask:
            run.refuse_unless_interactive("--yes and --reason TEXT, or --dry-run")
    if request.verb == "upgrade":
        if request.node is not None:
            raise InputError(f"quorum upgrade is for the whole quorum and takes no node ({request.node})")
        from console.cli.quorum.kraft_upgrade import upgrade  # noqa: PLC0415  # for that verb only

        return upgrade(run, request)
    return _change_voters(run, request)


def _change_voters(run: Run, request: Request) -> int:
    node_id = request.node_id
    directory, endpoints = given_directory(request.directory_id), given_endpoints(request.endpoints)

    async def prepare(membership: Membership) -> Prepared:
        if request.verb == "add":
            return await prepare_add(membership, node_id, directory, endpoints)
        return await prepare_remove(membership, node_id, directory)

    async def job(membership: Membership, stop: StopRequest) -> Changed:
        cluster_id = await membership.open()
        try:
            if request.dry_run:
                return Changed(_shown(run, await prepare(membership)), None, None)
            with recorded(run, cluster_id, request.reason) as journal:
                prepared = _shown(run, await prepare(membership))
                if not prepared.verdict.allowed:
                    journal.conclude(Status.PARTLY)
                    return Changed(prepared, None, False)
                if request.ask:
                    await _confirm(run, prepared)
                with stop.in_flight():
                    changed = await carry_out(
                        membership, prepared, journal, lambda said: run.screen.say(printable(said))
                    )
                    await remember_new_voters(membership)
                    journal.conclude(Status.DONE if changed.done else Status.PARTLY)
                    return changed
        except NotChosen as error:
            raise NotDone(f"{error}; nothing was sent") from None
        except NoLeader as error:
            raise await leaderless(membership, cluster_id, error) from None

    return _told(run, request, work(run, job))


def _told(run: Run, request: Request, changed: Changed) -> int:
    """Prints what came of it; a change that was not sent is refused, but for a dry run that would be."""
    against = changed.prepared.verdict.refused or tuple(filter(None, (changed.detail,)))
    if run.json:
        run.screen.out(changed_document(request.verb, changed))
    elif changed.answer is not None:
        run.screen.out(changed_lines(changed))
    if changed.answer is None and against:
        for reason in against:
            run.screen.say(printable(f"refused: {reason}"))
        run.screen.say("nothing was sent")
        if not changed.prepared.verdict.refused:
            run.next("quorum", "status")
        return Status.PARTLY
    if request.dry_run:
        return Status.DONE
    run.next("quorum", "status")
    return Status.DONE if changed.done else Status.PARTLY


def _shown(run: Run, prepared: Prepared) -> Prepared:
    lines = preflight_lines(prepared.verdict, prepared.sentence)
    if run.json:
        run.screen.say(*lines)
    else:
        run.screen.out(lines)
    return prepared


async def _confirm(run: Run, prepared: Prepared) -> None:
    node = prepared.voter.key.id
    question = f"To {prepared.sentence} ({run.target.title}), type the node id:"
    await run.confirm_number(question, node)
