"""One broker as pane 8 shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from recovery.broker_load import BrokerLoad


class BrokerHealth(StrEnum):
    """How a broker fares, the worst first."""

    FENCED = "FENCED"
    SILENT = "no answer"
    DISK_FAILED = "disk FAILED"
    OUT_OF_SYNC = "out of sync"
    UP = "up"


class BrokerRow(NamedTuple):
    """``fenced`` None: the cluster does not tell. ``fenced_s``: seconds since it was fenced, at least so long where
    not ``exact``. ``answered_s``: seconds since it answered this console last, None: it never did. ``problem``: why
    it did not answer, "" where it did or nobody asked. ``asked``: it was asked at all. ``failed_dirs``: so many log
    dirs have failed, None: not known.
    """

    id: int
    address: str
    rack: str | None
    fenced: bool | None
    load: BrokerLoad
    fenced_s: float | None = None
    exact: bool = False
    answered_s: float | None = None
    problem: str = ""
    asked: bool = False
    failed_dirs: int | None = None

    @property
    def waiting(self) -> int:
        """So many offline partitions may get a leader when it returns; of a broker that is there, none."""
        return self.load.waiting if self.fenced or self.problem else 0

    @property
    def state(self) -> BrokerHealth:
        if self.fenced:
            return BrokerHealth.FENCED
        if self.problem:
            return BrokerHealth.SILENT
        if self.failed_dirs:
            return BrokerHealth.DISK_FAILED
        return BrokerHealth.UP if self.load.in_isr == self.load.replicas else BrokerHealth.OUT_OF_SYNC


@dataclass(frozen=True, slots=True)
class BrokersView:
    """The brokers that are registered, or have replicas. ``known`` False: the cluster has not been read yet.
    ``doubt`` says why the rows may not be those of now, "" where they are.
    """

    rows: Sequence[BrokerRow]
    known: bool = True
    doubt: str = ""

    @property
    def worst_first(self) -> tuple[BrokerRow, ...]:
        rank = {state: number for number, state in enumerate(BrokerHealth)}
        return tuple(sorted(self.rows, key=lambda row: (rank[row.state], row.id)))
