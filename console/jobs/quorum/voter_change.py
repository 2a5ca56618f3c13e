"""One change of the voters: prepare, preflight, send once, read the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from backends.base.errors import BackendError, NotOffered
from backends.base.membership import CHANGE_TIMEOUT, ChangeAnswer, ChangeEnd, Membership
from backends.base.protocol import Recorder
from console.change.elapsed_time import ElapsedWait
from console.jobs.quorum.prepared_change import PreparedChange, RequestedVoter, VoterChange, differences
from console.reading.quorum_state import read_rebuild, settled_quorum
from recovery.membership.after_rebuild import adding_refusal
from recovery.membership.preflight import (
    STATIC,
    EndpointProbe,
    before_adding,
    before_removing,
    explain_timeout,
)
from recovery.membership.quorum import Quorum, TimeoutCause
from recovery.membership.replica_lookup import NotChosen, newcomer, voter_of
from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint
from recovery.model import Unknown, Why

COMMIT_SECONDS = 10.0
"""Seconds until a change that was written, but not answered, may be committed."""
POLL = 0.2
READ_AGAIN_AFTER = 1.0
"""Seconds until a second preflight if the first found a late voter: one late fetch is not a failure."""
FRESH_MS = 500
"""The maximum age of a preflight when its change is sent, by the leader's clock. After a question it is
always exceeded.
"""


@dataclass(frozen=True, slots=True)
class VoterChangeResult:
    """The result of a change. ``done``: the requested voter set is committed; None: that is not known.
    ``cause`` is the cause of a timeout, ``after`` the last reading of the quorum. ``unregistered``: the answer to
    the removal of the controller's registration, Unknown: that could not be sent, None: it was not asked for.
    """

    prepared: PreparedChange
    answer: ChangeAnswer | None = None
    done: bool | None = None
    cause: TimeoutCause | None = None
    after: Quorum | None = None
    detail: str = ""
    unregistered: ChangeAnswer | Unknown | None = None

    @property
    def unsent(self) -> bool:
        """Whether the change was only shown, and would be allowed."""
        return self.answer is None and self.prepared.verdict.allowed and not self.detail


async def prepare_add(
    membership: Membership, node_id: int, directory_id: str | None, endpoints: Sequence[VoterEndpoint] = ()
) -> PreparedChange:
    """Reads, probes and judges; sends nothing. Raises NotChosen, NoLeader, BackendError."""
    return await _prepare(
        membership, VoterChange.ADD, RequestedVoter(node_id, directory_id, tuple(endpoints))
    )


async def prepare_remove(membership: Membership, node_id: int, directory_id: str | None) -> PreparedChange:
    """The same as :func:`prepare_add`, for a removal."""
    return await _prepare(membership, VoterChange.REMOVE, RequestedVoter(node_id, directory_id))


async def execute(
    membership: Membership,
    prepared: PreparedChange,
    recorder: Recorder,
    tell: Callable[[str], None] = lambda _said: None,
) -> VoterChangeResult:
    """Sends the change if its preflight allows it and is still valid, then reads the quorum until the result
    is known.

    Never sends twice. ``tell`` is called with what the run waits for. Raises BackendError only if nothing was
    sent.
    """
    against = "; ".join(prepared.verdict.refused) or await _since_shown(membership, prepared, tell)
    if against:
        return VoterChangeResult(prepared, None, False, detail=against)
    tell(f"sent: {prepared.sentence}; waiting at most {CHANGE_TIMEOUT:.0f} s for the commit")
    if prepared.change is VoterChange.ADD:
        answer = await membership.add_voter(prepared.voter, recorder)
    else:
        answer = await membership.remove_voter(prepared.voter.key, recorder)
    if answer.ended is ChangeEnd.DONE:
        return VoterChangeResult(prepared, answer, True)
    tell(f"the answer: {answer}; checking for about {COMMIT_SECONDS:.0f} s whether the change is written")
    return await _explained(membership, prepared, answer, tell)


async def unregistered(membership: Membership, node_id: int, recorder: Recorder) -> ChangeAnswer | Unknown:
    """The answer to the removal of that controller's registration; Unknown: it could not be sent."""
    try:
        return await membership.unregister_controller(node_id, recorder)
    except BackendError as error:
        return Unknown(Why.NOT_OFFERED if isinstance(error, NotOffered) else Why.FAILED, str(error))


def is_done(answer: ChangeAnswer | Unknown | None) -> bool:
    return isinstance(answer, ChangeAnswer) and answer.ended is ChangeEnd.DONE


async def _since_shown(membership: Membership, shown: PreparedChange, tell: Callable[[str], None]) -> str:
    """What has changed since the preflight; the preflight is repeated unless it has just been made."""
    quorum = await membership.describe()
    same = quorum.leader_epoch == shown.quorum.leader_epoch
    if same and 0 <= quorum.now_ms - shown.quorum.now_ms <= FRESH_MS:
        return ""
    tell("reading the quorum once more")
    try:
        why = differences(shown, await _prepare(membership, shown.change, shown.given))
    except NotChosen as error:
        why = str(error)
    return why and f"the quorum has changed since this was shown: {why}"


async def _prepare(membership: Membership, change: VoterChange, given: RequestedVoter) -> PreparedChange:
    make = _prepare_add if change is VoterChange.ADD else _prepare_remove
    prepared = await make(membership, given)
    if prepared.verdict.allowed:
        return prepared
    await membership.pause(READ_AGAIN_AFTER)
    return await make(membership, given)


async def _prepare_add(membership: Membership, given: RequestedVoter) -> PreparedChange:
    """The voters and who is up are read last, because waiting for a silent address takes time."""
    described = await membership.describe()
    _newcomer(described, given.node_id, given.directory_id)
    endpoints = given.endpoints or await listed_endpoints(membership, described, given.node_id)
    probes = tuple([await probe_endpoint(membership, e, given.node_id) for e in endpoints])
    rebuilt = await read_rebuild(membership, described)
    quorum, limits = await settled_quorum(membership, given.node_id)
    voter = Voter(_newcomer(quorum, given.node_id, given.directory_id), endpoints)
    verdict = before_adding(quorum, voter, probes, membership.rules, limits)
    if isinstance(rebuilt, Unknown):
        note = f"whether an old voter had this disk before a rebuild of the quorum is not known ({rebuilt})"
        verdict = verdict._replace(warnings=(*verdict.warnings, note))
    elif why := adding_refusal(voter.key, rebuilt):
        verdict = verdict._replace(refused=(*verdict.refused, why))
    return PreparedChange(VoterChange.ADD, given, voter, quorum, verdict, probes)


def _newcomer(quorum: Quorum, node_id: int, directory_id: str | None) -> ReplicaKey:
    if quorum.kraft_version < 1:
        # Static voters have no directories to choose by; the preflight reports a directory that is given.
        if directory_id is None:
            raise NotChosen(STATIC)
        return ReplicaKey(node_id, directory_id)
    return newcomer(quorum, node_id, directory_id)


async def _prepare_remove(membership: Membership, given: RequestedVoter) -> PreparedChange:
    described = await membership.describe()
    joins = await _auto_join(membership, described, voter_of(described, given.node_id, given.directory_id))
    quorum, limits = await settled_quorum(membership)
    key = voter_of(quorum, given.node_id, given.directory_id)
    verdict = before_removing(quorum, key, limits, auto_join=joins)
    return PreparedChange(VoterChange.REMOVE, given, Voter(key), quorum, verdict)


async def _auto_join(membership: Membership, quorum: Quorum, key: ReplicaKey) -> bool | None:
    """Whether that voter would add itself again; None if its settings cannot be read."""
    voter = quorum.voters.find(key)
    if voter is None or not voter.endpoints:
        return None
    answer = await membership.probe(voter.endpoints[0].host, voter.endpoints[0].port, key.id)
    if isinstance(answer, Unknown) or isinstance(answer.settings, Unknown):
        return None
    # Before 4.2 there is no such setting.
    return bool(answer.settings.auto_join)


async def listed_endpoints(membership: Membership, quorum: Quorum, node_id: int) -> tuple[VoterEndpoint, ...]:
    """The node's endpoints in the listing of controllers; empty if it is not listed."""
    listed = await membership.controllers()
    if isinstance(listed, Unknown):
        return ()
    return tuple(VoterEndpoint(quorum.default_listener, c.host, c.port) for c in listed if c.id == node_id)


async def probe_endpoint(membership: Membership, endpoint: VoterEndpoint, node_id: int) -> EndpointProbe:
    """The node that answers at that endpoint, for the preflight."""
    answer = await membership.probe(endpoint.host, endpoint.port, node_id)
    return EndpointProbe(endpoint, answer if isinstance(answer, Unknown) else answer.identity)


async def _explained(
    membership: Membership, prepared: PreparedChange, answer: ChangeAnswer, tell: Callable[[str], None]
) -> VoterChangeResult:
    """Reads the quorum until the change is committed, or until it is clear that it was not made."""
    key, adding = prepared.voter.key, prepared.change is VoterChange.ADD
    waited, after, shown = ElapsedWait(membership), None, ""
    while waited.seconds < COMMIT_SECONDS:
        try:
            after = (await settled_quorum(membership)).quorum
        except BackendError as error:
            detail = str(error)
        else:
            if (key in after.voters.keys) != adding:
                break
            if after.change_pending is False:
                return VoterChangeResult(prepared, answer, True, after=after)
            detail = str(TimeoutCause.NOT_COMMITTED)
        if detail != shown:
            shown = detail
            tell(f"not visible yet: {detail}")
        await waited.pause(POLL)
    if after is None or (key in after.voters.keys) == adding:
        return VoterChangeResult(
            prepared, answer, None, TimeoutCause.NOT_COMMITTED if after else None, after, detail
        )
    cause = None
    if answer.error == "REQUEST_TIMED_OUT":
        reachable = not any(isinstance(probe.answer, Unknown) for probe in prepared.probes)
        cause = explain_timeout(after, key, adding=adding, reachable=reachable)
    return VoterChangeResult(prepared, answer, False, cause, after, answer.detail)
