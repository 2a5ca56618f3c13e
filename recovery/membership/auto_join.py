"""What a controller asks for by itself where ``controller.quorum.auto.join.enable`` is set (KIP-853)."""

from __future__ import annotations

from recovery.membership.voter_changes import AddVoter, RemoveVoter
from recovery.membership.voters import Voter, VoterSet


def next_request(voters: VoterSet, own: Voter) -> RemoveVoter | AddVoter | None:
    """The next request of a controller that is not a voter: its old disk is removed first, then it adds itself.

    None for one that is a voter. Hence a controller that is to be removed must be stopped first.
    """
    if voters.find(own.key) is not None:
        return None
    old = next((key for key in voters.keys if key.id == own.key.id), None)
    return AddVoter(own) if old is None else RemoveVoter(old)
