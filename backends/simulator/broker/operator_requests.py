"""Requests of an operator to a broker: answered from its metadata and disks, or forwarded to the controller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from backends.base.answers import LogDir, LogDirReplica
from backends.simulator import operator_messages as ask
from backends.simulator.broker.broker_state import BrokerState
from backends.simulator.broker.controller_channel import ControllerChannel
from backends.simulator.broker.describe import describe_page
from backends.simulator.broker.log_storage import LogStorage
from backends.simulator.context import Context
from backends.simulator.messages import (
    CreateTopic,
    DeleteTopic,
    ElectLeaders,
    Error,
    LogInfoReply,
    LogInfoRequest,
    Reassign,
    SetConfig,
    UpdateFeature,
)
from backends.simulator.network import broker as node
from backends.simulator.network import controller
from backends.simulator.rpc import Answer
from recovery.controller.transition_targets import ElectionKind
from recovery.controller.unclean_recovery import LogInfo
from recovery.model import TopicPartition, Unknown, Why

_new = tuple.__new__
"""Creates a NamedTuple in half the time of its constructor; up to 600,000 are created for one survey."""

TOTAL_BYTES = 1 << 40
"""Size of a simulated log dir."""
MOST_RECORDS = 10_000
"""Records of one partition in one answer."""


class OperatorRequests:
    """A broker that has read no metadata yet answers from its own disks only."""

    def __init__(
        self, context: Context, state: BrokerState, storage: LogStorage, channel: ControllerChannel
    ) -> None:
        self._state = state
        self._storage = storage
        self._channel = channel
        self._config = context.config
        self._denied = context.denied
        self._quorum_log, self._network, self._loop = context.metadata, context.network, context.loop
        self._served: dict[type, Callable[[Any], Any]] = {
            ask.DescribeTopicPartitions: lambda body: describe_page(
                self._state.image, self._config.partition_limit, body, self._denied
            ),
            ask.DescribeLogDirs: lambda _: self._log_dirs(),
            ask.ListReassignments: self._reassignments,
            LogInfoRequest: self._for_the_controller,
        }

    def handle(self, body: Any, answer: Answer) -> None:
        """Answer one request. Raises TypeError for an unknown one."""
        served = self._served.get(type(body))
        if served is not None:
            answer(served(body))
        elif isinstance(body, (ElectLeaders, Reassign, SetConfig, UpdateFeature, CreateTopic, DeleteTopic)):
            self._forward(body, answer)
        elif isinstance(body, ask.DescribeQuorum):
            self._quorum(body, answer)
        else:
            raise TypeError(f"no request of a broker: {body!r}")

    def _log_error(self, tp: TopicPartition) -> Error | None:
        """Reads the disk state without taking a broken log dir offline: an operator's question must not change
        the run.
        """
        storage = self._storage
        if tp not in storage.disk.logs:
            return Error.UNKNOWN_TOPIC_OR_PARTITION
        fails = storage.offline(tp) or not storage.disk.works(tp)
        return Error.KAFKA_STORAGE_ERROR if fails else None

    def _for_the_controller(self, body: LogInfoRequest) -> LogInfoReply:
        """GetReplicaLogInfo of KIP-966, with the epoch of the last record."""
        infos = []
        for tp in body.partitions:
            partition = self._state.image.partitions.get(tp)
            if partition is not None and self._log_error(tp) is None:
                log = self._storage.log(tp)
                epoch = partition.leader_epoch
                info = LogInfo(self._state.id, self._state.epoch, epoch, log.last_epoch, log.end)
                infos.append(info)
        return LogInfoReply(tuple(infos))

    def _log_dirs(self) -> ask.LogDirsDescribed:
        if "DESCRIBE cluster" in self._denied:
            return ask.LogDirsDescribed(Error.CLUSTER_AUTHORIZATION_FAILED)
        storage = self._storage
        rows: list[list[LogDirReplica]] = [[] for _ in storage.disk.directories]
        for tp, log in storage.disk.logs.items():
            if not storage.offline(tp):
                size = log.size
                rows[log.directory].append(LogDirReplica(tp, size, 0, False))
        dirs = []
        for index, directory in enumerate(storage.disk.directories):
            if index in storage.failed:
                error = "KAFKA_STORAGE_ERROR"
                dirs.append(LogDir(self._state.id, directory.path, error, -1, -1, ()))
            else:
                used = sum(row.size for row in rows[index])
                free = TOTAL_BYTES - used
                reported = tuple(rows[index])
                dirs.append(LogDir(self._state.id, directory.path, None, TOTAL_BYTES, free, reported))
        return ask.LogDirsDescribed(None, tuple(dirs))

    def _reassignments(self, body: ask.ListReassignments) -> ask.ReassignmentsListed:
        if "DESCRIBE cluster" in self._denied:
            return ask.ReassignmentsListed(Error.CLUSTER_AUTHORIZATION_FAILED)
        partitions = self._state.image.partitions
        wanted = body.partitions if body.partitions is not None else partitions
        rows = []
        for tp in wanted:
            registration = partitions.get(tp)
            if registration is not None and registration.reassigning:
                rows.append((tp, registration.replicas, registration.adding, registration.removing))
        return ask.ReassignmentsListed(None, tuple(rows))

    def _forward(self, body: Any, answer: Answer) -> None:
        """Forward to the active controller. If it is not known, the operator has to ask again."""
        needs = "ALTER cluster"
        if isinstance(body, ElectLeaders) and body.kind is ElectionKind.DESIGNATED:
            needs = "CLUSTER_ACTION cluster"
        if needs in self._denied:
            answer(Error.CLUSTER_AUTHORIZATION_FAILED)
            return

        def replied(reply: Any) -> None:
            answer(Error.REQUEST_TIMED_OUT if reply is None else reply)

        self._channel.ask(body, self._config.request_timeout, replied)

    def _quorum(self, body: ask.DescribeQuorum, answer: Answer) -> None:
        if "DESCRIBE cluster" in self._denied:
            answer(Unknown(Why.NOT_ALLOWED, "DescribeQuorum needs DESCRIBE on the cluster"))
            return

        self._ask_leader(body, answer)

    def _ask_leader(self, body: ask.DescribeQuorum, answer: Answer) -> None:
        """As long as there and back, and on no connection of the cluster's own: a question must not change the run.
        Nothing is answered where the broker reaches no leader.
        """
        leader, network = self._quorum_log.leader, self._network
        if leader is not None and network.connected(node(self._state.id), controller(leader.state.id)):
            self._loop.call_later(2 * network.weather.latency, self._arrive, leader.state.id, body, answer)

    def _arrive(self, leader: int, body: ask.DescribeQuorum, answer: Answer) -> None:
        if leader in self._quorum_log.replicas:
            self._quorum_log.receive(leader, body, answer)
