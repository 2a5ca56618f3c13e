"""Before a controller is added, removed or replaced: what an operator is told, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recovery.membership.preflight import (
    EndpointProbe,
    LivenessLimits,
    NodeIdentity,
    PreflightResult,
    before_adding,
    before_removing,
    explain_timeout,
    strength,
    wedged,
)
from recovery.membership.quorum import MembershipRules, Quorum, QuorumReplica, TimeoutCause
from recovery.membership.voter_changes import AddVoter, RemoveRaftVoter, auto_join_request
from recovery.membership.voters import Voter, VoterEndpoint
from recovery.model import Unknown, Why
from tests.unit.membership.quorums import CLUSTER, END, NOW, key, progress, quorum, voter, voters

LIMITS = LivenessLimits()
ITSELF = NodeIdentity(CLUSTER, 4, (0, 1))


def adding(of: Quorum, new: Voter | None = None, answer: NodeIdentity | Unknown = ITSELF) -> PreflightResult:
    new = new or voter(4)
    probes = [EndpointProbe(endpoint, answer) for endpoint in new.endpoints]
    return before_adding(of, new, probes, MembershipRules(), LIMITS)


@pytest.mark.parametrize(("nodes", "tolerated"), [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (6, 2), (7, 3)])
def test_how_many_failures_a_set_stands(nodes: int, tolerated: int) -> None:
    of = quorum(*range(1, nodes + 1))
    found = strength(of, of.voters, LIMITS)
    assert (found.voters.failures_tolerated, found.spare, found.commits) == (tolerated, tolerated, True)


def test_what_a_set_stands_now_counts_only_those_that_fetch_and_keep_up() -> None:
    of = quorum(1, 2, 3, 4, 5, down=(5,))
    lagging = tuple(progress(held.key, behind=5000) if held.key.id == 4 else held for held in of.progress)
    found = strength(replace(of, progress=lagging), of.voters, LIMITS)
    assert found.down == (key(4), key(5))
    assert (found.spare, found.voters.failures_tolerated) == (0, 2)
    assert str(found) == "tolerates no more failures: 3 of 5 voters up, majority 3"


def test_a_dead_controller_is_removed_but_the_two_left_stand_no_failure() -> None:
    verdict = before_removing(quorum(1, 2, 3, down=(3,)), key(3), LIMITS)
    assert verdict.allowed
    assert verdict.after is not None
    assert verdict.after.spare == 0
    assert "the next failure stops the quorum" in verdict.warnings


def test_removing_a_live_controller_beside_a_dead_one_is_refused() -> None:
    """Kafka would write it down, and never commit it."""
    verdict = before_removing(quorum(1, 2, 3, down=(3,)), key(2), LIMITS)
    assert verdict.refused == ("the new set could not commit: 1 of 2 voters up, majority 2; down: 3-dir3",)


def test_adding_beside_too_many_dead_ones_is_refused() -> None:
    of = quorum(1, 2, 3, 4, 5, observers=(key(6),), down=(3, 4, 5))
    verdict = adding(of, voter(6), ITSELF._replace(node_id=6))
    assert not verdict.allowed
    assert "could not commit" in verdict.refused[0]


def test_adding_a_fourth_is_allowed_and_brings_no_more_safety() -> None:
    verdict = adding(quorum(1, 2, 3, observers=(key(4),)))
    assert verdict.allowed
    assert verdict.warnings == ("4 voters tolerate no more failures than 3",)


def test_removing_the_leader_says_what_will_happen() -> None:
    verdict = before_removing(quorum(1, 2, 3), key(1), LIMITS)
    assert verdict.allowed
    assert any(warning.startswith("it is the leader") for warning in verdict.warnings)


def test_a_running_controller_may_add_itself_again() -> None:
    running = before_removing(quorum(1, 2, 3), key(3), LIMITS)
    dead = before_removing(quorum(1, 2, 3, down=(3,)), key(3), LIMITS)
    assert ["auto.join" in " ".join(verdict.warnings) for verdict in (running, dead)] == [True, False]


def test_a_controller_that_joins_by_itself_first_removes_its_old_disk() -> None:
    own = voter(3, "new-disk")
    assert auto_join_request(voters(1, 2, 3), own) == RemoveRaftVoter(key(3))
    assert auto_join_request(voters(1, 2), own) == AddVoter(own)
    assert auto_join_request(voters(1, 2).plus(own), own) is None


def test_a_new_disk_for_a_dead_controller_needs_the_other_two_in_between() -> None:
    """Shipped Kafka wants the old disk removed before the new one is added."""
    assert before_removing(quorum(1, 2, 3, down=(3,)), key(3), LIMITS).allowed
    assert not before_removing(quorum(1, 2, 3, down=(2, 3)), key(3), LIMITS).allowed


def test_the_wrong_directory_is_refused_with_kafkas_own_answer() -> None:
    verdict = before_removing(quorum(1, 2, 3), key(3, "typo"), LIMITS)
    assert verdict.refused == (
        "VOTER_NOT_FOUND: 3-typo cannot be taken from the voters 1-dir1, 2-dir2, 3-dir3",
    )
    assert verdict.after is None


def test_the_only_voter_is_not_said_to_be_unknown() -> None:
    verdict = before_removing(quorum(1, observers=(key(2),)), key(1), LIMITS)
    assert verdict.refused == ("1-dir1 is the only voter: add another one first",)
    assert not verdict.allowed and verdict.after is None


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (Unknown(Why.NOT_ANSWERED, "timed out"), "does not answer (not answered: timed out)"),
        (ITSELF._replace(cluster_id="another"), "belongs to cluster another"),
        (ITSELF._replace(node_id=9), "is node 9, not 4"),
    ],
)
def test_an_endpoint_that_is_not_the_new_voter_is_never_written_down(
    answer: NodeIdentity | Unknown, fault: str
) -> None:
    verdict = adding(quorum(1, 2, 3, observers=(key(4),)), answer=answer)
    assert not verdict.allowed
    assert verdict.refused[-1] == f"CONTROLLER://host4:9093 {fault}"


def test_every_endpoint_must_have_been_asked() -> None:
    second = VoterEndpoint("EXTERNAL", "public", 9094)
    new = voter(4)._replace(endpoints=(*voter(4).endpoints, second))
    of = quorum(1, 2, 3, observers=(key(4),))
    one = [EndpointProbe(voter(4).endpoints[0], ITSELF)]
    verdict = before_adding(of, new, one, MembershipRules(), LIMITS)
    assert verdict.refused == ("EXTERNAL://public:9094 was not asked",)


def test_the_causes_of_a_timeout_are_told_apart_beforehand() -> None:
    new = key(4)
    ready = quorum(1, 2, 3, observers=(new,))
    silent = Unknown(Why.NOT_ANSWERED, "")
    reasons = [
        adding(of, answer=answer).refused[0]
        for of, answer in (
            (replace(ready, change_pending=True), ITSELF),
            (replace(ready, high_watermark=None), ITSELF),
            (ready, silent),
            (replace(ready, progress=(QuorumReplica(new, 0),)), ITSELF),
        )
    ]
    assert [reason.removeprefix("REQUEST_TIMED_OUT: ").split(":")[0] for reason in reasons] == [
        TimeoutCause.CHANGE_PENDING,
        TimeoutCause.NO_HIGH_WATERMARK,
        TimeoutCause.UNREACHABLE,
        TimeoutCause.LAGGING,
    ]


def test_a_removed_leader_that_goes_on_leading_is_not_added_and_the_restart_is_named() -> None:
    """Kafka answers that it lags behind, and answers so for ever."""
    of = replace(quorum(1, 2, 3), voters=voters(2, 3))
    assert of.led_by_non_voter
    assert [
        adding(of, voter(1)).refused[0].split(":")[1].strip(),
        explain_timeout(of, key(1), adding=True),
    ] == [
        TimeoutCause.LEADS.split(":")[0],
        TimeoutCause.LEADS,
    ]


def test_the_causes_of_a_timeout_are_told_apart_afterwards() -> None:
    new = key(4)
    ready = quorum(1, 2, 3, observers=(new,))
    written = replace(ready, voters=voters(1, 2, 3, 4))
    causes = [
        explain_timeout(replace(ready, high_watermark=None), new, adding=True),
        explain_timeout(written, new, adding=True),
        explain_timeout(ready, new, adding=True, reachable=False),
        explain_timeout(quorum(1, 2, 3), new, adding=True),
        explain_timeout(replace(ready, change_pending=True), new, adding=True),
        explain_timeout(ready, new, adding=True),
        explain_timeout(quorum(1, 2), key(3), adding=False),
        explain_timeout(quorum(1, 2, 3), key(3), adding=False),
    ]
    assert causes == [
        TimeoutCause.NO_HIGH_WATERMARK,
        TimeoutCause.NOT_COMMITTED,
        TimeoutCause.UNREACHABLE,
        TimeoutCause.LAGGING,
        TimeoutCause.CHANGE_PENDING,
        TimeoutCause.PASSED,
        TimeoutCause.NOT_COMMITTED,
        TimeoutCause.PASSED,
    ]


def test_a_high_watermark_that_stands_still_is_a_wedged_quorum() -> None:
    earlier = quorum(1, 2, 3)
    later = replace(earlier, now_ms=NOW + 3000)
    assert wedged(earlier, later) is True
    assert wedged(earlier, replace(later, high_watermark=END + 6)) is False
    assert wedged(earlier, replace(later, now_ms=NOW + 100)) is None
    assert wedged(earlier, replace(later, leader_epoch=8)) is None
