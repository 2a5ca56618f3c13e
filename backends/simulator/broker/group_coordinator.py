"""The groups that a broker coordinates: those of the partitions of __consumer_offsets that it leads.

What it decides is in :mod:`backends.simulator.group_rules`. Its memory of members ends with its leadership: the
next leader reads from its log who was a member of the last generation that got its assignment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from backends.simulator.broker.broker_access import BrokerAccess, append_stored, coordinator_error
from backends.simulator.broker.replica_log import Log
from backends.simulator.classic_group import (
    AwaitedRequest,
    ClassicGroup,
    GroupHeartbeat,
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
from backends.simulator.context import Context
from backends.simulator.group_rebalance import GroupStep
from backends.simulator.group_rules import alive, commit_error, due, loaded, passed, requested, written
from backends.simulator.group_store import (
    generation_record,
    group_coordinator,
    offset_record,
    offsets_partition,
)
from backends.simulator.loop import MILLISECOND, Timer, TimerGroup
from backends.simulator.messages import Error
from backends.simulator.record_batches import GeneratedBatch
from backends.simulator.rpc import Answer
from recovery.groups.group_values import CommittedOffset
from recovery.model import EpochSpan, TopicPartition

CONSUMER = "consumer"
"""The protocol type of groups whose members have left before the run began."""


class GroupCoordinator:
    """Each request is answered by the broker that coordinates its group, by its own metadata; others answer
    NOT_COORDINATOR. Timers are those of the broker's process.
    """

    def __init__(self, context: Context, broker: BrokerAccess, timers: TimerGroup) -> None:
        self._context = context
        self._broker = broker
        self._timers = timers
        self._led: dict[TopicPartition, int] = {}
        self._groups: dict[str, ClassicGroup] = {}
        self._waiting: dict[tuple[str, AwaitedRequest, str], Answer] = {}
        self._checks: dict[str, Timer] = {}

    # Leaderships.

    def follow(self, tp: TopicPartition) -> None:
        """The partition of __consumer_offsets may have another leader, or another epoch, or a failed disk."""
        partition = self._broker.state.image.partitions.get(tp)
        leads = partition is not None and partition.leader == self._broker.state.id
        epoch = partition.leader_epoch if partition is not None and leads else None
        if self._broker.storage.offline(tp):
            epoch = None
        if epoch == self._led.get(tp):
            return
        self._led.pop(tp, None)
        for name in [name for name in self._groups if self._partition(name) == tp]:
            self._forget(name)
        if epoch is None:
            return
        self._led[tp] = epoch
        log, store, now = self._broker.storage.log(tp), self._context.groups, self._context.loop.now
        for name in store.names():
            group = store.newest_generation(name, log) if self._partition(name) == tp else None
            if group is not None:
                self._keep(loaded(group, now))

    def _forget(self, name: str) -> None:
        """Answers the waiting members with NOT_COORDINATOR, so that they find the new one."""
        del self._groups[name]
        check = self._checks.pop(name, None)
        if check is not None:
            check.cancel()
        for key in [key for key in self._waiting if key[0] == name]:
            _, awaited, member = key
            self._waiting.pop(key)(
                JoinReply(Error.NOT_COORDINATOR, member)
                if awaited is AwaitedRequest.JOIN
                else SyncReply(Error.NOT_COORDINATOR)
            )

    def coordinates(self, name: str) -> bool:
        """Whether this broker is the coordinator of the group."""
        tp = self._partition(name)
        if tp is not None:
            self.follow(tp)
            return tp in self._led
        return group_coordinator(self._broker.state.image, name) == self._broker.state.id

    def coordinated(self) -> list[str]:
        """The names of the groups that this broker coordinates."""
        names = dict.fromkeys((*self._context.groups.names(), *self._groups))
        return sorted(name for name in names if self.coordinates(name))

    def _partition(self, name: str) -> TopicPartition | None:
        return offsets_partition(self._broker.state.image, name)

    def _log(self, name: str) -> Log | None:
        tp = self._partition(name)
        return None if tp is None else self._broker.storage.log(tp)

    # Descriptions of groups.

    def committed(self, name: str) -> dict[TopicPartition, CommittedOffset]:
        """What the group has committed, by this broker's log, in the order of the partitions."""
        return self._context.groups.committed(name, self._log(name))

    def known(self, name: str) -> ClassicGroup:
        """The group as this broker has it."""
        return self._groups.get(name, ClassicGroup(name, protocol_type=CONSUMER))

    def described(self, name: str) -> ClassicGroup | Error:
        """Kafka knows a group that has committed, or has had members."""
        if not self.coordinates(name):
            return Error.NOT_COORDINATOR
        if name not in self._groups and not self.committed(name):
            return Error.GROUP_ID_NOT_FOUND
        return self.known(name)

    # Members.

    def requested(self, body: GroupRequest, answer: Answer) -> None:
        """A request of a member; the answer may come when the rest of the group has sent theirs."""
        if self._partition(body.group) is None or not self.coordinates(body.group):
            answer(refused(body, Error.NOT_COORDINATOR))
            return
        group = self._groups.get(body.group, ClassicGroup(body.group))
        step = requested(group, body, self._context.loop.now)
        if step.reply is None and isinstance(body, JoinGroup):
            self._waiting[body.group, AwaitedRequest.JOIN, body.member_id or body.new_id] = answer
        elif step.reply is None and isinstance(body, SyncGroup):
            self._waiting[body.group, AwaitedRequest.SYNC, body.claim.member_id] = answer
        self._carry_out(step)
        if step.reply is not None:
            answer(step.reply)

    def _carry_out(self, step: GroupStep) -> None:
        group = step.group
        if group != ClassicGroup(group.name):
            self._keep(group)
        for late in step.late_replies:
            answer = self._waiting.pop((group.name, late.awaited, late.member_id), None)
            if answer is not None:
                answer(late.reply)
        if step.written:
            self._write(group)

    def _keep(self, group: ClassicGroup) -> None:
        """Stores the group's new state, and sets the timer for its next deadline."""
        self._groups[group.name] = group
        check = self._checks.pop(group.name, None)
        if check is not None:
            check.cancel()
        at = due(group)
        if at is not None:
            wait = max(at - self._context.loop.now, 0)
            self._checks[group.name] = self._timers.later(wait, self._time_passed, group.name)

    def _time_passed(self, name: str) -> None:
        self._checks.pop(name, None)
        if name in self._groups and self.coordinates(name):
            self._carry_out(passed(self._groups[name], self._context.loop.now))

    def _write(self, group: ClassicGroup) -> None:
        def replied(error: Error | None) -> None:
            if group.name in self._groups:
                now = self._context.loop.now
                self._carry_out(written(self._groups[group.name], group.generation, error, now))

        record = generation_record(group, self._now_ms)
        self._append(group.name, (record,), partial(self._context.groups.generation_appended, group), replied)

    # Offsets.

    def member_error(self, name: str, claim: MemberClaim, *, transactional: bool) -> Error | None:
        """Why a member, or a client without membership, may not commit offsets for the group."""
        if not self.coordinates(name):
            return Error.NOT_COORDINATOR
        return commit_error(self._groups.get(name), claim, transactional=transactional)

    def commit(
        self,
        name: str,
        offsets: Sequence[tuple[TopicPartition, CommittedOffset]],
        claim: MemberClaim,
        answer: Callable[[Error | None], None],
    ) -> None:
        """Counts as soon as it is appended, and is answered when it is replicated."""
        error = self.member_error(name, claim, transactional=False)
        if error is not None:
            answer(error)
            return
        group = self._groups.get(name)
        if group is not None:
            self._keep(alive(group, claim.member_id, self._context.loop.now))
        if self._partition(name) is None or not offsets:
            self._context.groups.commit(name, offsets)
            answer(None)
            return
        records = [offset_record(name, tp, offset, self._now_ms) for tp, offset in offsets]
        self._append(name, records, partial(self._context.groups.commit, name, offsets), answer)

    def _append(
        self,
        name: str,
        records: Sequence[tuple[bytes, bytes]],
        appended: Callable[[EpochSpan], None],
        answer: Callable[[Error | None], None],
    ) -> None:
        tp = self._partition(name)
        assert tp is not None

        batch = GeneratedBatch(len(records), records=tuple(records))
        span = append_stored(
            self._context,
            self._broker,
            tp,
            batch,
            acks=-1,
            answer=lambda reply: answer(coordinator_error(reply)),
        )
        if span is not None:
            appended(span)

    @property
    def _now_ms(self) -> int:
        return self._context.loop.now // MILLISECOND


def refused(body: GroupRequest, error: Error) -> GroupReply:
    """The error response to a member's request."""
    if isinstance(body, JoinGroup):
        return JoinReply(error, body.member_id)
    if isinstance(body, SyncGroup):
        return SyncReply(error)
    if isinstance(body, GroupHeartbeat):
        return HeartbeatReplied(error)
    assert isinstance(body, LeaveGroup)
    return LeaveReply((error,) * len(body.members))
