"""Requests of an operator to a broker: answered from its metadata and disks, or forwarded to the controller."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from backends.base.answers import LogDir, LogDirReplica, LogPosition, RawBatches
from backends.simulator import operator_messages as ask
from backends.simulator.broker.broker_state import BrokerState
from backends.simulator.broker.controller_channel import ControllerChannel
from backends.simulator.broker.describe import describe_configs, describe_page
from backends.simulator.broker.log_storage import LogStorage
from backends.simulator.broker.replica_log import Log, read
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
        self._times = context.times
        self._contents = context.contents
        self._served: dict[type, Callable[[Any], Any]] = {
            ask.DescribeCluster: lambda _: self._cluster(),
            ask.DescribeTopicPartitions: lambda body: describe_page(
                self._state.image, self._config.partition_limit, body, self._denied
            ),
            ask.GetReplicaLogInfo: self._log_info,
            ask.ReadLineage: self._lineage,
            ask.ReadTimes: self._read_times,
            ask.FetchBatches: self._fetch_batches,
            ask.DescribeLogDirs: lambda _: self._log_dirs(),
            ask.DescribeConfigs: lambda body: describe_configs(
                self._state, context.topic_configs, body, self._denied
            ),
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

    def _cluster(self) -> ask.ClusterDescribed:
        image = self._state.image
        brokers = tuple(
            (broker, registration.fenced) for broker, registration in sorted(image.brokers.items())
        )
        return ask.ClusterDescribed(brokers, self._state.offset, image.rules.elr)

    def _log_info(self, body: ask.GetReplicaLogInfo) -> ask.ReplicaLogInfos:
        if "CLUSTER_ACTION cluster" in self._denied:
            return ask.ReplicaLogInfos(Error.CLUSTER_AUTHORIZATION_FAILED)
        limit = self._config.log_info_limit
        infos = tuple(self._infos(body.partitions[:limit]))
        return ask.ReplicaLogInfos(None, self._state.epoch, len(body.partitions) > limit, infos)

    def _infos(self, tps: Sequence[TopicPartition]) -> Iterator[ask.ReplicaLogInfo]:
        """Fast for the usual case: an operator who looks at 200,000 partitions asks for 600,000 logs."""
        logs, find = self._storage.disk.logs, self._state.image.partitions.get
        usual = self._storage.sound and not self._denied.permissions
        for tp in tps:
            log, partition = logs.get(tp), find(tp)
            if usual and log is not None and partition is not None:
                yield _new(ask.ReplicaLogInfo, (tp, partition.leader_epoch, log.end, None))
            else:
                yield self._one(tp)

    def _one(self, tp: TopicPartition) -> ask.ReplicaLogInfo:
        if f"DESCRIBE topic {tp.topic}" in self._denied:
            return ask.ReplicaLogInfo(tp, -1, -1, Error.TOPIC_AUTHORIZATION_FAILED)
        partition = self._state.image.partitions.get(tp)
        epoch = -1 if partition is None else partition.leader_epoch
        error = self._log_error(tp)
        if error is not None:
            return ask.ReplicaLogInfo(tp, epoch, -1, error)
        return ask.ReplicaLogInfo(tp, epoch, self._storage.log(tp).end, None)

    def _log_error(self, tp: TopicPartition) -> Error | None:
        """Reads the disk state without taking a broken log dir offline: an operator's question must not change
        the run.
        """
        storage = self._storage
        if tp not in storage.disk.logs:
            return Error.UNKNOWN_TOPIC_OR_PARTITION
        fails = storage.offline(tp) or not storage.disk.works(tp)
        return Error.KAFKA_STORAGE_ERROR if fails else None

    def _lineage(self, body: ask.ReadLineage) -> ask.LineageRead:
        return ask.LineageRead(tuple(self._reads(body.partitions)))

    def _reads(self, tps: Sequence[TopicPartition]) -> Iterator[ask.LineageRow]:
        """Equal logs are one object, so their lineage is built once."""
        disk = self._storage.disk
        usual = self._storage.sound and not self._denied.permissions
        known: dict[int, ask.LogDescription] = {}
        for tp in tps:
            log = disk.logs.get(tp)
            if not usual or log is None:
                yield self._read(tp)
                continue
            described = known.get(id(log))
            if described is None:
                described = known[id(log)] = self._describe_log(log)
            yield _new(ask.LineageRow, (tp, None, described, self._leads(tp)))

    def _read(self, tp: TopicPartition) -> ask.LineageRow:
        if f"READ topic {tp.topic}" in self._denied:
            return ask.LineageRow(tp, Error.TOPIC_AUTHORIZATION_FAILED)
        error = self._log_error(tp)
        if error is not None:
            return ask.LineageRow(tp, error)
        return ask.LineageRow(tp, None, self._describe_log(self._storage.log(tp)), self._leads(tp))

    def _leads(self, tp: TopicPartition) -> bool:
        partition = self._state.image.partitions.get(tp)
        return partition is not None and partition.leader == self._state.id

    def _describe_log(self, log: Log) -> ask.LogDescription:
        path = self._storage.disk.directories[log.directory].path
        return ask.LogDescription(log.lineage, log.start, log.high_watermark, path)

    def _read_times(self, body: ask.ReadTimes) -> ask.TimesRead:
        return ask.TimesRead(tuple(self._time_of(tp, offset) for tp, offset in body.records))

    def _time_of(self, tp: TopicPartition, offset: int) -> tuple[int, int] | None:
        if f"READ topic {tp.topic}" in self._denied or self._log_error(tp) is not None:
            return None
        spans = self._storage.log(tp).spans
        epoch = next((span.epoch for span in spans if span.start <= offset < span.end), None)
        return None if epoch is None else self._times.of(tp, epoch, offset)

    def _fetch_batches(self, body: ask.FetchBatches) -> ask.BatchesFetched:
        room = body.max_bytes
        rows: list[RawBatches | Error | None] = []
        for position in body.positions:
            row = self._batches_from(position, room)
            if isinstance(row, RawBatches):
                room -= len(row.data)
            rows.append(row)
        return ask.BatchesFetched(tuple(rows))

    def _batches_from(self, position: LogPosition, room: int) -> RawBatches | Error | None:
        """Whole batches: at least one while there is room at all (KIP-74)."""
        tp, offset = position
        if f"READ topic {tp.topic}" in self._denied:
            return Error.TOPIC_AUTHORIZATION_FAILED
        error = self._log_error(tp)
        if error is not None:
            return error
        log = self._storage.log(tp)
        if not log.start <= offset <= log.end:
            return None
        data = bytearray()
        for span in read(log, offset, MOST_RECORDS) if room > 0 else ():

            def time_of(at: int, epoch: int = span.epoch) -> int:
                return self._times.of(tp, epoch, at)[0]

            for batch in self._contents.read(tp, span, time_of):
                if data and len(data) + len(batch) > room:
                    return RawBatches(bytes(data), log.start, log.high_watermark)
                data += batch
        return RawBatches(bytes(data), log.start, log.high_watermark)

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

        def replied(reply: Any) -> None:
            silent = Unknown(Why.NOT_ANSWERED, "no active controller answered DescribeQuorum")
            answer(silent if reply is None else reply)

        self._channel.ask(body, self._config.request_timeout, replied)
