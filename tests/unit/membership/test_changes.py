"""Voter changes beyond Kafka's own rows: the order of the checks, the document's rule, and the sets that result."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from recovery.membership.quorum import MembershipRules, TimeoutCause, VoterChangeRefusal, caught_up
from recovery.membership.voter_changes import (
    AddVoter,
    PendingChange,
    RemoveRaftVoter,
    VersionsProbe,
    add_voter,
    remove_voter,
    settle,
)
from recovery.membership.voters import ReplicaKey, Voter, VoterSet, high_watermark, majorities_overlap
from tests.unit.membership.quorums import END, NOW, key, progress, quorum, voter, voters

ANSWERS = VersionsProbe(answered=True)
DOCUMENT = MembershipRules(duplicate_ids=True)
NEW_DISK = key(3, "new-disk")


def test_the_checks_of_an_add_stand_in_kafkas_order() -> None:
    """Everything is wrong at first, and is put right one by one: each answer is the next check's."""
    wrong: dict[str, Any] = {
        "change_pending": True,
        "high_watermark": None,
        "kraft_version": 0,
        "voters_offset": END,
        "to_leader": False,
        "voter": voter(3)._replace(endpoints=(), key=ReplicaKey(3)),
        "cluster_id": "another",
        "probe": VersionsProbe(answered=False),
    }
    puts_right: tuple[tuple[str, dict[str, Any]], ...] = (
        ("INCONSISTENT_CLUSTER_ID", {"cluster_id": None}),
        ("NOT_LEADER_OR_FOLLOWER", {"to_leader": True}),
        ("INVALID_REQUEST", {"voter": voter(3)._replace(endpoints=())}),
        ("INVALID_REQUEST", {"voter": voter(3)}),
        ("CHANGE_PENDING", {"change_pending": False}),
        ("NO_HIGH_WATERMARK", {"high_watermark": END}),
        ("UNSUPPORTED_VERSION", {"kraft_version": 1}),
        ("CHANGE_PENDING", {"voters_offset": 100}),
        ("DUPLICATE_VOTER", {"voter": voter(5)}),
        ("UNREACHABLE", {"probe": VersionsProbe(True, (0, 0))}),
        ("INVALID_REQUEST", {"probe": ANSWERS}),
        ("LAGGING", {"voter": voter(4)}),
    )
    for expected, repair in puts_right:
        assert _heard(**wrong) == expected
        wrong |= repair
    assert _heard(**wrong) == "accepted"


def _heard(voter: Voter, cluster_id: str | None, probe: VersionsProbe, to_leader: bool, **state: Any) -> str:
    of = replace(quorum(1, 2, 3, observers=(key(4),)), **state)
    outcome = add_voter(of, AddVoter(voter, cluster_id), probe, MembershipRules(), to_leader=to_leader)
    if isinstance(outcome, VoterSet):
        return "accepted"
    return outcome.cause.name if outcome.cause else outcome.error


def test_a_replaced_disk_is_added_after_the_old_one_is_removed_as_shipped() -> None:
    of = quorum(1, 2, 3, observers=(NEW_DISK,))
    refused = add_voter(of, AddVoter(voter(3, "new-disk")), ANSWERS, MembershipRules())
    assert isinstance(refused, VoterChangeRefusal)
    assert "remove it before adding 3-new-disk" in refused.reason
    removed = remove_voter(of, RemoveRaftVoter(key(3)))
    assert isinstance(removed, VoterSet)
    added = add_voter(replace(of, voters=removed), AddVoter(voter(3, "new-disk")), ANSWERS, MembershipRules())
    assert isinstance(added, VoterSet)
    assert added.keys == (key(1), key(2), NEW_DISK)


def test_the_documents_rule_takes_both_disks_for_a_while() -> None:
    of = quorum(1, 2, 3, observers=(NEW_DISK,))
    both = add_voter(of, AddVoter(voter(3, "new-disk")), ANSWERS, DOCUMENT)
    assert isinstance(both, VoterSet)
    assert (both.majority, both.failures_tolerated) == (3, 1)
    after = remove_voter(replace(of, voters=both), RemoveRaftVoter(key(3)))
    assert isinstance(after, VoterSet)
    assert after.keys == (key(1), key(2), NEW_DISK)
    again = add_voter(of, AddVoter(voter(3)), ANSWERS, DOCUMENT)
    assert isinstance(again, VoterChangeRefusal)
    assert again.error == "DUPLICATE_VOTER"


def test_a_change_waits_until_a_majority_of_the_new_set_has_it() -> None:
    pending = PendingChange(voters(1, 2, 3, 4), END, NOW + 1000)
    two = {key(1): END + 1, key(4): END + 1}
    assert settle(pending, high_watermark(pending.voters, two), NOW) is None
    up_to_the_record = two | {key(2): END}
    assert settle(pending, high_watermark(pending.voters, up_to_the_record), NOW) is None
    three = two | {key(2): END + 1}
    settled = settle(pending, high_watermark(pending.voters, three), NOW)
    assert settled is not None
    assert settled.refusal is None
    late = settle(pending, None, NOW + 1000)
    assert late is not None
    assert late.refusal is not None
    assert late.refusal.cause is TimeoutCause.NOT_COMMITTED


def test_caught_up_is_a_fetch_within_the_last_hour() -> None:
    assert caught_up(progress(key(4), behind=10_000, silent_ms=3_599_999), NOW)
    assert not caught_up(progress(key(4), silent_ms=3_600_000), NOW)
    assert not caught_up(progress(key(4))._replace(last_caught_up_ms=-1), NOW)
    assert not caught_up(None, NOW)


def test_a_voter_configured_without_a_directory_goes_by_its_node_id() -> None:
    static = VoterSet((voter(1)._replace(key=ReplicaKey(1)), voter(2)))
    assert static.find(key(1, "whatever")) is not None
    assert static.find(key(2, "whatever")) is None


NODES = st.lists(st.integers(1, 9), min_size=1, max_size=6, unique=True)


@settings(deadline=None)
@given(before=NODES, after=NODES)
def test_overlap_means_that_every_two_majorities_share_a_voter(before: list[int], after: list[int]) -> None:
    one, other = voters(*before), voters(*after)
    shared = all(
        set(some) & set(others)
        for some in combinations(before, one.majority)
        for others in combinations(after, other.majority)
    )
    assert majorities_overlap(one, other) is shared


@settings(deadline=None)
@given(nodes=NODES, added=st.integers(10, 19))
def test_one_voter_at_a_time_always_leaves_an_overlap(nodes: list[int], added: int) -> None:
    smaller, larger = voters(*nodes), voters(*nodes, added)
    assert majorities_overlap(smaller, larger)
    assert majorities_overlap(larger, smaller)


def test_replacing_one_voter_of_three_at_once_leaves_none() -> None:
    assert not majorities_overlap(voters(1, 2, 3), voters(1, 2, 4))


@settings(deadline=None)
@given(nodes=NODES, ends=st.dictionaries(st.integers(1, 9), st.integers(0, 50)))
def test_the_high_watermark_is_the_highest_offset_that_a_majority_holds(
    nodes: list[int], ends: dict[int, int]
) -> None:
    of = voters(*nodes)
    mark = high_watermark(of, {key(node): end for node, end in ends.items()})
    held = [ends.get(node, 0) for node in nodes]
    assert sum(end >= mark for end in held) >= of.majority
    assert sum(end > mark for end in held) < of.majority
