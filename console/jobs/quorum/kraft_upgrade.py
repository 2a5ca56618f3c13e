"""kraft.version 0 to 1: every voter and broker is asked first, and the controller validates the request."""

from __future__ import annotations

from dataclasses import dataclass

from backends.base.errors import BackendError
from backends.base.membership import (
    KRAFT_VERSION,
    ChangeAnswer,
    ChangeEnd,
    ClusterNode,
    Membership,
    NodeProbe,
    ProcessRole,
)
from backends.base.protocol import Recorder
from console.change.elapsed_time import ElapsedWait
from recovery.membership.preflight import LivenessLimits, strength
from recovery.membership.quorum import Quorum
from recovery.model import Unknown

LEVEL = 1
CONFIRM_WITHIN = 15.0
POLL = 0.25


@dataclass(frozen=True, slots=True)
class UpgradeCheck:
    """The problems that prevent the upgrade; nothing is sent while there is one. ``already``: the cluster
    already has the level.
    """

    quorum: Quorum
    nodes: tuple[ClusterNode, ...]
    refused: tuple[str, ...]
    warnings: tuple[str, ...]
    already: bool


async def check_upgrade(membership: Membership) -> UpgradeCheck:
    """Reads the quorum, asks every node, and lets the controller validate the request. Raises NoLeader,
    BackendError.
    """
    quorum = await membership.describe()
    nodes = await membership.nodes()
    if quorum.kraft_version >= LEVEL:
        return UpgradeCheck(quorum, nodes, (), (), True)
    refused = [fault for node in nodes if (fault := _fault(node)) is not None]
    found = strength(quorum, quorum.voters, LivenessLimits())
    refused += [f"voter {key} does not fetch, or is behind" for key in found.down]
    missing = {key.id for key in quorum.voters.keys} - {
        n.id for n in nodes if n.role is not ProcessRole.BROKER
    }
    refused += [f"voter {node} could not be asked: its address is not known" for node in sorted(missing)]
    warnings = []
    if not any(node.role is not ProcessRole.CONTROLLER for node in nodes):
        warnings.append("the brokers were not asked: the controller checks the versions that they registered")
    if not refused:
        answer = await membership.upgrade_feature(KRAFT_VERSION, LEVEL, None, dry_run=True)
        if answer.ended is not ChangeEnd.DONE:
            refused.append(f"the controller would refuse: {answer}")
    return UpgradeCheck(quorum, nodes, tuple(refused), tuple(warnings), False)


async def upgrade(membership: Membership, recorder: Recorder) -> tuple[ChangeAnswer, bool]:
    """Sends the upgrade; returns whether the level was seen afterwards. Raises BackendError if nothing was
    sent.
    """
    answer = await membership.upgrade_feature(KRAFT_VERSION, LEVEL, recorder, dry_run=False)
    waited = ElapsedWait(membership)
    while waited.seconds < CONFIRM_WITHIN:
        try:
            if (await membership.describe()).kraft_version >= LEVEL:
                return answer, True
        except BackendError:
            pass  # a change of leader: read again
        if answer.ended is ChangeEnd.REFUSED:
            break
        await waited.pause(POLL)
    return answer, False


def _fault(node: ClusterNode) -> str | None:
    if isinstance(node.answer, Unknown):
        return f"{node.role} {node.id} at {node.address} does not answer: {node.answer}"
    if not supports(node.answer):
        return f"{node.role} {node.id} supports kraft.version {node.answer.kraft_versions or 'not at all'}"
    return None


def supports(answer: NodeProbe) -> bool:
    """Whether a node supports level 1."""
    return answer.kraft_versions is not None and answer.kraft_versions[1] >= LEVEL
