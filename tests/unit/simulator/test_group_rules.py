"""What a simulated coordinator does with members of a classic group, as Kafka's does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from backends.simulator.classic_group import (
    AssignorOffer,
    AwaitedRequest,
    ClassicGroup,
    GroupHeartbeat,
    GroupPhase,
    GroupReply,
    GroupRequest,
    HeartbeatReplied,
    JoinGroup,
    JoinReply,
    LeaveGroup,
    LeaveReply,
    MemberClaim,
    SyncGroup,
    SyncReply,
)
from backends.simulator.group_rebalance import FIRST_WAIT, GroupStep
from backends.simulator.group_rules import commit_error, due, loaded, passed, requested, written
from backends.simulator.loop import SECOND
from backends.simulator.messages import Error

SESSION, REBALANCE = 10 * SECOND, 60 * SECOND
RANGE, STICKY = AssignorOffer("range", b"r"), AssignorOffer("sticky", b"s")
JOIN, SYNC = AwaitedRequest.JOIN, AwaitedRequest.SYNC


@dataclass
class Play:
    """One group through time; ``replies`` are the latest to each member."""

    group: ClassicGroup = field(default_factory=lambda: ClassicGroup("billing"))
    now: int = 0
    replies: dict[tuple[str, AwaitedRequest], GroupReply] = field(default_factory=dict)
    wrote: bool = False

    def _take(self, step: GroupStep) -> GroupReply | None:
        self.group = step.group
        self.wrote = step.written
        for late in step.late_replies:
            self.replies[late.member_id, late.awaited] = late.reply
        return step.reply

    def ask(self, request: GroupRequest) -> Any:
        return self._take(requested(self.group, request, self.now))

    def join(self, member: str, instance: str | None = None, *, new: bool = True, **other: Any) -> Any:
        asked = JoinGroup(
            "billing",
            "" if new else member,
            instance,
            member,
            "client",
            "/10.0.0.1",
            SESSION,
            REBALANCE,
            "consumer",
            (RANGE, STICKY),
            known_first=False,
        )
        return self.ask(asked._replace(**other))

    def sync(self, member: str, **assignments: bytes) -> Any:
        return self.ask(
            SyncGroup("billing", self.claim(member), "consumer", "range", tuple(assignments.items()))
        )

    def heartbeat(self, member: str) -> Any:
        return self.ask(GroupHeartbeat("billing", self.claim(member))).error

    def claim(self, member: str) -> MemberClaim:
        return MemberClaim(member, self.group.generation)

    def written(self, error: Error | None = None) -> None:
        self._take(written(self.group, self.group.generation, error, self.now))

    def wait(self, duration: int) -> None:
        """Time passes; the group is looked at whenever it is due."""
        until = self.now + duration
        while (at := due(self.group)) is not None and at <= until:
            self.now = max(self.now, at)
            self._take(passed(self.group, self.now))
        self.now = until


def stable(*members: str) -> Play:
    play = Play()
    for member in members:
        play.join(member)
    play.wait(2 * FIRST_WAIT)
    for member in members:
        play.sync(member, **{name: name.encode() for name in members})
    play.written()
    assert play.group.phase is GroupPhase.STABLE
    play.replies.clear()
    return play


def test_the_first_member_waits_for_others_and_leads() -> None:
    play = Play()
    assert play.join("a") is None
    play.wait(FIRST_WAIT - 1)
    assert play.join("b") is None
    play.wait(1)
    assert not play.replies, "a member came: the group waits once more"
    play.wait(FIRST_WAIT)
    leads, follows = play.replies["a", JOIN], play.replies["b", JOIN]
    assert leads == JoinReply(None, "a", 1, "consumer", "range", "a", (("a", None, b"r"), ("b", None, b"r")))
    assert follows == JoinReply(None, "b", 1, "consumer", "range", "a")


def test_members_get_what_the_leader_assigns_once_it_is_written() -> None:
    play = Play()
    play.join("a")
    play.join("b")
    play.wait(2 * FIRST_WAIT)
    assert play.sync("b") is None
    assert play.sync("a", a=b"0", b=b"1") is None
    assert play.wrote
    assert not [key for key in play.replies if key[1] is SYNC]
    play.written()
    assert play.replies["a", SYNC] == SyncReply(None, "consumer", "range", b"0")
    assert play.replies["b", SYNC] == SyncReply(None, "consumer", "range", b"1")
    assert play.sync("b") == SyncReply(None, "consumer", "range", b"1"), "asked again: the answer was lost"


def test_an_assignment_that_cannot_be_written_begins_a_rebalance() -> None:
    play = Play()
    play.join("a")
    play.wait(FIRST_WAIT)
    play.sync("a", a=b"0")
    play.written(Error.COORDINATOR_NOT_AVAILABLE)
    assert play.replies["a", SYNC] == SyncReply(Error.COORDINATOR_NOT_AVAILABLE)
    assert play.group.phase is GroupPhase.PREPARING_REBALANCE


def test_a_new_member_makes_the_others_join_again() -> None:
    play = stable("a")
    assert play.join("b") is None
    assert play.heartbeat("a") is Error.REBALANCE_IN_PROGRESS
    assert play.sync("a") == SyncReply(Error.REBALANCE_IN_PROGRESS)
    assert play.join("a", new=False) is None
    assert {key for key in play.replies if key[1] is JOIN} == {("a", JOIN), ("b", JOIN)}
    assert play.group.generation == 2
    assert play.heartbeat("a") is None


def test_a_member_that_does_not_join_again_is_left_behind() -> None:
    play = stable("a", "b")
    play.join("c")
    for _ in range(12):
        play.heartbeat("b")
        play.join("a", new=False)
        play.wait(SESSION // 2)
    assert [one.id for one in play.group.members] == ["a", "c"]
    assert play.heartbeat("b") is Error.UNKNOWN_MEMBER_ID


def test_a_session_ends_without_heartbeats() -> None:
    play = stable("a", "b")
    play.wait(SESSION - 1)
    assert play.heartbeat("a") is None
    play.wait(1)
    assert [one.id for one in play.group.members] == ["a"]
    assert play.heartbeat("b") is Error.UNKNOWN_MEMBER_ID
    assert play.heartbeat("a") is Error.REBALANCE_IN_PROGRESS


def test_a_member_that_never_asks_for_its_assignment_is_removed() -> None:
    play = Play()
    play.join("a")
    play.join("b")
    play.wait(2 * FIRST_WAIT)
    play.sync("a", a=b"0", b=b"1")
    play.written()
    for _ in range(2 * REBALANCE // SESSION):
        play.wait(SESSION // 2)
        play.heartbeat("a")
        play.heartbeat("b")
    assert play.group.member("b") is None


def test_the_last_member_that_leaves_leaves_an_empty_group() -> None:
    play = stable("a")
    assert play.ask(LeaveGroup("billing", (("a", None), ("x", None)))) == LeaveReply(
        (None, Error.UNKNOWN_MEMBER_ID)
    )
    assert (play.group.phase, play.group.generation, play.group.members) == (GroupPhase.EMPTY, 2, ())
    assert play.wrote
    assert due(play.group) is None


def test_a_member_gets_its_id_before_it_joins() -> None:
    """From v4 on: the first request may be sent again and again (KIP-394)."""
    play = Play()
    assert play.join("a", known_first=True) == JoinReply(Error.MEMBER_ID_REQUIRED, "a")
    assert play.join("a", new=False, known_first=True) is None
    play.wait(FIRST_WAIT)
    assert play.replies["a", JOIN].error is None  # type: ignore[union-attr]
    assert play.join("b", known_first=True) == JoinReply(Error.MEMBER_ID_REQUIRED, "b")
    play.wait(SESSION - 1)
    play.heartbeat("a")
    play.wait(1)
    assert not play.group.promised


def test_a_static_member_comes_back_without_a_rebalance() -> None:
    play = Play()
    play.join("a", "till")
    play.join("b")
    play.wait(2 * FIRST_WAIT)
    play.sync("a", a=b"0", b=b"1")
    play.sync("b")
    play.written()
    reply = play.join("again", "till")
    assert (reply.error, reply.generation, reply.leader, reply.skip_assignment) == (None, 1, "again", True)
    assert play.group.phase is GroupPhase.STABLE
    assert play.sync("again") == SyncReply(None, "consumer", "range", b"0")
    former = play.ask(GroupHeartbeat("billing", MemberClaim("a", 1, "till")))
    assert former == HeartbeatReplied(Error.FENCED_INSTANCE_ID)
    older = play.join("thrice", "till", skips_assignment=False)
    assert older.leader == "again", "it must not believe that it leads"


def test_a_static_member_that_is_away_keeps_its_place_in_a_rebalance() -> None:
    play = Play()
    play.join("a", "till", session_timeout=2 * REBALANCE)
    play.wait(FIRST_WAIT)
    play.sync("a", a=b"0")
    play.written()
    play.join("b")
    play.wait(REBALANCE)
    leads = play.replies["b", JOIN]
    assert isinstance(leads, JoinReply)
    assert (leads.leader, [name for name, _, _ in leads.members]) == ("b", ["a", "b"])
    for _ in range(2 * REBALANCE // SESSION):
        play.sync("b", a=b"0", b=b"1")
        play.written()
        play.wait(SESSION // 2)
        play.heartbeat("b")
    assert [one.id for one in play.group.members] == ["b"], "its session has ended"


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"session_timeout": SECOND}, Error.INVALID_SESSION_TIMEOUT),
        ({"offers": ()}, Error.INCONSISTENT_GROUP_PROTOCOL),
        ({"offers": (AssignorOffer("mine", b""),)}, Error.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "connect"}, Error.INCONSISTENT_GROUP_PROTOCOL),
        ({"member_id": "nobody"}, Error.UNKNOWN_MEMBER_ID),
        ({"member_id": "nobody", "instance": "till"}, Error.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_may_not_join(changed: dict[str, Any], error: Error) -> None:
    play = stable("a")
    before = play.group
    assert play.join("b", **changed).error is error
    assert play.group == before


def test_the_assignor_is_one_that_all_have() -> None:
    play = Play()
    play.join("a")
    play.join("b", offers=(STICKY,))
    play.wait(2 * FIRST_WAIT)
    assert play.group.assignor == "sticky"


def test_a_leader_that_joins_again_begins_a_rebalance_and_others_do_not() -> None:
    play = stable("a", "b")
    reply = play.join("b", new=False)
    assert (reply.generation, reply.members, play.group.phase) == (1, (), GroupPhase.STABLE)
    assert play.join("a", new=False) is None
    assert play.group.phase is GroupPhase.PREPARING_REBALANCE


OUTSIDER = MemberClaim()


def test_who_may_commit_offsets() -> None:
    group = stable("a").group
    joining = stable("a")
    joining.join("b")
    joining.join("a", new=False)
    assert joining.group.phase is GroupPhase.COMPLETING_REBALANCE
    table: list[tuple[ClassicGroup | None, MemberClaim, bool, Error | None]] = [
        (None, OUTSIDER, False, None),
        (None, MemberClaim("a", 1), False, Error.ILLEGAL_GENERATION),
        (ClassicGroup("billing"), OUTSIDER, False, None),
        (ClassicGroup("billing"), MemberClaim("a", 1), False, Error.UNKNOWN_MEMBER_ID),
        (group, MemberClaim("a", 1), False, None),
        (group, MemberClaim("a", 0), False, Error.ILLEGAL_GENERATION),
        (group, MemberClaim("x", 1), False, Error.UNKNOWN_MEMBER_ID),
        (group, OUTSIDER, False, Error.UNKNOWN_MEMBER_ID),
        (group, OUTSIDER, True, None),
        (group, MemberClaim("x", 1), True, Error.UNKNOWN_MEMBER_ID),
        (joining.group, MemberClaim("a", 2), False, Error.REBALANCE_IN_PROGRESS),
        (joining.group, MemberClaim("a", 2), True, None),
    ]
    for known, claim, transactional, error in table:
        assert commit_error(known, claim, transactional=transactional) is error, (known, claim, transactional)


def test_a_new_coordinator_gives_every_member_a_whole_session() -> None:
    group = loaded(stable("a", "b").group, 1_000 * SECOND)
    assert group.phase is GroupPhase.STABLE
    assert due(group) == 1_000 * SECOND + SESSION
    assert loaded(ClassicGroup("billing", generation=3), 0).phase is GroupPhase.EMPTY
