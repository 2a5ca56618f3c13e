"""One run of a broker process, from start to end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from backends.base.consumer_groups import OFFSETS_TOPIC
from backends.simulator.broker.broker_access import Perform
from backends.simulator.broker.broker_min_isr import BrokerMinIsr
from backends.simulator.broker.broker_state import UNREGISTERED, BrokerState
from backends.simulator.broker.controller_channel import ControllerChannel
from backends.simulator.broker.fetcher import FetcherContext, FetcherManager
from backends.simulator.broker.group_coordinator import GroupCoordinator
from backends.simulator.broker.log_storage import BrokerDisk, LogStorage
from backends.simulator.broker.partition_leader import PartitionLeader
from backends.simulator.broker.replica_log import read
from backends.simulator.committed_records import config_steps
from backends.simulator.context import Context
from backends.simulator.events import BrokerStopped, RecordsRead
from backends.simulator.loop import MILLISECOND, TimerGroup
from backends.simulator.messages import (
    AssignDirectories,
    Consume,
    ConsumeReply,
    DeleteRecords,
    Error,
    Fetch,
    Heartbeat,
    HeartbeatReply,
    LogInfoReply,
    LogInfoRequest,
    MetadataBatch,
    MetadataFetch,
    Produce,
    RegisterBroker,
    Registered,
)
from backends.simulator.network import NetworkNode
from backends.simulator.partition_table import generation_of
from backends.simulator.rpc import Answer, RpcEndpoint
from recovery.controller.cluster_image import ClusterImage
from recovery.controller.controller_errors import ControllerError
from recovery.controller.registration import LOST_DIRECTORY, Registration
from recovery.controller.unclean_recovery import LogInfo
from recovery.model import TopicPartition

ASSIGNMENTS_WAIT = 100 * MILLISECOND
"""As in Kafka. A starting broker is unfenced before it reports that a replica moved to another log dir."""
HEARTBEAT = "heartbeat"
METADATA = "metadata"


class BrokerProcess:
    """One run of a broker: it registers, reads the metadata, sends heartbeats, and does what the metadata says.

    ``stopped`` is called when the process ends by itself: (broker, whether cleanly). A process of a cluster that is
    loaded ``running`` gets its broker epoch and the metadata; any other starts without metadata and registers.
    ``file_min_isr``: min.insync.replicas in its configuration file.
    """

    def __init__(
        self,
        context: Context,
        broker: int,
        disk: BrokerDisk,
        stopped: Callable[[int, bool], None],
        *,
        file_min_isr: int,
        running: tuple[int, ClusterImage] | None = None,
    ) -> None:
        self.id = broker
        loaded = () if running is None else config_steps(ClusterImage({}, {}), running[1])
        self.state = state = BrokerState(broker, BrokerMinIsr(broker, file_min_isr, loaded), running)
        self._context = context
        self._config = config = context.config
        self._timers = timers = TimerGroup(context.loop)
        self.endpoint = endpoint = RpcEndpoint(context.loop, context.network, state.node, self._handle)
        self._channel = channel = ControllerChannel(context.controllers, endpoint)
        self._shutting_down = False
        self._stopped = stopped
        self._heartbeat_due = False
        self._assignments: dict[TopicPartition, str] = {}
        self._without_log: dict[TopicPartition, None] = {}
        self._read_up_to = state.offset
        self.storage = storage = LogStorage(broker, disk, context.emit, self._note, self._went_offline)
        self.leader = PartitionLeader(context, state, storage, timers, channel, warm=state.running)
        self._fetchers = FetcherManager(FetcherContext(state, storage, timers, endpoint, config, self._note))
        self.groups = GroupCoordinator(context, self, timers)
        self._previous_epoch = disk.clean_shutdown_epoch
        disk.clean_shutdown_epoch = None
        if state.running:
            self._load()
        else:
            self._note("started")
            if storage.online_ids:
                self._register()
            else:
                self._went_offline()

    def _note(self, what: str) -> None:
        self._context.history.add(self.state.node, what)

    def _load(self) -> None:
        self._fetchers.load()
        interval = self._config.broker_heartbeat_interval
        self._timers.later(self._context.loop.random.randrange(interval), self._heartbeat)
        self._serve()

    def _serve(self) -> None:
        """Start the background work of the process: flushing, checkpoints, metadata fetches."""
        config = self._config
        random = self._context.loop.random
        self._timers.later(random.randrange(config.flush_interval), self._flush)
        self._timers.later(random.randrange(config.high_watermark_checkpoint_interval), self._checkpoint)
        self._fetch_metadata()

    # Stopping.

    def stop(self, *, clean: bool = False, power_lost: bool = False) -> None:
        """The process has ended: by a controlled shutdown, by SIGKILL, or with the machine's power."""
        self._timers.cancel()
        self.leader.close()
        self.endpoint.close()
        if clean:
            self.storage.disk.shut_down(self.state.epoch)
            how = "shut down cleanly"
        else:
            lost = self.storage.disk.crash(power_lost=power_lost)
            how = f"lost power; partitions that lost unflushed data: {len(lost)}" if power_lost else "killed"
        self._note(how)
        self._context.emit(BrokerStopped(self.id, clean, power_lost))

    def shut_down(self) -> None:
        """Start a controlled shutdown; the leaderships move first (KIP-631)."""
        self._shutting_down = True
        if self.state.epoch == UNREGISTERED:
            self._stopped(self.id, True)
            return
        self._heartbeat_now()

    # Registration and heartbeats.

    def _register(self) -> None:
        detects = self._config.clean_shutdown_detection
        previous = self._previous_epoch if detects and self._previous_epoch is not None else UNREGISTERED
        directories = self.storage.online_ids if self._tracks_dirs else ()
        body = RegisterBroker(self.id, previous, directories, self.endpoint.incarnation)
        self._channel.ask(body, self._config.request_timeout, self._registered)

    @property
    def _tracks_dirs(self) -> bool:
        return len(self.storage.disk.directories) > 1

    def _registered(self, reply: Any) -> None:
        if not isinstance(reply, Registered):
            self._timers.later(self._config.controller_election_timeout // 2, self._register)
            return
        self.state.epoch = reply.epoch
        self._serve()
        self._heartbeat()

    def _heartbeat_now(self) -> None:
        if self.state.epoch != UNREGISTERED and not self._heartbeat_due:
            self._heartbeat_due = True
            self._timers.later(0, self._heartbeat)

    def _heartbeat(self) -> None:
        self._heartbeat_due = True
        registered = self.state.image.brokers.get(self.id)
        body = Heartbeat(
            self.id,
            self.state.epoch,
            registered is not None and registered.epoch == self.state.epoch,
            self._shutting_down,
            self.storage.failed_ids,
        )
        config = self._config
        timeout = min(config.broker_heartbeat_interval, config.request_timeout)
        self._channel.ask(body, timeout, self._heartbeat_answered, HEARTBEAT)

    def _heartbeat_answered(self, reply: Any) -> None:
        self._heartbeat_due = False
        wait = self._config.broker_heartbeat_interval
        if isinstance(reply, HeartbeatReply):
            if reply.refusal is not None and reply.refusal.error is ControllerError.STALE_BROKER_EPOCH:
                wait = self._config.broker_session_timeout
            elif reply.may_shut_down and self._shutting_down:
                self._stopped(self.id, True)
                return
            elif reply.fenced or self._shutting_down:
                wait = self._config.alter_partition_backoff
            self.state.running = not reply.fenced or self.state.running
        self._timers.later(wait, self._next_heartbeat)

    def _next_heartbeat(self) -> None:
        if not self._heartbeat_due:
            self._heartbeat()

    # Metadata.

    def _fetch_metadata(self) -> None:
        config = self._config
        timeout = config.metadata_fetch_wait_max + config.request_timeout
        directory = self.storage.disk.directories[0].id
        self._channel.ask(
            MetadataFetch(self.id, self._read_up_to, directory), timeout, self._metadata, METADATA
        )

    def _metadata(self, reply: Any) -> None:
        if not isinstance(reply, MetadataBatch):
            self._timers.later(self._config.controller_election_timeout // 4, self._fetch_metadata)
            return
        configures = False
        if reply.offset > self._read_up_to:
            snapshot = (
                None
                if reply.from_snapshot is None
                else config_steps(ClusterImage({}, {}), reply.from_snapshot)
            )
            whole = reply.complete or self.state.offset >= 0
            configures = self.state.min_isr.replay(reply.configs, snapshot, whole=whole)
        self._read_up_to = max(self._read_up_to, reply.offset)
        self.storage.disk.metadata_read = max(self.storage.disk.metadata_read, self._read_up_to)
        publish_time = 0
        if reply.image is not None and reply.offset > self.state.offset and self._publishes(reply.image):
            first = self.state.offset < 0
            changed = self._apply(reply, reply.image)
            if configures and not first:
                publish_time = changed * self._config.publish_time
        if self.state.offset >= 0:
            self.state.offset = max(self.state.offset, reply.offset)
        if publish_time:
            # The leaderships of this delta are taken already; until then these leaders obey the old values.
            self._timers.later(publish_time, self._configure)
            self._timers.later(publish_time, self._fetch_metadata)
            return
        if configures:
            self._configure()
        self._fetch_metadata()

    def _configure(self) -> None:
        """The configurations of the delta take effect, after its leaderships (BrokerMetadataPublisher)."""
        self.leader.publish_min_isr()

    def _publishes(self, image: ClusterImage) -> bool:
        """As in Kafka, a starting broker acts on no metadata from before its own registration: an older image may
        say that it leads.
        """
        registered = image.brokers.get(self.id)
        return self.state.offset >= 0 or (registered is not None and registered.epoch == self.state.epoch)

    def _apply(self, batch: MetadataBatch, image: ClusterImage) -> int:
        """Take over the partitions of this broker that changed; returns how many."""
        before, self.state.image = self.state.image, image
        first = self.state.offset < 0
        self.state.offset = batch.offset
        if first or batch.touched is None:
            mine = self._everything()
        else:
            # In a large cluster most changes are not about this broker.
            logs, without, placed = self.storage.disk.logs, self._without_log, batch.placed
            if without or placed:
                mine = [tp for tp in batch.touched if tp in logs or tp in without or tp in placed]
            else:
                mine = list(filter(logs.__contains__, batch.touched))
        for tp in mine:
            was, after = before.partitions.get(tp), image.partitions.get(tp)
            has_log = tp in self.storage.disk.logs
            if has_log and self.storage.disk.log_of(tp, generation_of(image, tp.topic)) is None:
                self._partition(tp, was, None)  # its topic was deleted, perhaps while this broker was down
                was = None
            if tp in self.storage.disk.logs or (after is not None and self.id in after.replicas):
                self._partition(tp, was, after)
            if tp.topic == OFFSETS_TOPIC:
                self.groups.follow(tp)
        self.leader.registrations_changed(batch.brokers)
        if image.brokers.get(self.id) is not None:
            self.state.running = self.state.running or not image.brokers[self.id].fenced
        return len(mine)

    def _everything(self) -> list[TopicPartition]:
        """Every partition that this broker hosts or is to host."""
        mine = {
            tp: None for tp, partition in self.state.image.partitions.items() if self.id in partition.replicas
        }
        mine.update(dict.fromkeys(self.storage.disk.logs))
        return list(mine)

    def _partition(self, tp: TopicPartition, before: Registration | None, after: Registration | None) -> None:
        if after is None or self.id not in after.replicas:
            self.leader.drop(tp)
            self._fetchers.changed(tp, before, after)
            self.storage.delete(tp)
            self._without_log.pop(tp, None)
            return
        if tp not in self.storage.disk.logs:
            if not self._create(tp, after):
                self._without_log[tp] = None
                self._fetchers.exclude(tp)
                return
            self._without_log.pop(tp, None)
        if self.storage.offline(tp):
            self._fetchers.exclude(tp)
            return
        if after.leader != self.id:
            self.leader.drop(tp)
        elif before is not None and before.leader == self.id and before.leader_epoch == after.leader_epoch:
            self.leader.update(tp, before, after)
        else:
            self.leader.take(tp, after)
        self._fetchers.changed(tp, before, after)

    def _create(self, tp: TopicPartition, partition: Registration) -> bool:
        named = partition.directory(self.id)
        if not self.storage.create(tp, named, generation_of(self.state.image, tp.topic)):
            return False
        self.state.min_isr.created(tp)
        placed = self.storage.disk.directories[self.storage.log(tp).directory].id
        if named is not None and named != placed:
            self._assign(((tp, placed),))
        return True

    def _assign(self, directories: Iterable[tuple[TopicPartition, str]]) -> None:
        """Report the log dirs of replicas to the controller after a short wait, so that several go into one
        request.
        """
        if not self._assignments:
            self._timers.later(ASSIGNMENTS_WAIT, self._send_assignments)
        self._assignments.update(directories)

    def _send_assignments(self) -> None:
        directories, self._assignments = tuple(self._assignments.items()), {}

        def answered(reply: Any) -> None:
            if reply is None:
                self._assign((tp, placed) for tp, placed in directories if tp not in self._assignments)

        body = AssignDirectories(self.id, self.state.epoch, directories)
        self._channel.ask(body, self._config.request_timeout, answered)

    # Disks.

    def _went_offline(self) -> None:
        """A log dir or a partition failed. The broker stops when its last log dir has failed."""
        if len(self.storage.failed) == len(self.storage.disk.directories):
            self._note("no log dir is left: the broker stops")
            self._timers.later(0, self._stopped, self.id, False)
            return
        for tp in list(self.storage.disk.logs):
            if self.storage.offline(tp):
                self.leader.drop(tp)
                self._fetchers.leave(tp)
                if tp.topic == OFFSETS_TOPIC:
                    self.groups.follow(tp)
        lost = tuple((tp, LOST_DIRECTORY) for tp in self.storage.failed_partitions)
        if lost:
            self._assign(lost)
        self._heartbeat_now()

    def _flush(self) -> None:
        self.storage.disk.flush()
        self._timers.later(self._config.flush_interval, self._flush)

    def _checkpoint(self) -> None:
        self.storage.checkpoint()
        self._timers.later(self._config.high_watermark_checkpoint_interval, self._checkpoint)

    # Requests.

    def _handle(self, _source: NetworkNode, body: Any, answer: Answer) -> None:
        if isinstance(body, Fetch):
            self.leader.sessions.fetch(body, answer)
        elif isinstance(body, Produce):
            self.leader.produce(body, answer)
        elif isinstance(body, Consume):
            self._consume(body, answer)
        elif isinstance(body, DeleteRecords):
            self.leader.delete_records(body, answer)
        elif isinstance(body, Perform):
            body.act(self, answer)
        elif isinstance(body, LogInfoRequest):
            answer(LogInfoReply(tuple(self._log_infos(body))))
        else:
            self._forward(body, answer)

    def _log_infos(self, body: LogInfoRequest) -> Iterator[LogInfo]:
        """GetReplicaLogInfo of KIP-966, with the epoch of the last record. Takes no broken log dir offline."""
        storage = self.storage
        for tp in body.partitions:
            partition = self.state.image.partitions.get(tp)
            if partition is not None and not storage.offline(tp) and storage.disk.works(tp):
                log = storage.log(tp)
                yield LogInfo(self.id, self.state.epoch, partition.leader_epoch, log.last_epoch, log.end)

    def _forward(self, body: Any, answer: Answer) -> None:
        """To the active controller. If it is not known, whoever asks has to ask again."""

        def replied(reply: Any) -> None:
            answer(Error.REQUEST_TIMED_OUT if reply is None else reply)

        self._channel.ask(body, self._config.request_timeout, replied)

    def _consume(self, body: Consume, answer: Answer) -> None:
        lead = self.leader.leading(body.tp)
        log = self.storage.read(body.tp) if lead is not None else None
        if log is None:
            answer(ConsumeReply(Error.NOT_LEADER_OR_FOLLOWER))
            return
        begin = log.high_watermark if body.offset < 0 else body.offset
        if not log.start <= begin <= log.end:
            answer(ConsumeReply(Error.OFFSET_OUT_OF_RANGE))
            return
        spans = read(log, begin, max(log.high_watermark - begin, 0))
        if spans and lead is not None:
            self._context.emit(RecordsRead(body.tp, lead.epoch, spans, self.id))
        answer(ConsumeReply(None, log.high_watermark, spans))
