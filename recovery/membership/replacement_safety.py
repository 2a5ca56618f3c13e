"""A replacement's voter sets with today's health: who is down now is taken to be down at every step."""

from __future__ import annotations

from recovery.membership.preflight import LivenessLimits, VoterSetStrength, strength
from recovery.membership.quorum import Quorum
from recovery.membership.replacement import ReplacementKind, ReplacementPlan, ReplacementStep, StepKind
from recovery.membership.voters import ReplicaKey, Voter, VoterSet


def after(
    plan: ReplacementPlan, step: ReplacementStep, quorum: Quorum, limits: LivenessLimits
) -> VoterSetStrength:
    """What the set after ``step`` stands. A node that comes counts as up: the steps before wait for it."""
    now = {key.id: key for key in quorum.voters.keys}
    down = {key.id for key in strength(quorum, quorum.voters, limits).down}
    keys, missing = [], []
    for place, node in enumerate(step.voters):
        # Where the new disk is added beside the old one, the old one is listed first.
        old = node in step.voters[place + 1 :]
        key = now.get(node, ReplicaKey(node))
        keys.append(key)
        if node in down and (old or node not in plan.wanted.joining):
            missing.append(place)
    up = tuple(key for place, key in enumerate(keys) if place not in missing)
    return VoterSetStrength(
        VoterSet(tuple(Voter(key) for key in keys)), up, tuple(keys[place] for place in missing)
    )


def refusal(plan: ReplacementPlan, quorum: Quorum, limits: LivenessLimits) -> str:
    """Why the plan cannot be gone through while those are down that are down now; empty where it can."""
    for step in plan.steps:
        found = after(plan, step, quorum, limits)
        if step.kind is StepKind.SWAP and (others := _others_down(found, step.node)):
            return (
                f"step {step.number} ({step.title}) takes a voter away while another is down or behind: {others}."
                " Bring that one back first"
            )
        if step.kind in (StepKind.ADD, StepKind.REMOVE, StepKind.JOIN) and not found.commits:
            when = f"after step {step.number} ({step.title})"
            return f"{when} nothing could be committed: {found.votes}; {_first(plan, found)}"
        if step.kind is StepKind.SERVERS and restart_stops(found):
            return (
                f"step {step.number} restarts every controller, and each restart would stop the quorum:"
                f" {found.votes}; {_first(plan, found)}"
            )
    return ""


def _others_down(found: VoterSetStrength, node: int) -> str:
    return ", ".join(str(key.id) for key in found.down if key.id != node)


def restart_stops(found: VoterSetStrength) -> bool:
    """Whether a controller must not be restarted for those that are down: with all of them up it could be."""
    return bool(found.down) and found.spare < 1


def _first(plan: ReplacementPlan, found: VoterSetStrength) -> str:
    """What is to be done before."""
    wanted = plan.wanted
    named = ", ".join(str(key.id) for key in found.down)
    down = {key.id for key in found.down}
    going = down <= {key.id for key in wanted.leaving}
    if going and wanted.kind is ReplacementKind.PLANNED:
        return f"{named} is down: --why host replaces a controller that is lost"
    if going and wanted.kind is ReplacementKind.SHRINK:
        return f"{named} is down: ktriage quorum remove takes out one that is lost"
    command = f"ktriage quorum replace {min(down)} --why disk"
    return f"{named} is down or behind: bring it back or replace it first ({command})"
