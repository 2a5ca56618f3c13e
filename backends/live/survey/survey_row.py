"""The state of one partition during a survey."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from backends.live.calls.describe_log_dirs import NO_SIZES, ReplicaSizes
from backends.live.survey.log_queries import ReplicaLogEnd
from backends.live.survey.topic_batch import NOT_SETTLED
from recovery import epoch_probe as probing
from recovery.epoch_probe import EpochProbe
from recovery.lineages import KnownLog, reconciled
from recovery.model import (
    Broker,
    Lineage,
    PartitionState,
    Replica,
    ReplicaLog,
    Unknown,
)
from recovery.standing import standing


class SurveyRow:
    """``open``: brokers whose log end or last epoch is not settled; ``asked``: those with a question under way.

    ``unknown`` says why a broker's log (or its lineage) is not known; what a broker said before it fell silent
    is kept. ``index`` is that of the partition in the survey, which waits for ``waiting`` of its replicas here.
    ``leads`` tells of brokers that know less than the survey whether they lead the partition.
    """

    __slots__ = (
        "asked",
        "changes",
        "ends",
        "index",
        "leads",
        "open",
        "probes",
        "state",
        "tp",
        "unknown",
        "waiting",
    )

    def __init__(self, state: PartitionState, index: int) -> None:
        self.state = state
        self.tp = state.tp
        self.index = index
        self.waiting = 0
        self.open: set[int] = set()
        self.asked: set[int] = set()
        self.ends: dict[int, ReplicaLogEnd] = {}
        self.probes: dict[int, EpochProbe] = {}
        self.unknown: dict[int, Unknown] = {}
        self.leads: dict[int, bool] = {}
        self.changes = 0

    @property
    def done(self) -> bool:
        return not self.open and not self.asked

    def settled(self) -> dict[int, EpochProbe]:
        """The logs whose last record's epoch is known."""
        return {broker: probe for broker, probe in self.probes.items() if probe.settled}

    def replicas(self, brokers: Mapping[int, Broker], sizes: Mapping[int, ReplicaSizes]) -> Iterator[Replica]:
        """Every replica that was asked in this row, in assignment order."""
        lineages = self._lineages()
        for broker in self.state.replicas:
            if broker in self.ends or broker in self.unknown or broker in self.open:
                log = self._log(broker, lineages.get(broker), sizes.get(broker, NO_SIZES))
                yield Replica(broker, standing(self.state, broker, brokers), log)

    def _lineages(self) -> Mapping[int, Lineage]:
        """Of the logs whose last record's epoch is known; where they differ, each with what the others tell."""
        settled = self.settled()
        reported = {broker: probing.lineage(probe) for broker, probe in settled.items()}
        first = next(iter(settled.values()), None)
        if all(probe == first for probe in settled.values()):
            return reported  # equal logs, as most are
        return reconciled(
            {
                broker: KnownLog(settled[broker].log_start_offset, lineage)
                for broker, lineage in reported.items()
            }
        )

    def _log(self, broker: int, lineage: Lineage | None, sizes: ReplicaSizes) -> ReplicaLog | Unknown:
        end = self.ends.get(broker)
        if end is None:
            return self.unknown.get(broker, NOT_SETTLED)
        log_dir, size = sizes.one(self.tp)
        probe = self.probes.get(broker)
        if probe is None or lineage is None:
            unknown = self.unknown.get(broker, NOT_SETTLED)
            leads = self.leads.get(broker)
            return ReplicaLog(
                end.leader_epoch, end.offset, lineage=unknown, log_dir=log_dir, size=size, leads=leads
            )
        return ReplicaLog(
            end.leader_epoch,
            end.offset,
            probe.log_start_offset,
            probe.high_watermark,
            lineage,
            log_dir,
            size,
            self.leads.get(broker),
        )
