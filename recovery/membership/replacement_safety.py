"""The voter set after each step of a replacement: a controller that is down now counts as down at every step."""

from __future__ import annotations

from recovery.membership.preflight import LivenessLimits, VoterSetStrength, strength
from recovery.membership.quorum import Quorum
from recovery.membership.replacement import ReplacementKind, ReplacementPlan, ReplacementStep, StepKind
from recovery.membership.voters import ReplicaKey, Voter, VoterSet


def after(
    plan: ReplacementPlan, step: ReplacementStep, quorum: Quorum, limits: LivenessLimits
) -> VoterSetStrength:
    """The strength of the set after ``step``. A node that joins counts as up: the steps before wait for it."""
    now = {key.id: key for key in quorum.voters.keys}
    down = {key.id for key in strength(quorum, quorum.voters, limits).down}
    keys, missing = [], []
    for place, node in enumerate(step.voters):
        # Where the new disk is added before the old one is removed, the old one is listed first.
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
    """Why the plan cannot be carried out while the present controllers are down; "" if it can."""
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
    """Whether restarting a controller would stop the quorum only because others are down."""
    return bool(found.down) and found.spare < 1


def _first(plan: ReplacementPlan, found: VoterSetStrength) -> str:
    """The step to do first."""
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
