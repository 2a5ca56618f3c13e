"""Log dirs as this pane shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from recovery.disks.values import DiskOutcome
from recovery.model import TopicPartition, Unknown


class LogDirRow(NamedTuple):
    """One log dir. ``error`` None: healthy. Bytes are -1 where they are not known; ``used`` is what the replicas
    take. ``largest`` are the largest partitions with their bytes; ``moving`` counts replicas on their way.
    ``unknown`` stands for all dirs of a broker that did not list them (then ``path`` is ""), and says why.
    """

    broker: int
    path: str
    error: str | None
    total: int
    usable: int
    used: int
    replicas: int
    largest: tuple[tuple[TopicPartition, int], ...] = ()
    moving: int = 0
    unknown: Unknown | None = None

    @property
    def key(self) -> tuple[int, str]:
        return self.broker, self.path


class PartitionOutcome(NamedTuple):
    """A partition that has a replica on the dir: what became of it, or would. ``leader_after`` -1: nobody."""

    tp: TopicPartition
    what: DiskOutcome
    leader_before: int
    leader_after: int
    unclean: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class LogDirDetail:
    """What was on a failed dir, or what would happen if a healthy one failed; worst first.

    ``note`` says what the prediction rests on, or why there is none (then ``outcomes`` is empty).
    """

    broker: int
    path: str
    failed: bool
    outcomes: tuple[PartitionOutcome, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class LogDirsView:
    """Every log dir; ``refused`` are the brokers whose dirs are not known, and why. ``known`` False: nobody was
    asked yet.
    """

    dirs: Sequence[LogDirRow]
    refused: Mapping[int, Unknown] = field(default_factory=dict)
    detail: LogDirDetail | None = None
    known: bool = True

    @property
    def rows(self) -> tuple[LogDirRow, ...]:
        """Failed dirs first, then brokers whose dirs are unknown: nobody must search for one among a thousand."""
        unknown = [
            LogDirRow(broker, "", None, -1, -1, -1, -1, unknown=why) for broker, why in self.refused.items()
        ]
        failed = [row for row in self.dirs if row.error is not None]
        return (*failed, *unknown, *(row for row in self.dirs if row.error is None))
