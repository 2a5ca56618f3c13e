"""``ktriage quorum update-endpoint``: after its host was changed, a voter registers its new endpoint itself."""

from __future__ import annotations

from backends.base.errors import BackendError
from backends.base.membership import Membership
from console.change.elapsed_time import ElapsedWait
from console.cli.base.quorum_run import given_endpoints, read_quorum
from console.cli.base.run import Run
from console.errors import InputError, NotDone, Status
from console.jobs.quorum.voter_change import probe_endpoint
from console.output.json_document import document
from console.signals import StopRequest
from recovery.membership.preflight import STATIC
from recovery.membership.quorum import Quorum
from recovery.membership.replica_lookup import NotChosen, voter_of
from recovery.membership.voter_endpoints import endpoint_steps, has_endpoints, may_restart
from recovery.membership.voters import VoterEndpoint
from recovery.model import Unknown
from recovery.wording.quantity_text import printable

PATIENCE = 3600.0
POLL = 0.5


def update_endpoint(run: Run, node: int, endpoints: tuple[str, ...], *, dry_run: bool) -> int:
    """Shows what to change on the host, and waits until the voter's record has the new endpoint."""
    new_endpoints = given_endpoints(endpoints)
    if not new_endpoints:
        raise InputError("quorum update-endpoint needs --endpoint LISTENER://HOST:PORT, the new endpoint")

    async def job(membership: Membership, stop: StopRequest) -> bool:
        await membership.open()
        quorum = await membership.describe()
        try:
            voter_of(quorum, node, None)
        except NotChosen as error:
            raise NotDone(str(error)) from None
        _show(run, quorum, node, new_endpoints)
        if dry_run:
            return has_endpoints(quorum, node, new_endpoints)
        with stop.in_flight():
            return await _until(run, membership, node, new_endpoints, stop)

    there = read_quorum(run, job)
    if run.json:
        fields = {"node": node, "endpoints": [str(e) for e in new_endpoints], "done": there}
        run.screen.out(document("quorum-update-endpoint", fields))
    elif there:
        run.screen.out(
            [f"voter {node} has registered its new endpoint: {', '.join(map(str, new_endpoints))}"]
        )
    return Status.DONE if there or dry_run else Status.PARTLY


def _show(run: Run, quorum: Quorum, node: int, new_endpoints: tuple[VoterEndpoint, ...]) -> None:
    if quorum.kraft_version >= 1 and quorum.default_listener not in {e.listener for e in new_endpoints}:
        raise InputError(
            f"the controllers reach each other by {quorum.default_listener}:"
            f" give --endpoint {quorum.default_listener}://HOST:PORT"
        )
    refused = STATIC if quorum.kraft_version < 1 else may_restart(quorum, node)
    if refused and not has_endpoints(quorum, node, new_endpoints):
        raise NotDone(f"{refused}; nothing was changed")
    lines = endpoint_steps(quorum, node, new_endpoints)
    if run.json:
        run.screen.say(*lines)
    else:
        run.screen.out(lines)


async def _until(
    run: Run, membership: Membership, node: int, new_endpoints: tuple[VoterEndpoint, ...], stop: StopRequest
) -> bool:
    waited, shown = ElapsedWait(membership), ""
    while waited.seconds < PATIENCE and not stop:
        try:
            if has_endpoints(await membership.describe(), node, new_endpoints):
                return True
            status = await _who(membership, node, new_endpoints)
        except BackendError as error:
            status = str(error)
        if status != shown:
            shown = status
            run.screen.say(printable(f"waiting: {status}"))
        await waited.pause(POLL)
    return False


async def _who(membership: Membership, node: int, new_endpoints: tuple[VoterEndpoint, ...]) -> str:
    probe = await probe_endpoint(membership, new_endpoints[0], node)
    if isinstance(probe.answer, Unknown):
        return f"{new_endpoints[0]} does not answer yet ({probe.answer})"
    if probe.answer.node_id != node:
        return f"node {probe.answer.node_id} answers at {new_endpoints[0]}, not {node}"
    return f"node {node} answers at {new_endpoints[0]}; the leader does not have the new endpoint yet"
