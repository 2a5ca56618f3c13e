"""Who votes for whom when controllers lose their leader."""

from __future__ import annotations

from typing import Any

import pytest

from recovery.membership.quorum import RaftError
from recovery.membership.raft_votes import (
    Elector,
    RaftLogEnd,
    RaftRole,
    Vote,
    VoteRequest,
    VoteTally,
    tally,
    vote,
)
from tests.unit.membership.quorums import CLUSTER, key, voters

ELECTOR = Elector(key(1), CLUSTER, epoch=5, log_end=RaftLogEnd(4, 100))
REQUEST = VoteRequest(key(2), epoch=6, log_end=RaftLogEnd(4, 100), cluster_id=CLUSTER, voter=key(1))


def answer(elector: Elector = ELECTOR, **changed: Any) -> Vote:
    return vote(elector, REQUEST._replace(**changed))


def test_a_log_that_is_as_good_gets_the_vote_and_nobody_else_does_in_that_epoch() -> None:
    first = answer()
    assert first.granted
    assert (first.elector.epoch, first.elector.voted) == (6, key(2))
    assert not answer(first.elector, candidate=key(3)).granted
    assert answer(first.elector).granted


def test_a_newer_epoch_frees_the_vote() -> None:
    bound = ELECTOR._replace(voted=key(3), leader_known=True)
    assert not answer(bound, epoch=5).granted
    assert answer(bound).granted


def test_the_same_node_with_another_disk_is_another_candidate() -> None:
    first = answer()
    assert not answer(first.elector, candidate=key(2, "new-disk")).granted


@pytest.mark.parametrize(
    ("end", "granted"),
    [
        (RaftLogEnd(5, 1), True),
        (RaftLogEnd(4, 101), True),
        (RaftLogEnd(4, 99), False),
        (RaftLogEnd(3, 500), False),
    ],
)
def test_the_last_epoch_goes_before_the_length_of_the_log(end: RaftLogEnd, granted: bool) -> None:
    assert answer(log_end=end).granted is granted


def test_a_refused_vote_still_moves_the_replica_to_the_newer_epoch() -> None:
    refused = answer(log_end=RaftLogEnd(1, 1))
    assert not refused.granted
    assert (refused.elector.epoch, refused.elector.voted) == (6, None)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"cluster_id": "another"}, RaftError.INCONSISTENT_CLUSTER_ID),
        ({"log_end": RaftLogEnd(6, 100)}, RaftError.INVALID_REQUEST),
        ({"log_end": RaftLogEnd(4, -1)}, RaftError.INVALID_REQUEST),
        ({"epoch": 4, "log_end": RaftLogEnd(3, 1)}, RaftError.FENCED_LEADER_EPOCH),
        ({"candidate": key(-1)}, RaftError.INVALID_REQUEST),
    ],
)
def test_a_malformed_or_late_request_changes_nothing(changed: dict[str, Any], error: RaftError) -> None:
    assert answer(**changed) == Vote(False, ELECTOR, error)


def test_a_request_for_the_disk_that_was_replaced_is_not_answered_by_the_new_one() -> None:
    refused = answer(voter=key(1, "old-disk"))
    assert (refused.granted, refused.error) == (False, RaftError.INVALID_VOTER_KEY)
    assert answer(voter=None).granted


@pytest.mark.parametrize(
    ("role", "pre_vote", "granted"),
    [
        (RaftRole.LEADER, True, False),
        (RaftRole.CANDIDATE, True, True),
        (RaftRole.CANDIDATE, False, False),
        (RaftRole.RESIGNED, True, True),
        (RaftRole.RESIGNED, False, False),
        (RaftRole.PROSPECTIVE, False, True),
        (RaftRole.FOLLOWER, False, False),
        (RaftRole.FOLLOWER, True, True),
    ],
)
def test_what_a_replica_is_in_its_epoch_decides_its_vote(
    role: RaftRole, pre_vote: bool, granted: bool
) -> None:
    of = ELECTOR._replace(role=role)
    assert answer(of, epoch=5, pre_vote=pre_vote).granted is granted


def test_a_follower_that_hears_from_its_leader_does_not_help_to_depose_it() -> None:
    of = ELECTOR._replace(role=RaftRole.FOLLOWER, fetched=True)
    assert not answer(of, epoch=5, pre_vote=True).granted
    of = ELECTOR._replace(leader_known=True)
    assert not answer(of, epoch=5).granted


def test_a_pre_vote_binds_nobody() -> None:
    first = answer(epoch=5, pre_vote=True)
    assert first.granted
    assert first.elector.voted is None


def test_an_election_is_won_by_a_majority_of_the_candidates_own_set() -> None:
    of = voters(1, 2, 3)
    assert tally(of, [key(1)]) is VoteTally.OPEN
    assert tally(of, [key(1), key(2)]) is VoteTally.WON
    assert tally(of, [key(1)], [key(2), key(3)]) is VoteTally.LOST
    assert tally(of, [key(1), key(9), key(3, "old-disk")]) is VoteTally.OPEN
    assert tally(of, [key(1), key(1)]) is VoteTally.OPEN
