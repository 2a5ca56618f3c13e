"""The state of a replacement, read from the cluster, so that any run can continue it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from recovery.membership import replacement_text as words
from recovery.membership.preflight import LivenessLimits, before_removing, strength
from recovery.membership.quorum import Quorum, QuorumReplica
from recovery.membership.quorum_health import BEHIND_MS, non_voter_leads
from recovery.membership.replacement import ReplacementPlan, ReplacementRequest, ReplacementStep, StepKind
from recovery.membership.replacement_safety import restart_stops
from recovery.membership.replica_lookup import fetches
from recovery.membership.voters import ReplicaKey, VoterSet

STOPPED_MS = 3_000
"""A controller that has not fetched for this long counts as stopped."""
CLOSE = 20
"""A replica that is at most this many offsets behind counts as caught up: the leader appends all the time."""


@dataclass(frozen=True, slots=True)
class QuorumPicture:
    """The cluster as it is now. ``servers`` is what each node runs with as
    controller.quorum.bootstrap.servers, by "broker 1" or "controller 100"; None for a node that would not
    tell. ``joins`` is what the controllers that tell it run with as controller.quorum.auto.join.enable.
    ``since_ms`` is the leader's clock when a run first read this leader; 0 for a single reading. ``quiet``
    are the numbers of the steps whose controller was seen stopped. ``confirmed`` are the numbers of steps
    that an operator said are done, where the cluster cannot show it. ``mute`` are the nodes of ``servers``
    that will never answer: they were not asked, or the caller lacks the permission.
    """

    quorum: Quorum
    servers: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    joins: Mapping[int, bool] = field(default_factory=dict)
    mute: frozenset[str] = frozenset()
    since_ms: int = 0
    quiet: frozenset[int] = frozenset()
    confirmed: frozenset[int] = frozenset()


class StepSituation(NamedTuple):
    """The state of a step: ``done``, or what it ``waits_for``, or the ``blockers`` that must go first.

    ``caught`` of ``target`` offsets are there, for a progress bar; -1 where the step has none. ``unseen``:
    the cluster does not show whether the step is done; an operator has to confirm it.
    """

    done: bool
    waits_for: str = ""
    blockers: tuple[str, ...] = ()
    caught: int = -1
    target: int = -1
    unseen: bool = False


DONE = StepSituation(True)


def current(plan: ReplacementPlan, picture: QuorumPicture) -> ReplacementStep | None:
    """The first step that is not done; None if all are done. Its commands name the hosts that are known by now."""
    step = next((step for step in plan.steps if not situation(plan, step, picture).done), None)
    if step is None:
        return None
    wanted = _with_hosts(plan.wanted, picture.quorum)
    return step._replace(commands=words.of(wanted, step.kind, step.node, step.key).commands)


def situation(plan: ReplacementPlan, step: ReplacementStep, picture: QuorumPicture) -> StepSituation:
    """The state of one step in the cluster. A step that sends a change still needs its own preflight."""
    quorum = picture.quorum
    situations: Mapping[StepKind, Callable[[], StepSituation]] = {
        StepKind.STOP: lambda: _stopped(plan, step, picture),
        StepKind.START: lambda: _started(plan, step, quorum),
        StepKind.SWAP: lambda: DONE if step.number in picture.confirmed else _swap(step, quorum),
        StepKind.CATCH_UP: lambda: _caught_up(plan, step, quorum),
        StepKind.ADD: lambda: _joined(plan, step, quorum),
        StepKind.JOIN: lambda: _joined(plan, step, quorum),
        StepKind.REMOVE: lambda: _removed(plan, step, picture),
        StepKind.STAY_OUT: lambda: _stays_out(step, picture),
        StepKind.SERVERS: lambda: _servers(plan, step, picture),
        StepKind.CHECK: lambda: _checked(plan, quorum),
    }
    return situations[step.kind]()


def newcomer_of(plan: ReplacementPlan, node: int, quorum: Quorum) -> QuorumReplica | None:
    """The replica of ``node`` that joins: it fetches, with none of the directories that leave."""
    static = plan.wanted.static
    mine = [
        replica
        for replica in quorum.progress
        if replica.key.id == node
        and (static or replica.key not in plan.wanted.leaving)
        and fetches(quorum, replica)
    ]
    return max(mine, key=lambda replica: replica.last_fetch_ms, default=None)


def _stopped(plan: ReplacementPlan, step: ReplacementStep, picture: QuorumPicture) -> StepSituation:
    key, quorum = step.key, picture.quorum
    if step.node in plan.wanted.joining and _started(plan, step, quorum).done:
        return DONE  # what runs there is the one with the new disk
    replica = quorum.progress_of(key) if key is not None else None
    fetched = replica.last_fetch_ms if replica is not None else 0
    # A new leader has received no fetch yet: count from our first reading.
    known = step.number in picture.quiet
    heard = fetched if fetched > 0 or known else picture.since_ms
    # A leader does not fetch; it runs while it answers.
    if key != quorum.leader and quorum.now_ms - heard > STOPPED_MS:
        return DONE
    limits = LivenessLimits()
    rest = VoterSet(tuple(v for v in quorum.voters.voters if v.key != key))
    up = len(strength(quorum, rest, limits).up)
    if key in quorum.voters.keys and up < quorum.voters.majority:
        need = f"{up} other voters are up, and {quorum.voters.majority} are needed without it"
        return StepSituation(False, step.waits_for, (f"stopping {step.node} would stop the quorum: {need}",))
    return StepSituation(False, step.waits_for)


def _started(plan: ReplacementPlan, step: ReplacementStep, quorum: Quorum) -> StepSituation:
    if _is_voter(plan, step.node, quorum) or newcomer_of(plan, step.node, quorum) is not None:
        return DONE
    return StepSituation(False, step.waits_for)


def silent(step: ReplacementStep, quorum: Quorum) -> bool:
    """Whether the voter that a step is about does not fetch: it is down, or its disk is being replaced."""
    if step.node == quorum.leader.id:
        return False
    # A static voter is identified by its node id, whatever the directory id of its new disk.
    newest = max(
        (replica.last_fetch_ms for replica in quorum.progress if replica.key.id == step.node), default=-1
    )
    return newest <= 0 or quorum.now_ms - newest > STOPPED_MS


def _swap(step: ReplacementStep, quorum: Quorum) -> StepSituation:
    limits = LivenessLimits()
    rest = VoterSet(tuple(v for v in quorum.voters.voters if v.key.id != step.node))
    found = strength(quorum, rest, limits)
    if found.down:
        named = ", ".join(str(key.id) for key in found.down)
        return StepSituation(
            False, step.waits_for, (f"another voter is down or behind ({named}): bring it back first",)
        )
    return StepSituation(False, step.waits_for)


def _caught_up(plan: ReplacementPlan, step: ReplacementStep, quorum: Quorum) -> StepSituation:
    if not plan.wanted.static and _is_voter(plan, step.node, quorum):
        return DONE
    replica = newcomer_of(plan, step.node, quorum)
    if replica is None:
        return StepSituation(
            False, f"node {step.node} does not fetch: is it running?", (), 0, quorum.log_end_offset
        )
    near = quorum.log_end_offset - replica.log_end_offset <= CLOSE
    lately = replica.last_caught_up_ms > 0 and quorum.now_ms - replica.last_caught_up_ms <= BEHIND_MS
    if near and lately:
        return DONE
    return StepSituation(False, step.waits_for, (), max(0, replica.log_end_offset), quorum.log_end_offset)


def _joined(plan: ReplacementPlan, step: ReplacementStep, quorum: Quorum) -> StepSituation:
    if _is_voter(plan, step.node, quorum) and (
        step.kind is StepKind.ADD or step.key not in quorum.voters.keys
    ):
        return DONE
    if step.kind is StepKind.ADD and newcomer_of(plan, step.node, quorum) is None:
        return StepSituation(False, step.waits_for, (f"node {step.node} does not fetch: is it running?",))
    return StepSituation(False, step.waits_for)


def _stays_out(step: ReplacementStep, picture: QuorumPicture) -> StepSituation:
    reported = picture.joins.get(step.node)
    gone = step.key not in picture.quorum.voters.keys
    if gone or reported is False or step.number in picture.confirmed:
        return DONE
    mute = any(name.rpartition(" ")[2] == str(step.node) for name in picture.mute)
    return StepSituation(False, step.waits_for, unseen=mute)


def _removed(plan: ReplacementPlan, step: ReplacementStep, picture: QuorumPicture) -> StepSituation:
    quorum = picture.quorum
    if step.key not in quorum.voters.keys and step.key != quorum.leader:
        return DONE
    if step.key not in quorum.voters.keys:
        return StepSituation(False, step.waits_for, (non_voter_leads(quorum),))
    return StepSituation(False, step.waits_for, _not_yet(plan, step, picture))


def _not_yet(plan: ReplacementPlan, step: ReplacementStep, picture: QuorumPicture) -> tuple[str, ...]:
    """Why a removal must not be sent yet, although it is the next step."""
    wanted, key, quorum = plan.wanted, step.key, picture.quorum
    reported = any(s.kind is StepKind.STAY_OUT and s.node == step.node for s in plan.steps)
    if key is None or key not in quorum.voters.keys:
        return ()
    replica = quorum.progress_of(key)
    runs = (
        replica is not None
        and replica.last_fetch_ms > 0
        and quorum.now_ms - replica.last_fetch_ms <= STOPPED_MS
    )
    if wanted.auto_join and not reported and (runs or key == quorum.leader):
        return (f"controller {key.id} runs, and would add itself again: stop it first",)
    return before_removing(quorum, key, LivenessLimits()).refused


def _servers(plan: ReplacementPlan, step: ReplacementStep, picture: QuorumPicture) -> StepSituation:
    if step.number in picture.confirmed:
        return DONE
    found = strength(picture.quorum, picture.quorum.voters, LivenessLimits())
    named = ", ".join(str(key.id) for key in found.down)
    blockers: tuple[str, ...] = (
        f"restarting a controller would stop the quorum ({found.votes}; down or behind: {named})",
    )
    blockers = blockers if restart_stops(found) else ()
    if not picture.servers:
        why = "nobody tells what it runs with: confirm when it is done everywhere"
        return StepSituation(False, why, blockers, unseen=True)
    wanted = set(servers_now(plan, picture.quorum))
    other = [
        name
        for name, configured in picture.servers.items()
        if configured is not None and set(configured) != wanted
    ]
    silent = [name for name, configured in picture.servers.items() if configured is None]
    if not other and not silent:
        return DONE
    problem = f"{', '.join(other)} run with another value" if other else ""
    unasked = f"{', '.join(silent)} would not tell, or were not asked" if silent else ""
    if unasked:
        unasked += ": confirm when it is done there"
    # Brokers may be restarted anyway.
    restarts = [name for name in (*other, *silent) if "controller" in name]
    why = "; ".join(part for part in (problem, unasked) if part)
    return StepSituation(False, why, blockers if restarts else (), unseen=not picture.mute.isdisjoint(silent))


def servers_now(plan: ReplacementPlan, quorum: Quorum) -> tuple[str, ...]:
    """The wanted controller.quorum.bootstrap.servers, with hosts that were not known when it was planned."""
    return _with_hosts(plan.wanted, quorum).servers


def _with_hosts(wanted: ReplacementRequest, quorum: Quorum) -> ReplacementRequest:
    """The request, with the endpoints of joined nodes that had none when it was planned."""
    known = {v.key.id: v.endpoints for v in quorum.voters.voters if v.endpoints}
    came = tuple((n, known[n]) for n in wanted.joining if n in known and not wanted.endpoints_of(n))
    return replace(wanted, endpoints=(*wanted.endpoints, *came))


def _checked(plan: ReplacementPlan, quorum: Quorum) -> StepSituation:
    found = strength(quorum, quorum.voters, LivenessLimits())
    wrong = [str(key) for key in plan.wanted.leaving if key in quorum.voters.keys and not plan.wanted.static]
    missing = [str(n) for n in plan.wanted.joining if n not in {key.id for key in quorum.voters.keys}]
    if not wrong and not missing and not found.down:
        return DONE
    problems = [f"still a voter: {', '.join(wrong)}"] if wrong else []
    problems += [f"no voter: {', '.join(missing)}"] if missing else []
    problems += [f"not up or behind: {', '.join(map(str, found.down))}"] if found.down else []
    return StepSituation(False, "; ".join(problems))


def _is_voter(plan: ReplacementPlan, node: int, quorum: Quorum) -> bool:
    """Whether the one that joins is a voter, not the disk that leaves."""
    return any(key.id == node and key not in plan.wanted.leaving for key in quorum.voters.keys)


def key_of(plan: ReplacementPlan, step: ReplacementStep, quorum: Quorum) -> ReplicaKey | None:
    """The voter that a step is about, as it is known now."""
    if step.key is not None and step.kind is not StepKind.ADD:
        return step.key
    replica = newcomer_of(plan, step.node, quorum)
    return None if replica is None else replica.key
