"""The basic values: partitions, replica logs, and values that could not be read.

Hot values are named tuples: a cluster of 200,000 partitions holds 600,000 replica logs, and a named tuple
is built several times faster than a frozen dataclass and takes less memory.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from recovery.compacted_logs import CompactedLogs

NO_LEADER = -1
NO_EPOCH = -1
UNKNOWN_OFFSET = -1


class TopicPartition(NamedTuple):
    """A partition's name, as Kafka's tools print it: ``topic-3``."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class PartitionState(NamedTuple):
    """One partition in the controller's metadata, as DescribeTopicPartitions v0 or Metadata shows it.

    ``topic_id`` is Kafka's base64 form. ``elr`` and ``last_known_elr`` are None where the cluster does not
    offer them (KIP-966 is off, or the call is missing): None is "not offered", an empty tuple is "nobody".
    ``offline_replicas`` are the replicas that the answering broker counts as offline: on a fenced or
    unregistered broker, on one without the listener that was asked, or in a failed log dir. A broker in
    controlled shutdown cannot be elected and is not among them; only the metadata log shows it
    (BrokerRegistrationChangeRecord).
    """

    topic: str
    partition: int
    topic_id: str
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] | None
    last_known_elr: tuple[int, ...] | None
    offline_replicas: tuple[int, ...]

    @property
    def tp(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def offline(self) -> bool:
        return self.leader == NO_LEADER


class EpochSpan(NamedTuple):
    """Offsets ``start`` (inclusive) to ``end`` (exclusive) of a log, written under leader epoch ``epoch``."""

    epoch: int
    start: int
    end: int


class Lineage(NamedTuple):
    """The epoch spans of a log, ascending and without gaps, as far down as ``floor``.

    ``last_epoch`` is the epoch of the last record; NO_EPOCH for a log that never held one. For a log whose
    records have all been deleted (``spans`` empty, log end above 0) it is the newest epoch that the broker
    still remembers, NO_EPOCH once a restart has made it forget. ``floor`` is the offset below which the
    lineage is not known: the log start when it was asked to the bottom, higher when the question was settled
    earlier.
    """

    last_epoch: int
    spans: tuple[EpochSpan, ...]
    floor: int


class Why(StrEnum):
    """Why something is not known: a value of its own, never an empty list or a zero."""

    NOT_ANSWERED = "not answered"
    NOT_ALLOWED = "not allowed"
    NOT_OFFERED = "not offered by this cluster"
    FAILED = "failed"
    NO_LEADER = "the partition has no leader"
    NOT_ASKED = "not asked"


class Unknown(NamedTuple):
    """A value that could not be read: ``why``, and ``detail`` in one line for a person."""

    why: Why
    detail: str

    def __str__(self) -> str:
        return f"{self.why}: {self.detail}" if self.detail else str(self.why)


class ReplicaLog(NamedTuple):
    """One replica's log, as its own broker described it.

    ``leader_epoch`` is the *partition's* current leader epoch as that broker knows it (the recovery tool's
    PartitionLeaderEpoch), not the last record's: that is ``lineage.last_epoch``. ``high_watermark`` is the
    last one that the replica knew: often stale after a kill, and a lower bound for what was committed.
    UNKNOWN_OFFSET if an offset could not be read. ``size`` in bytes, -1 unknown.

    ``leads``: whether the broker leads the partition by its own state (Kafka's ``Partition.isLeader``, seen by
    ListOffsets with replica_id -1); None: not asked, or not known. It is asked where ``leader_epoch`` is older than
    the partition's and stays so: such a broker hears no controller, and may not know that it was replaced.
    """

    leader_epoch: int
    log_end_offset: int
    log_start_offset: int = UNKNOWN_OFFSET
    high_watermark: int = UNKNOWN_OFFSET
    lineage: Lineage | Unknown = Unknown(Why.NOT_ANSWERED, "not asked")
    log_dir: str = ""
    size: int = -1
    leads: bool | None = None


class Standing(StrEnum):
    """Whether the controller would accept this replica as leader, as far as can be seen from outside.

    ELECTABLE includes brokers in controlled shutdown, which the controller does not elect: no request shows them
    (:attr:`PartitionState.offline_replicas`). NOT_ASKED: nothing runs, the cluster is read from disks.
    """

    ELECTABLE = "electable"
    FENCED = "fenced"
    OFFLINE_REPLICA = "replica offline"
    UNREGISTERED = "broker not registered"
    NOT_ASKED = "not asked"


class Replica(NamedTuple):
    """One replica: the controller's view of it (``standing``), and its broker's own answer (``log``).

    ``disk_read_ms``: the broker did not answer, and ``log`` was read from its disk at that time (ms since 1970);
    None: it is the broker's answer. ``disk_stopped_cleanly``: the disk has the file of a clean stop
    (.kafka_cleanshutdown), which a broker writes when all its logs are on the disk. ``disk_to_repair``: the broker
    does not serve all of its disk, or ends, if it is started with it as it was read; ``disk_to_copy``: its start
    deletes something there. Both are of the broker, also where this log was not on its disk or does not count.
    """

    broker: int
    standing: Standing
    log: ReplicaLog | Unknown
    disk_read_ms: int | None = None
    disk_stopped_cleanly: bool = False
    disk_to_repair: bool = False
    disk_to_copy: bool = False

    @property
    def electable(self) -> bool:
        return self.standing is Standing.ELECTABLE


class MinIsrLevels(NamedTuple):
    """min.insync.replicas of one topic as ``broker`` itself answered: what the topic, this broker and the cluster
    set dynamically (None: nothing), and what is in the broker's own file, or else Kafka's default.
    """

    broker: int
    topic: int | None
    own: int | None
    cluster: int | None
    file: int

    @property
    def in_force(self) -> int:
        """The value by which this broker acknowledges while it leads."""
        found = (value for value in (self.topic, self.own, self.cluster) if value is not None)
        return next(found, self.file)


class FileAnswer(NamedTuple):
    """``broker`` answered at ``time_ms`` that its file, or else Kafka's default, has this min.insync.replicas."""

    broker: int
    value: int
    time_ms: int


class Survey(NamedTuple):
    """One partition with all its replicas, in assignment order.

    ``min_isr`` is the effective min.insync.replicas, min(configured, replication factor) (KIP-966), or
    Unknown; the lowest where brokers answered differently. ``min_isr_on`` has the configured values of each
    broker that answered, in the order of their ids; it is asked for partitions without a leader only.
    ``reassigning`` tells that a reassignment is in progress; Unknown where that could not be asked.
    ``compacted`` is None for a topic that is not compacted, whose logs hold all their offsets.
    ``led_to_end``: nothing runs, and the partition had a leader when the metadata log ended that was read.
    """

    state: PartitionState
    replicas: tuple[Replica, ...]
    min_isr: int | Unknown
    reassigning: bool | Unknown = False
    compacted: CompactedLogs | None = None
    min_isr_on: tuple[MinIsrLevels, ...] = ()
    led_to_end: bool = False

    @property
    def min_isr_by_broker(self) -> dict[int, int]:
        """The effective value of each broker that answered for itself."""
        return {one.broker: min(one.in_force, len(self.state.replicas)) for one in self.min_isr_on}

    @property
    def tp(self) -> TopicPartition:
        return self.state.tp

    def replica(self, broker: int) -> Replica | None:
        """The replica on ``broker``, or None where it has none."""
        for replica in self.replicas:  # called for each log of thousands of rows; next() takes twice as long
            if replica.broker == broker:
                return replica
        return None

    def log(self, broker: int) -> ReplicaLog | None:
        """The log that ``broker`` described, or None where it has none or did not answer."""
        replica = self.replica(broker)
        return replica.log if replica is not None and isinstance(replica.log, ReplicaLog) else None


class Broker(NamedTuple):
    """A broker as the cluster lists it. ``fenced`` is None where the cluster cannot tell (before 4.0)."""

    id: int
    host: str
    port: int
    rack: str | None
    fenced: bool | None
