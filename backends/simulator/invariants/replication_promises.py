"""Checks the promises to producers and consumers against the logs on the disks."""

from __future__ import annotations

from backends.simulator.broker.replica_log import Log, clip_to_log, missing
from backends.simulator.events import (
    Acknowledged,
    HighWatermarkMoved,
    LeadershipTaken,
    LogChanged,
    MetadataCommitted,
    RecordsRead,
)
from backends.simulator.invariants.ground_truth import GroundTruth, with_span
from backends.simulator.invariants.metadata_invariants import unclean_election
from backends.simulator.invariants.promises import DataPromise, LostRecords
from backends.simulator.world import World
from recovery.controller.cluster_image import ClusterImage
from recovery.controller.rules import UncleanRecoveryStrategy
from recovery.loss import count
from recovery.model import NO_EPOCH, EpochSpan, TopicPartition

Found = list[tuple[str, str]]
"""(name, detail) of each violation."""


class ReplicationPromises:
    """Appends allowed losses to ``lost``."""

    def __init__(self, world: World, known: GroundTruth, lost: list[LostRecords]) -> None:
        self._world = world
        self._known = known
        self._lost = lost
        self._leaders: dict[TopicPartition, tuple[int, int]] = {}
        self._origins: dict[TopicPartition, dict[int, tuple[int, int]]] = {}
        self._moved: dict[TopicPartition, tuple[int, int]] = {}
        self._uncleanly: dict[TopicPartition, tuple[int, str]] = {}
        self._followed: dict[TopicPartition, int] = {}

    def elected_uncleanly(self, tp: TopicPartition) -> int:
        """The epoch of the last unclean election; NO_EPOCH without one."""
        return self._uncleanly.get(tp, (NO_EPOCH, ""))[0]

    def elected_uncleanly_since(self, tp: TopicPartition) -> bool:
        """Whether an unclean election happened after the leadership before the newest one was taken.

        The elected replica may never have learned of it, and may be elected cleanly later with the same log.
        """
        return self.elected_uncleanly(tp) > self._followed.get(tp, NO_EPOCH)

    def newest_epoch(self, tp: TopicPartition) -> int:
        """The newest epoch in which a broker took the leadership."""
        return self._leaders.get(tp, (NO_EPOCH, -1))[0]

    def _log(self, broker: int, tp: TopicPartition) -> Log | None:
        return self._world.log(broker, tp)

    def log_changed(self, event: LogChanged) -> Found:
        """In all logs an epoch starts at the same offset, after the same epoch: by induction the logs match."""
        log = self._log(event.broker, event.tp)
        if log is None or not log.spans or event.tp in self._known.rewound:
            return []
        origins = self._origins.setdefault(event.tp, {})
        # Older epochs were checked when they were written.
        newest = max(len(log.spans) - 2, 0)
        previous = log.spans[newest - 1].epoch if newest else NO_EPOCH
        for index, span in enumerate(log.spans[newest:], start=newest):
            if index or log.start == 0:
                origin = origins.setdefault(span.epoch, (span.start, previous))
                if origin != (span.start, previous):
                    detail = (
                        f"{event.tp} on {event.broker}: epoch {span.epoch} at {span.start} after {previous},"
                    )
                    return [
                        (DataPromise.LOG_MATCHING, f"{detail} elsewhere at {origin[0]} after {origin[1]}")
                    ]
            previous = span.epoch
        return []

    def high_watermark_moved(self, event: HighWatermarkMoved) -> Found:
        found: Found = []
        if len(event.isr) < event.min_isr and self._known.elr_always:
            detail = f"{event.tp} to {event.offset} with ISR {event.isr}, min ISR {event.min_isr}"
            found.append((DataPromise.HIGH_WATERMARK_NEEDS_MIN_ISR, detail))
        epoch, offset = self._moved.get(event.tp, (NO_EPOCH, 0))
        rewound = event.tp in self._known.rewound
        if epoch == event.epoch and event.offset <= offset and not rewound:
            detail = f"{event.tp}: from {offset} to {event.offset} in epoch {epoch}"
            found.append((DataPromise.HIGH_WATERMARK_RISES, detail))
        self._moved[event.tp] = (event.epoch, event.offset)
        if self._uncleanly.get(event.tp, (NO_EPOCH, ""))[0] > event.epoch:
            return found  # an unclean election that this leader has not heard of: nothing is promised
        if event.offset > self._known.high_watermark(event.tp):
            self._known.set_high_watermark(event.tp, event.offset)
        self._outrun(event)
        return found + self._members(event.tp, self._world.image)

    def _outrun(self, event: HighWatermarkMoved) -> None:
        """A leader that does not know of a raised min ISR advances without replicas that the controller keeps
        in the ELR.
        """
        partition = self._world.image.partitions.get(event.tp)
        if partition is not None and event.min_isr < self._world.image.effective_min_isr(event.tp.topic):
            for member in partition.elr:
                self._known.left_behind[event.tp, member] = None

    def acknowledged(self, event: Acknowledged) -> Found:
        if event.acks != -1 or self._known.acknowledge(event.tp, event.span):
            return []
        if event.tp in self._known.rewound:
            return []  # the epoch may have had two leaders
        return [(DataPromise.LOG_MATCHING, f"{event.tp}: {event.span} is acknowledged twice in its epoch")]

    def _note(self, event: MetadataCommitted) -> None:
        """Note unclean elections, and which brokers have registered again."""
        if not event.image.rules.elr:
            self._known.elr_always = False
        for broker, registration in event.image.brokers.items():
            before = event.before.brokers.get(broker)
            if before is None or before.epoch != registration.epoch:
                self._known.unregistered.pop(broker, None)
        for tp in event.touched:
            before_, after = event.before.partitions.get(tp), event.image.partitions.get(tp)
            if after is None:
                self._deleted(tp)
                continue
            if before_ is None:
                continue  # a new topic
            lowest = self._known.note_min_isr(event.image, tp)
            self._known.shipped_exceptions(tp, before_, after, lowest)
            if unclean_election(before_, after):
                self._uncleanly[tp] = (after.leader_epoch, event.why)
            if after.leader != before_.leader:
                continue  # an elected replica may be dead by now; one that caught up with a leader is alive
            for member in after.isr:
                if member not in before_.isr:
                    self._known.joined_at[tp, member] = self._world.loop.now

    def _deleted(self, tp: TopicPartition) -> None:
        """The topic is deleted; its promises do not hold for a new topic of the same name."""
        for by_partition in (self._leaders, self._origins, self._moved, self._uncleanly, self._followed):
            by_partition.pop(tp, None)
        self._known.deleted(tp)

    def committed(self, event: MetadataCommitted) -> Found:
        self._note(event)
        found: Found = []
        for tp in event.touched:
            uncleanly = self._uncleanly.get(tp)
            partition = event.image.partitions.get(tp)
            if partition is None or uncleanly is None or not partition.has_leader:
                pass
            elif uncleanly[0] == partition.leader_epoch:
                # A replica that was just added may be elected before it has a log.
                log = self._log(partition.leader, tp)
                end = 0 if log is None else log.end
                self._known.set_high_watermark(tp, min(self._known.high_watermark(tp), end))
            found += self._members(tp, event.image)
        return found

    def _failed(self, broker: int, log: Log | None) -> bool:
        """Whether the log is in a failed log dir: its unflushed records are lost with the power."""
        return log is not None and self._world.disks[broker].directories[log.directory].broken

    def _members(self, tp: TopicPartition, image: ClusterImage) -> Found:
        """ISR and ELR members hold the data up to the high watermark; a broker that lost data and has not
        registered since is excused.
        """
        partition = image.partitions.get(tp)
        if partition is None or tp in self._known.rewound:
            return []
        visible = self._known.high_watermark(tp)
        # After the ELR was off, the rest of it in a partition's record promises nothing.
        elr = partition.elr if self._known.elr_always else ()
        excused = partition.isr if not self._known.elr_always and len(partition.isr) == 1 else ()
        found: Found = []
        for name, members in (
            (DataPromise.ISR_HOLDS_HIGH_WATERMARK, partition.isr),
            (DataPromise.ELR_HOLDS_HIGH_WATERMARK, elr),
        ):
            # As in Kafka, a removed replica may stay in the ELR after a reassignment; its log is deleted.
            for member in (broker for broker in members if broker in partition.replicas):
                log = self._log(member, tp)
                short = (0 if log is None else log.end) < visible
                blamed = member not in self._known.unregistered and member not in excused
                blamed = blamed and not self._failed(member, log)
                if short and blamed and (tp, member) not in self._known.left_behind:
                    ends = "has no log" if log is None else f"ends at {log.end}"
                    found.append((name, f"{tp}: {member} {ends}, the high watermark is {visible}"))
        return found

    def leadership_taken(self, event: LeadershipTaken) -> Found:
        found: Found = []
        epoch, leader = self._leaders.get(event.tp, (NO_EPOCH, event.broker))
        rewound = event.tp in self._known.rewound
        if event.epoch == epoch and event.broker != leader and not rewound:
            found.append(
                (DataPromise.ONE_LEADER_AN_EPOCH, f"{event.tp}: {leader} and {event.broker} in {epoch}")
            )
        if event.epoch < epoch and not rewound:
            return found
        if event.epoch != epoch:
            self._followed[event.tp] = epoch
        self._leaders[event.tp] = (event.epoch, event.broker)
        log = self._log(event.broker, event.tp)
        if log is None:
            return found
        clean = self._uncleanly.get(event.tp, (NO_EPOCH, ""))[0] != event.epoch
        behind = (event.tp, event.broker) in self._known.left_behind
        clean = clean and not rewound
        visible = self._known.high_watermark(event.tp)
        # Whoever follows a leader that had been left behind can have no more than it has.
        lowers = behind or not self._known.elr_always
        if clean and log.end < visible and lowers:
            self._known.set_high_watermark(event.tp, log.end)
        elif clean and log.end < visible:
            detail = f"{event.tp}: leader {event.broker} ends at {log.end}, visible was {visible}"
            found.append((DataPromise.HIGH_WATERMARK_KEPT, detail))
        return found + self._lost_acknowledged(event, log)

    def _lost_acknowledged(self, event: LeadershipTaken, log: Log) -> Found:
        tp = event.tp
        promised = self._known.acknowledged(tp)
        lacking = missing(log, promised)
        if not lacking:
            return []
        self._known.forget(tp, clip_to_log(log, promised))
        excuse = self._excuse(event)
        lost = LostRecords(self._world.loop.now, str(tp), event.broker, count(lacking), excuse)
        self._lost.append(lost)
        self._world.history.add(
            f"broker-{event.broker}", f"leads {tp} without {lost.records} acknowledged records"
        )
        if excuse:
            return []
        return [(DataPromise.ACKNOWLEDGED_KEPT, f"{tp}: leader {event.broker} lacks {lacking}")]

    def _excuse(self, event: LeadershipTaken) -> str:
        """Why the promise does not cover this loss; empty if it does."""
        tp = event.tp
        image = self._world.image
        if not self._known.elr_always:
            return "the ELR is off"
        if image.strategies.of(tp.topic) is UncleanRecoveryStrategy.AGGRESSIVE:
            return "the strategy is Aggressive"
        if tp in self._known.rewound:
            return "metadata was lost with a static voter's disk"
        _, why = self._uncleanly.get(tp, (NO_EPOCH, ""))
        if self.elected_uncleanly_since(tp) and why in ("unclean election", "designated election"):
            return "an operator elected uncleanly"
        suspects = self._known.suspects(tp, image.partitions[tp].replicas)
        if suspects >= self._known.note_min_isr(image, tp):
            return f"{suspects} replicas shut down uncleanly"
        return self._shipped_excuse(tp, event.broker)

    def _shipped_excuse(self, tp: TopicPartition, leader: int) -> str:
        if tp in self._known.emptied:
            return "a change of min ISR had emptied the ELR, as shipped"
        if (tp, leader) in self._known.left_behind:
            return "a replica that had been left behind was in the ELR, as shipped"
        return ""


class ConsumerPromises:
    """Remembers every record that was read, by epoch and offset."""

    def __init__(self, world: World, known: GroundTruth, replication: ReplicationPromises) -> None:
        self._world = world
        self._known = known
        self._replication = replication
        self._read: dict[TopicPartition, tuple[EpochSpan, ...]] = {}

    def committed(self, event: MetadataCommitted) -> Found:
        """A deleted topic takes along what was read of it."""
        for tp in event.touched:
            if tp not in event.image.partitions:
                self._read.pop(tp, None)
        return []

    def read(self, event: RecordsRead) -> Found:
        """A leader that has not heard of an unclean election may show lost records."""
        if self._replication.elected_uncleanly(event.tp) <= event.epoch:
            read = self._read.get(event.tp, ())
            for span in event.spans:
                read = with_span(read, span)
            self._read[event.tp] = read
        return []

    def leadership_taken(self, event: LeadershipTaken) -> Found:
        """A new leader has all that was read, or was elected uncleanly."""
        tp = event.tp
        log = self._world.log(event.broker, tp)
        promised = self._read.get(tp, ())
        if log is None or not promised or event.epoch < self._replication.newest_epoch(tp):
            return []
        lacking = missing(log, promised)
        if not lacking:
            return []
        self._read[tp] = clip_to_log(log, promised)
        unclean = self._replication.elected_uncleanly_since(tp)
        if unclean or not self._known.elr_always or (tp, event.broker) in self._known.left_behind:
            return []
        if tp in self._known.rewound:
            return []  # committed metadata was lost
        return [
            (DataPromise.READ_KEPT, f"{tp}: leader {event.broker} lacks {lacking}, which consumers have read")
        ]
