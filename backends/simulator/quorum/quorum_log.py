"""The metadata log, replicated by a quorum of controllers (KIP-595, KIP-853)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from backends.simulator.config import Config
from backends.simulator.events import Emit
from backends.simulator.history import History
from backends.simulator.loop import Loop
from backends.simulator.messages import UpdateFeature
from backends.simulator.quorum.metadata_disk import (
    LISTENER,
    ControllerHost,
    MetadataDisk,
    host_name,
    metadata_directory_id,
)
from backends.simulator.quorum.quorum_context import QuorumContext
from backends.simulator.quorum.raft_leader import describe_quorum
from backends.simulator.quorum.raft_log import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    LogRecord,
    MetadataRecord,
    RecordBody,
    VotersRecord,
)
from backends.simulator.quorum.raft_messages import (
    AddRaftVoter,
    DescribeQuorum,
    QuorumLeader,
)
from backends.simulator.quorum.raft_replica import REQUESTS, RaftReplica
from backends.simulator.rpc import Answer, RpcEndpoint
from backends.simulator.topology import Topology, cluster_id
from recovery.membership.raft_votes import RaftLogEnd
from recovery.membership.voter_changes import RemoveRaftVoter
from recovery.membership.voters import ReplicaKey, VoterSet

if TYPE_CHECKING:
    from backends.simulator.controller.controller_process import ControllerProcess

KRAFT_VERSION = "kraft.version"
FIRST_EPOCH = 1
_ITS_OWN = REQUESTS | {DescribeQuorum, UpdateFeature}


class CommittedPayload(NamedTuple):
    """A committed entry: its offset in the log, and its payload."""

    offset: int
    payload: Any


class CommittedRead(NamedTuple):
    """``entries`` in order. ``reached`` is the newest offset that the reader has now seen, records of the
    quorum included. ``whole``: nothing is missing between the requested offset and ``entries``. ``complete``:
    nothing that is committed comes after them.
    """

    entries: Sequence[CommittedPayload]
    reached: int
    whole: bool
    complete: bool


class QuorumLog:
    """One replica per controller; ``controller`` is the id of the node that handles a call.

    The log does not look into a payload. An appended payload is committed in order, or lost with the leadership; a
    committed one is never undone.

    At time 0 the quorum is running: the first controller leads epoch 1, and ``first`` is committed.
    ``committed`` is called once for each committed payload, in order, with where it ends and the id of the leader
    that committed it. ``registered`` are the controllers that were ever started.
    """

    listener = LISTENER

    def __init__(
        self,
        topology: Topology,
        loop: Loop,
        history: History,
        emit: Emit,
        *,
        first: Any,
        committed: Callable[[RaftLogEnd, int, Any], None],
        brokers_without: Callable[[int], list[int]],
    ) -> None:
        self._loop = loop
        self._topology = topology
        self._reported_end = RaftLogEnd(0, 0)
        self._report = committed
        self._generations: dict[int, int] = {}
        everybody = topology.every_controller
        hosts = {
            number: ControllerHost(number, host_name(number), auto_join=topology.config.auto_join)
            for number in everybody
        }
        self.context = QuorumContext(
            loop,
            topology.config,
            cluster_id(topology.name, loop.seed),
            history,
            emit,
            self._was_committed,
            hosts,
            everybody,
            brokers_without,
        )
        self.disks: dict[int, MetadataDisk] = {number: self._formatted(number) for number in everybody}
        self.replicas: dict[int, RaftReplica] = {}
        self.registered: dict[int, None] = {}
        self._fresh = dict.fromkeys(topology.controllers)
        self._load(topology.config, first)

    def _formatted(self, number: int) -> MetadataDisk:
        """Formatted as by ``kafka-storage format --no-initial-controllers``, or with static voters."""
        key = ReplicaKey(number, metadata_directory_id(number, self._generations.get(number, 0)))
        static = self._static() if self._topology.config.kraft_version == 0 else None
        return MetadataDisk(key, static, 0)

    def _static(self) -> VoterSet:
        """``controller.quorum.voters``: node ids and addresses, without directory ids."""
        hosts = self.context.hosts
        return VoterSet(
            tuple(hosts[number].voter(ReplicaKey(number)) for number in self._topology.controllers)
        )

    def _load(self, config: Config, first: Any) -> None:
        voters = VoterSet(
            tuple(
                self.context.hosts[number].voter(self.disks[number].key)
                for number in self._topology.controllers
            )
        )
        bodies: list[RecordBody] = [
            LeaderChangeMessage(self._topology.controllers[0], self._topology.controllers)
        ]
        if config.kraft_version:
            bodies += [KRaftVersionRecord(config.kraft_version), VotersRecord(voters)]
        entries = [LogRecord(FIRST_EPOCH, body) for body in (*bodies, MetadataRecord(first))]
        for number in self._topology.controllers:
            disk = self.disks[number]
            disk.epoch, disk.leader = FIRST_EPOCH, self._topology.controllers[0]
            disk.log.append(entries)
        self._reported_end = RaftLogEnd(FIRST_EPOCH, len(entries))

    # What a controller asks of the log.

    def start(self, controller: int, endpoint: RpcEndpoint, process: ControllerProcess) -> None:
        """The controller's process started, with the replica that its disk holds."""
        replica = RaftReplica(self.context, self.disks[controller], endpoint, process)
        self.replicas[controller] = replica
        self.registered[controller] = None
        if controller in self._fresh and self._loop.now == 0:
            del self._fresh[controller]
            leader = self._topology.controllers[0]
            replica.resume(QuorumLeader(leader, self.context.hosts[leader].endpoints))
        else:
            replica.start()

    def unregister(self, controller: int) -> None:
        """Its registration is forgotten, until its process starts again; one that runs registers again at once."""
        if controller not in self.replicas:
            self.registered.pop(controller, None)

    def stop(self, controller: int) -> None:
        """The controller's process ended; may be called twice."""
        replica = self.replicas.pop(controller, None)
        if replica is not None:
            replica.close()

    def receive(self, controller: int, body: Any, answer: Answer) -> bool:
        """Handle a request that arrived at the controller; False if it is not for the log."""
        kind = type(body)
        if kind not in _ITS_OWN:
            return False
        replica = self.replicas[controller]
        if kind in REQUESTS:
            replica.receive(body, answer)
        elif replica.leadership is None:
            return False
        elif kind is DescribeQuorum:
            answer(describe_quorum(replica.state, self.context, replica.leadership))
        elif body.feature == KRAFT_VERSION:
            replica.leadership.changes.upgrade(body.level, answer, dry_run=body.dry_run)
        else:
            return False
        return True

    def leading_epoch(self, controller: int) -> int:
        """The epoch in which the controller believes to lead, -1 if it does not."""
        replica = self.replicas.get(controller)
        return -1 if replica is None or replica.leadership is None else replica.epoch

    def leader_known_to(self, controller: int) -> int | None:
        """The node that the controller believes to lead."""
        replica = self.replicas.get(controller)
        return None if replica is None or replica.state.leader is None else replica.state.leader.id

    def is_voter(self, controller: int) -> bool:
        """Whether the newest voter set that the controller knows has it."""
        replica = self.replicas.get(controller)
        return replica is not None and replica.state.is_voter

    def append(self, controller: int, payload: Any, done: Callable[[bool], None]) -> None:
        """Append at the leader. ``done`` is called once: True when it is committed, False if the leadership was
        lost before (it may still be committed later).
        """
        replica = self.replicas.get(controller)
        if replica is None or replica.leadership is None:
            done(False)
        else:
            replica.leadership.append_payload(payload, done)

    def committed(self, controller: int, after: int, limit: int) -> CommittedRead:
        """At most ``limit`` entries after offset ``after`` that the controller knows to be committed."""
        replica = self.replicas[controller]
        log, end = replica.log, replica.state.high_watermark or 0
        entries: list[CommittedPayload] = []
        if after < log.snapshot.payload_at:
            entries.append(CommittedPayload(log.snapshot.payload_at, log.snapshot.payload))
        offsets = log.payload_offsets(after, end)
        for offset in offsets[: limit - len(entries)]:
            body = log.at(offset).body
            assert isinstance(body, MetadataRecord)
            entries.append(CommittedPayload(offset, body.payload))
        # The records after the last payload are of no use to a broker.
        read_all = len(entries) < limit
        reached = end - 1 if read_all or not entries else entries[-1].offset
        return CommittedRead(tuple(entries), max(reached, after), after + 1 >= log.start, read_all)

    def observed(self, controller: int, observer: ReplicaKey, offset: int) -> None:
        """A broker fetched up to ``offset`` from the controller."""
        replica = self.replicas.get(controller)
        if replica is not None and replica.leadership is not None:
            replica.leadership.progress.fetch(observer, offset + 1, replica.log.end, self._loop.now)

    def _was_committed(self, at: RaftLogEnd, controller: int, payload: Any) -> None:
        # Static voters may lose committed records; a newer epoch then commits others at lower offsets.
        if at > self._reported_end:
            self._reported_end = at
            self._report(at, controller, payload)

    # Faults and changes of controllers.

    @property
    def leader(self) -> RaftReplica | None:
        """The replica that leads the newest epoch."""
        leaders = [replica for replica in self.replicas.values() if replica.leadership is not None]
        return max(leaders, key=lambda replica: replica.epoch, default=None)

    def break_disk(self, controller: int) -> None:
        """The metadata log dir fails with its next write."""
        self.disks[controller].broken = True

    def replace_disk(self, controller: int) -> ReplicaKey:
        """Put in a new disk, formatted without initial controllers, while the process is down. Returns its key."""
        assert controller not in self.replicas
        self._generations[controller] = self._generations.get(controller, 0) + 1
        self.disks[controller] = self._formatted(controller)
        return self.disks[controller].key

    def add(self, controller: int) -> AddRaftVoter:
        """The request that adds the controller with its current disk."""
        own = self.context.hosts[controller].voter(self.disks[controller].key)
        return AddRaftVoter(own, self.context.cluster_id, self._topology.config.request_timeout)

    def remove(self, controller: int) -> RemoveRaftVoter:
        """The request that removes the voter of that node id; the oldest one if there are several."""
        voters = VoterSet(()) if self.leader is None else self.leader.voters
        keys = [key for key in voters.keys if key.id == controller]
        key = keys[0] if keys else self.disks[controller].key
        return RemoveRaftVoter(key, self.context.cluster_id)

    def configure(self, controller: int, **changed: Any) -> None:
        """Change fields of the controller's :class:`ControllerHost`."""
        self.context.hosts[controller] = replace(self.context.hosts[controller], **changed)

    def hand_over(self, to: int) -> None:
        """The leader resigns in favour of ``to`` when ``to`` has its log; without a leader ``to`` becomes a
        candidate at once.

        Does nothing if ``to`` does not run, is not a voter, or leads already. Kafka has no such request; this
        is the quickest succession under its rules.
        """
        leader, successor = self.leader, self.replicas.get(to)
        if successor is None or leader is successor or not successor.state.is_voter:
            return
        if leader is not None and leader.leadership is not None:
            leader.leadership.hand_over(successor.state.key)
        else:
            successor.elections.stand_now()
