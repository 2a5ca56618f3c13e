"""One partition's ISR, ELR and LastKnownELR, and what its controller will do, in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from recovery.advice import Advice
from recovery.controller.prediction import (
    LeaderWait,
    PartitionView,
    if_back,
    under_strategies,
    view_of,
    waiting_for,
)
from recovery.controller.rules import ControllerRules, UncleanRecoveryStrategy
from recovery.model import Survey, Unknown
from recovery.strategy import clean_electors
from recovery.wording.advice_text import not_to_start_first


class DiskWord(StrEnum):
    """What is known about the disk of a broker that is down."""

    HOLDS_LOG = "answers, and its log is there"
    EMPTY = "answers, and its log is EMPTY"
    FAILED_DIR = "its log dir has FAILED"
    NOT_KNOWN = "does not answer: whether its disk is still there is not known"

    @property
    def short(self) -> str:
        """In two or three words."""
        return {
            DiskWord.HOLDS_LOG: "its log is there",
            DiskWord.EMPTY: "its log is EMPTY",
            DiskWord.FAILED_DIR: "log dir FAILED",
            DiskWord.NOT_KNOWN: "disk not known",
        }[self]


class EligibleRow(NamedTuple):
    """One partition; ``rules`` are its controller's, ``disks`` what is known of each broker's disk. ``advice`` is
    what to do first, None where it was not judged.
    """

    survey: Survey
    rules: ControllerRules
    disks: Mapping[int, DiskWord]
    advice: Advice | None = None

    @property
    def not_first(self) -> tuple[int, ...]:
        """The brokers whose return before the first step may lose acknowledged records."""
        return () if self.advice is None else tuple(one.broker for one in not_to_start_first(self.advice))

    @property
    def view(self) -> PartitionView | Unknown:
        return view_of(self.survey, self.rules)

    @property
    def waiting(self) -> LeaderWait | Unknown:
        """What the controller waits for."""
        view = self.view
        return view if isinstance(view, Unknown) else waiting_for(view)

    @property
    def clean(self) -> tuple[int, ...]:
        """The brokers whose return ends it without an unclean election, those left out whose disks failed."""
        return tuple(broker for broker in self._electors if self.disk(broker) is not DiskWord.FAILED_DIR)

    @property
    def failed(self) -> tuple[int, ...]:
        """The brokers of ISR and ELR whose disks failed: they return without the log that they had."""
        return tuple(broker for broker in self._electors if self.disk(broker) is DiskWord.FAILED_DIR)

    @property
    def _electors(self) -> tuple[int, ...]:
        return clean_electors(self.survey) if self.survey.state.offline else ()

    def disk(self, broker: int) -> DiskWord:
        return self.disks.get(broker, DiskWord.NOT_KNOWN)

    def with_empty_disk(self, broker: int) -> bool | Unknown:
        """Whether the controller would elect ``broker`` if it came back with an empty disk.

        An empty disk tells of no clean shutdown (KIP-966, "Unclean shutdown"): with the ELR on, the broker leaves
        ISR and ELR first. Without the ELR nothing is noticed.
        """
        view = self.view
        if isinstance(view, Unknown):
            return view
        return if_back(view, [broker], unclean=frozenset([broker])).partition.leader == broker

    def strategies(self) -> Mapping[UncleanRecoveryStrategy, LeaderWait]:
        """What the controller would wait for under None, Balanced and Aggressive; {} where that is not known."""
        view = self.view
        return {} if isinstance(view, Unknown) else under_strategies(view)
