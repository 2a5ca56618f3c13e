"""Changing a voter's endpoints: on its host; the voter then tells the leader itself (KIP-853, UpdateRaftVoter)."""

from __future__ import annotations

from collections.abc import Iterator

from recovery.membership.preflight import LivenessLimits, strength
from recovery.membership.quorum import Quorum
from recovery.membership.replacement_text import PROPERTIES, start_command, stop_command
from recovery.membership.voters import VoterEndpoint, VoterSet


def has_endpoints(quorum: Quorum, node: int, wanted: tuple[VoterEndpoint, ...]) -> bool:
    """Whether the voter's record has exactly these endpoints."""
    return any(v.key.id == node and set(v.endpoints) == set(wanted) for v in quorum.voters.voters)


def may_restart(quorum: Quorum, node: int) -> str:
    """Why the voter must not be restarted now; "" if it may."""
    rest = VoterSet(tuple(v for v in quorum.voters.voters if v.key.id != node))
    up = len(strength(quorum, rest, LivenessLimits()).up)
    if up >= quorum.voters.majority or len(quorum.voters.voters) == 1:
        return ""
    others = "1 other is" if up == 1 else f"{up} others are"
    return f"restarting {node} would stop the quorum: {others} up, {quorum.voters.majority} are needed"


def endpoint_steps(quorum: Quorum, node: int, wanted: tuple[VoterEndpoint, ...]) -> Iterator[str]:
    """What to do on the host, line by line."""
    recorded = next((v.endpoints for v in quorum.voters.voters if v.key.id == node), ())
    yield f"voter {node} is recorded at {', '.join(map(str, recorded)) or 'no endpoint'}"
    if has_endpoints(quorum, node, wanted):
        yield "it has these endpoints already"
        return
    at = ",".join(map(str, wanted))
    ports = ",".join(f"{e.listener}://:{e.port}" for e in wanted)
    yield f"on the host of controller {node}, in {PROPERTIES}:"
    yield f"     listeners={ports}"
    yield f"     advertised.listeners={at}"
    yield "then restart it:"
    yield f"     {stop_command(node)}"
    yield f"     {start_command()}"
    yield (
        "the other nodes use the old endpoint until the voter has reported the new one; change"
        " controller.quorum.bootstrap.servers wherever it names the old one"
    )
