"""The groups that a broker coordinates: those of the partitions of __consumer_offsets that it leads.

What it decides is in :mod:`backends.simulator.group_rules`. Its memory of members ends with its leadership: the
next leader reads from its log who was a member of the last generation that got its assignment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from backends.simulator import operator_messages as ask
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
from backends.simulator.network import OPERATOR, NetworkNode
from backends.simulator.record_batches import GeneratedBatch
from backends.simulator.rpc import Answer
from recovery.model import EpochSpan, TopicPartition

CONSUMER = "consumer"
"""The protocol type of groups whose members have left before the run began."""

CoordinatorRequest = (
    GroupRequest | ask.ListGroupOffsets | ask.CommitGroupOffsets | ask.CheckGroupMember | ask.DescribeGroups
)


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

    def handle(self, body: CoordinatorRequest, source: NetworkNode, answer: Answer) -> None:
        """Permissions are the operator's; of clients their listener has checked them."""
        denied = self._context.denied if source == OPERATOR else ()
        if isinstance(body, ask.ListGroupOffsets):
            forbidden = "DESCRIBE cluster" in denied
            answer(
                ask.GroupOffsetsListed(Error.CLUSTER_AUTHORIZATION_FAILED)
                if forbidden
                else ask.GroupOffsetsListed(None, tuple(map(self._listed, self._coordinated())))
            )
        elif isinstance(body, ask.DescribeGroups):
            answer(ask.GroupsDescribed(tuple(map(self._described, body.groups))))
        elif isinstance(body, ask.CommitGroupOffsets):
            error = self._member_error(body.group, body.claim, transactional=False)
            if f"READ group {body.group}" in denied:
                error = Error.GROUP_AUTHORIZATION_FAILED
            if error is not None:
                answer(ask.GroupOffsetsCommitted(error))
            else:
                self._commit(body, answer)
        elif isinstance(body, ask.CheckGroupMember):
            answer((self._member_error(body.group, body.claim, transactional=True),))
        else:
            self._requested(body, answer)

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

    def _coordinates(self, name: str) -> bool:
        tp = self._partition(name)
        if tp is not None:
            self.follow(tp)
            return tp in self._led
        return group_coordinator(self._broker.state.image, name) == self._broker.state.id

    def _coordinated(self) -> list[str]:
        names = dict.fromkeys((*self._context.groups.names(), *self._groups))
        return sorted(name for name in names if self._coordinates(name))

    def _partition(self, name: str) -> TopicPartition | None:
        return offsets_partition(self._broker.state.image, name)

    def _log(self, name: str) -> Log | None:
        tp = self._partition(name)
        return None if tp is None else self._broker.storage.log(tp)

    # Descriptions of groups.

    def _listed(self, name: str) -> ask.ListedGroup:
        pending = self._context.groups.unstable(name)
        offsets = tuple(
            (tp, committed._replace(pending=True) if tp in pending else committed)
            for tp, committed in self._context.groups.committed(name, self._log(name)).items()
        )
        return ask.ListedGroup(self._groups.get(name, ClassicGroup(name, protocol_type=CONSUMER)), offsets)

    def _described(self, name: str) -> ClassicGroup | Error:
        """Kafka knows a group that has committed, or has had members."""
        if not self._coordinates(name):
            return Error.NOT_COORDINATOR
        if name not in self._groups and not self._context.groups.committed(name, self._log(name)):
            return Error.GROUP_ID_NOT_FOUND
        return self._groups.get(name, ClassicGroup(name, protocol_type=CONSUMER))

    # Members.

    def _requested(self, body: GroupRequest, answer: Answer) -> None:
        if self._partition(body.group) is None or not self._coordinates(body.group):
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
        if name in self._groups and self._coordinates(name):
            self._carry_out(passed(self._groups[name], self._context.loop.now))

    def _write(self, group: ClassicGroup) -> None:
        def replied(error: Error | None) -> None:
            if group.name in self._groups:
                now = self._context.loop.now
                self._carry_out(written(self._groups[group.name], group.generation, error, now))

        record = generation_record(group, self._now_ms)
        self._append(group.name, (record,), partial(self._context.groups.generation_appended, group), replied)

    # Offsets.

    def _member_error(self, name: str, claim: Any, *, transactional: bool) -> Error | None:
        if not self._coordinates(name):
            return Error.NOT_COORDINATOR
        return commit_error(self._groups.get(name), claim, transactional=transactional)

    def _commit(self, body: ask.CommitGroupOffsets, answer: Answer) -> None:
        """Counts as soon as it is appended, and is answered when it is replicated."""
        group = self._groups.get(body.group)
        if group is not None:
            self._keep(alive(group, body.claim.member_id, self._context.loop.now))

        def replied(error: Error | None) -> None:
            answer(ask.GroupOffsetsCommitted(error))

        if self._partition(body.group) is None or not body.offsets:
            self._context.groups.commit(body.group, body.offsets)
            replied(None)
            return
        records = [offset_record(body.group, tp, offset, self._now_ms) for tp, offset in body.offsets]
        self._append(
            body.group, records, partial(self._context.groups.commit, body.group, body.offsets), replied
        )

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
