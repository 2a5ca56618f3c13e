"""One partition while it is surveyed, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping

from backends.live.logquery import LogEnd
from recovery import probe as probing
from recovery.model import (
    Broker,
    PartitionState,
    Replica,
    ReplicaLog,
    TopicPartition,
    Unknown,
    Why,
)
from recovery.probe import Probe
from recovery.standing import standing

Dirs = Mapping[int, Mapping[TopicPartition, tuple[str, int]]]
"""Per broker and partition: the log dir and the size in bytes."""


NOT_ASKED = Unknown(Why.NOT_ANSWERED, "not asked")
NOT_SETTLED = Unknown(Why.NOT_ANSWERED, "not settled in time")
_NOWHERE: Mapping[TopicPartition, tuple[str, int]] = {}
_NO_DIR = ("", -1)


class Row:
    """``open``: brokers whose log end or last epoch is not settled; ``asked``: those with a question under way.

    ``unknown`` says why a broker's log (or its lineage) is not known; what a broker said before it fell silent
    is kept.
    """

    __slots__ = ("asked", "changes", "closed", "ends", "open", "probes", "state", "tp", "unknown")

    def __init__(self, state: PartitionState, leader_only: bool = False) -> None:
        self.state = state
        self.tp = state.tp
        self.open = set(state.replicas)
        self.asked: set[int] = set()
        self.ends: dict[int, LogEnd] = {}
        self.probes: dict[int, Probe] = {}
        self.unknown: dict[int, Unknown] = {}
        if leader_only and not state.offline:
            self.open = {state.leader}
            self.unknown = dict.fromkeys(state.replicas, NOT_ASKED)
        self.changes = 0
        self.closed = False

    @property
    def done(self) -> bool:
        return not self.open and not self.asked

    def settled(self) -> dict[int, Probe]:
        """The logs whose last record's epoch is known."""
        return {broker: probe for broker, probe in self.probes.items() if probe.settled}

    def replicas(self, brokers: Mapping[int, Broker], dirs: Dirs) -> tuple[Replica, ...]:
        """What is known of every replica, in assignment order."""
        return tuple(
            Replica(broker, standing(self.state, broker, brokers), self._log(broker, dirs))
            for broker in self.state.replicas
        )

    def _log(self, broker: int, dirs: Dirs) -> ReplicaLog | Unknown:
        end = self.ends.get(broker)
        if end is None:
            return self.unknown.get(broker, NOT_SETTLED)
        log_dir, size = dirs.get(broker, _NOWHERE).get(self.tp, _NO_DIR)
        probe = self.probes.get(broker)
        if probe is None or not probe.settled:
            unknown = self.unknown.get(broker, NOT_SETTLED)
            return ReplicaLog(end.leader_epoch, end.offset, lineage=unknown, log_dir=log_dir, size=size)
        return ReplicaLog(
            end.leader_epoch,
            end.offset,
            probe.log_start_offset,
            probe.high_watermark,
            probing.lineage(probe),
            log_dir,
            size,
        )
