"""Kafka's own tests of voter changes, row by row."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from recovery.membership.quorum import MembershipRules, Quorum, QuorumReplica, RaftError, VoterChangeRefusal
from recovery.membership.voter_changes import (
    AddVoter,
    PendingChange,
    RemoveRaftVoter,
    UpdateRaftVoter,
    VersionsProbe,
    add_voter,
    remove_voter,
    settle,
    update_voter,
)
from recovery.membership.voters import ReplicaKey, Voter, VoterSet, high_watermark
from tests.unit.membership.quorums import CLUSTER, END, NOW, key, quorum, voter

Row = dict[str, Any]
VECTORS = Path(__file__).parents[2] / "vectors" / "kafka-controller.json"
ROWS: list[Row] = json.loads(VECTORS.read_text())["raftReconfig"]

NEEDS_A_RUNNING_QUORUM: dict[str, str] = {}
"""Rows that values alone cannot decide, with what is missing. There are none: replication comes in as offsets."""

DIFFERS_IN_4_3 = {
    "testUpdateVoterWithKraftVersion0": (
        "since 4.1 a voter updates itself before kraft.version 1 too (KAFKA-16538)",
        MembershipRules(update_at_version_0=False),
    ),
}
"""Rows whose snapshot is older than 4.3: what changed, and the rules they were true under."""

SHIPPED = MembershipRules()
ANSWERS = VersionsProbe(answered=True)
NEW = key(4)
THIRD = key(3)
UPDATED = voter(3, versions=(0, 2))
THREE = quorum(1, 2, 3, observers=(NEW,))
DEADLINE = NOW + 1000
Outcome = VoterSet | VoterChangeRefusal


def add(of: Quorum = THREE, probe: VersionsProbe = ANSWERS, *, leads: bool = True, **changed: Any) -> Outcome:
    request = AddVoter(voter(4), CLUSTER)._replace(**changed)
    return add_voter(of, request, probe, SHIPPED, to_leader=leads)


def remove(
    held: ReplicaKey = THIRD, of: Quorum = THREE, *, leads: bool = True, cluster: str = CLUSTER
) -> Outcome:
    return remove_voter(of, RemoveRaftVoter(held, cluster), to_leader=leads)


def update(
    changed: Voter = UPDATED,
    of: Quorum = THREE,
    *,
    rules: MembershipRules = SHIPPED,
    epoch: int = 7,
    leads: bool = True,
    cluster: str = CLUSTER,
) -> Outcome:
    return update_voter(of, UpdateRaftVoter(changed, epoch, cluster), rules, to_leader=leads)


def both(answer: Callable[[str], Outcome]) -> Outcome:
    """The answer to a wrong cluster id and to an empty one, which must be the same error."""
    wrong, empty = answer("another"), answer("")
    assert error(wrong) == error(empty)
    return wrong


def written(accepted: Outcome, ends: dict[ReplicaKey, int], **late: Any) -> Outcome:
    """The fate of an accepted change whose record lies at the log's end, with each voter's log end then."""
    assert isinstance(accepted, VoterSet)
    pending = PendingChange(accepted, END, DEADLINE)
    now = late.pop("now", NOW)
    settled = settle(pending, high_watermark(accepted, ends), now, **late)
    assert settled is not None
    return settled.refusal or accepted


def committed_without_the_leader() -> Outcome:
    """The leader removes itself: 2 and 3 commit it. Its own log end does not count."""
    accepted = remove(key(1))
    assert isinstance(accepted, VoterSet)
    pending = PendingChange(accepted, END, DEADLINE)
    one = high_watermark(accepted, {key(1): END + 1, key(2): END + 1})
    assert settle(pending, one, NOW) is None
    two = high_watermark(accepted, {key(2): END + 1, key(3): END + 1})
    settled = settle(pending, two, NOW)
    assert settled is not None
    return settled.refusal or accepted


BUSY = replace(THREE, change_pending=True)
UNCOMMITTED = replace(THREE, voters_offset=END)
NO_WATERMARK = replace(THREE, high_watermark=None)
VERSION_0 = replace(THREE, kraft_version=0)
STRANGER = key(3, "another-disk")
THREE_OF_FOUR = {key(node): END + 1 for node in (1, 2, 3)}
LEADER_ALONE = {key(1): END + 1}
NEVER_FETCHED = replace(THREE, progress=(QuorumReplica(NEW, 0),))

CASES: dict[str, Callable[[], Outcome]] = {
    "testAddVoter": lambda: written(add(), THREE_OF_FOUR),
    "testAddVoterInvalidClusterId": lambda: both(lambda cluster: add(cluster_id=cluster)),
    "testAddVoterToNotLeader": lambda: add(leads=False),
    "testAddVoterWithMissingDefaultListener": lambda: add(voter=voter(4)._replace(endpoints=())),
    "testAddVoterWithPendingAddVoter": lambda: add(BUSY),
    "testAddVoterWithoutFencedPreviousLeaders": lambda: add(NO_WATERMARK),
    "testAddVoterWithKraftVersion0": lambda: add(VERSION_0),
    "testAddVoterWithExistingVoter": lambda: add(voter=voter(3, "another-disk")),
    "testAddVoterTimeout": lambda: written(add(), LEADER_ALONE, now=DEADLINE),
    "testAddVoterWithApiVersionsFromIncorrectNode": lambda: add(probe=VersionsProbe(answered=False)),
    "testAddVoterInvalidFeatureVersion": lambda: add(probe=VersionsProbe(True, (0, 0))),
    "testAddVoterWithLaggingNewVoter": lambda: add(NEVER_FETCHED),
    "testAddVoterFailsWhenLosingLeadership": lambda: written(add(), LEADER_ALONE, leads=False),
    "testAddVoterWithMissingDirectoryId": lambda: add(voter=voter(4)._replace(key=ReplicaKey(4))),
    "testAddVoterWithPendingRemoveVoter": lambda: add(UNCOMMITTED),
    "testRemoveVoter": lambda: written(remove(), {key(1): END + 1, key(2): END + 1}),
    "testRemoveVoterIsLeader": committed_without_the_leader,
    "testRemoveVoterInvalidClusterId": lambda: both(lambda cluster: remove(cluster=cluster)),
    "testRemoveVoterToNotLeader": lambda: remove(leads=False),
    "testRemoveVoterWithPendingRemoveVoter": lambda: remove(of=BUSY),
    "testRemoveVoterWithoutFencedPreviousLeaders": lambda: remove(of=NO_WATERMARK),
    "testRemoveVoterWithKraftVersion0": lambda: remove(of=VERSION_0),
    "testRemoveVoterWithNoneVoter": lambda: remove(STRANGER),
    "testRemoveVoterWithNoneVoterId": lambda: remove(key(9)),
    "testRemoveVoterToEmptyVoterSet": lambda: remove(key(1), quorum(1)),
    "testRemoveVoterTimedOut": lambda: written(remove(), LEADER_ALONE, now=DEADLINE),
    "testRemoveVoterFailsWhenLosingLeadership": lambda: written(remove(), LEADER_ALONE, leads=False),
    "testRemoveVoterWithPendingAddVoter": lambda: remove(of=UNCOMMITTED),
    "testUpdateVoter": update,
    "testUpdateVoterInvalidClusterId": lambda: both(lambda cluster: update(cluster=cluster)),
    "testUpdateVoterOldEpoch": lambda: update(epoch=6),
    "testUpdateVoterNewEpoch": lambda: update(epoch=8),
    "testUpdateVoterToNotLeader": lambda: update(leads=False),
    "testUpdateVoterWithoutFencedPreviousLeaders": lambda: update(of=NO_WATERMARK),
    "testUpdateVoterWithKraftVersion0": lambda: update(
        of=VERSION_0, rules=DIFFERS_IN_4_3["testUpdateVoterWithKraftVersion0"][1]
    ),
    "testUpdateVoterWithNoneVoter": lambda: update(voter(3, "another-disk")),
    "testUpdateVoterWithNoneVoterId": lambda: update(voter(9)),
    "testUpdateVoterWithPendingAddVoter": lambda: update(of=UNCOMMITTED),
}


def error(outcome: Outcome) -> str:
    return outcome.error.value if isinstance(outcome, VoterChangeRefusal) else "NONE"


def test_every_row_is_run_or_named() -> None:
    assert len(ROWS) == 38
    assert {row["id"] for row in ROWS} == CASES.keys() | NEEDS_A_RUNNING_QUORUM.keys()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_the_answer_that_kafka_gives(row: Row) -> None:
    assert error(CASES[row["id"]]()) == row["expectError"]


def test_a_voter_updates_itself_before_kraft_version_1_since_4_1() -> None:
    moved = voter(3, "another-disk")
    outcome = update(moved, VERSION_0)
    assert isinstance(outcome, VoterSet)
    assert outcome.find(moved.key) == moved
    assert error(update(voter(9), VERSION_0)) == RaftError.VOTER_NOT_FOUND
