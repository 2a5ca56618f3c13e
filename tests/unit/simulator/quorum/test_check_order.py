"""A request for a change of the voters that is wrong in every way is told one thing after the other, in Kafka's
order; the order for AddRaftVoter is held by the rules' own tests.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from recovery.membership.quorum import MembershipRules, Quorum, VoterChangeRefusal
from recovery.membership.voter_changes import RemoveRaftVoter, UpdateRaftVoter, remove_voter, update_voter
from recovery.membership.voters import ReplicaKey, VoterEndpoint, VoterSet
from tests.unit.membership.quorums import CLUSTER, END, key, quorum, voter

BUSY: dict[str, Any] = {
    "change_pending": True,
    "high_watermark": None,
    "kraft_version": 0,
    "voters_offset": END,
}
"""All that can be wrong with a leader's quorum."""
SETTLED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("CHANGE_PENDING", {"change_pending": False}),
    ("NO_HIGH_WATERMARK", {"high_watermark": END}),
    ("UNSUPPORTED_VERSION", {"kraft_version": 1}),
    ("CHANGE_PENDING", {"voters_offset": 100}),
)


def heard(outcome: VoterSet | VoterChangeRefusal) -> str:
    if isinstance(outcome, VoterSet):
        return "accepted"
    return outcome.cause.name if outcome.cause else outcome.error.value


def of(state: dict[str, Any]) -> Quorum:
    return replace(quorum(1, 2, 3), **state)


def test_the_checks_of_a_removal() -> None:
    state, request, leads = dict(BUSY), RemoveRaftVoter(ReplicaKey(3), "another"), False
    assert heard(remove_voter(of(state), request, to_leader=leads)) == "INCONSISTENT_CLUSTER_ID"
    request = request._replace(cluster_id=CLUSTER)
    assert heard(remove_voter(of(state), request, to_leader=leads)) == "NOT_LEADER_OR_FOLLOWER"
    assert heard(remove_voter(of(state), request)) == "INVALID_REQUEST", "no directory id"
    request = request._replace(key=key(3, "another disk"))
    for expected, repair in SETTLED:
        assert heard(remove_voter(of(state), request)) == expected
        state |= repair
    assert heard(remove_voter(of(state), request)) == "VOTER_NOT_FOUND"
    assert heard(remove_voter(of(state), request._replace(key=key(3)))) == "accepted"


def test_the_checks_of_an_update() -> None:
    """Before kraft.version 1 nothing is written, so that a set that is not committed is in nobody's way."""
    rules = MembershipRules(update_at_version_0=False)
    state, leads = dict(BUSY), False
    elsewhere = (VoterEndpoint("REPLICATION", "host3", 9093),)
    wrong = voter(3)._replace(key=ReplicaKey(3), endpoints=elsewhere, kraft_versions=(2, 1))
    request = UpdateRaftVoter(wrong, 6, "another")
    puts_right: tuple[tuple[str, UpdateRaftVoter], ...] = (
        ("INCONSISTENT_CLUSTER_ID", request._replace(cluster_id=CLUSTER)),
        ("FENCED_LEADER_EPOCH", request._replace(cluster_id=CLUSTER, leader_epoch=8)),
        ("UNKNOWN_LEADER_EPOCH", request._replace(cluster_id=CLUSTER, leader_epoch=7)),
    )
    for expected, repaired in puts_right:
        assert heard(update_voter(of(state), request, rules, to_leader=leads)) == expected
        request = repaired
    assert heard(update_voter(of(state), request, rules, to_leader=leads)) == "NOT_LEADER_OR_FOLLOWER"
    for changed in (
        wrong._replace(key=key(3, "another disk")),
        wrong._replace(key=key(3, "another disk"), endpoints=voter(3).endpoints),
        voter(3, "another disk", versions=(2, 3)),
    ):
        assert heard(update_voter(of(state), request, rules)) == "INVALID_REQUEST"
        request = request._replace(voter=changed)
    for expected, repair in SETTLED:
        assert heard(update_voter(of(state), request, rules)) == expected
        state |= repair
    assert heard(update_voter(of(state), request, rules)) == "INVALID_REQUEST", (
        "it does not support the version"
    )
    request = request._replace(voter=voter(3, "another disk"))
    assert heard(update_voter(of(state), request, rules)) == "VOTER_NOT_FOUND"
    assert heard(update_voter(of(state), request._replace(voter=voter(3)), rules)) == "accepted"
