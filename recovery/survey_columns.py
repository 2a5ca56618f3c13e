"""The surveys of many partitions: what is counted over all of them, without an object for each replica."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar, overload

from recovery.model import NO_LEADER, PartitionState, ReplicaLog, Survey, Unknown, Why

T = TypeVar("T")


class SurveyColumns(Sequence[Survey]):
    """Surveys whose partition states and min ISR are known without creating them.

    A cluster of 200,000 partitions has 600,000 replica logs, and most callers read a few of them.
    """

    @property
    @abstractmethod
    def states(self) -> Sequence[PartitionState]:
        """Of each survey its partition's state."""

    @property
    @abstractmethod
    def min_isr(self) -> Sequence[int | Unknown]:
        """Of each survey its effective min ISR."""

    @property
    @abstractmethod
    def reassigning(self) -> Iterable[bool | Unknown]:
        """Of each survey whether a reassignment is in progress."""

    @abstractmethod
    def incomplete(self) -> Collection[int]:
        """The indices of the surveys with a log, or an epoch of a last record, that is not known."""

    def rows(self, indices: Collection[int]) -> Iterator[Survey]:
        """The surveys at ``indices``, in that order."""
        return map(self.__getitem__, indices)


class SurveyRows(SurveyColumns):
    """Surveys that are there already."""

    def __init__(self, surveys: Iterable[Survey]) -> None:
        self._surveys = tuple(surveys)

    @property
    def states(self) -> Sequence[PartitionState]:
        return [survey.state for survey in self._surveys]

    @property
    def min_isr(self) -> Sequence[int | Unknown]:
        return [survey.min_isr for survey in self._surveys]

    @property
    def reassigning(self) -> Iterable[bool | Unknown]:
        return [survey.reassigning for survey in self._surveys]

    def incomplete(self) -> Collection[int]:
        return range(len(self._surveys))

    def __len__(self) -> int:
        return len(self._surveys)

    @overload
    def __getitem__(self, at: int) -> Survey: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[Survey, ...]: ...

    def __getitem__(self, at: int | slice) -> Survey | tuple[Survey, ...]:
        return self._surveys[at]


class MergedSurveys(SurveyColumns):
    """Surveys of the partitions in ``states``: of those without a leader, and of the others, each in that order."""

    def __init__(
        self, states: Sequence[PartitionState], offline: SurveyColumns, others: SurveyColumns
    ) -> None:
        self._states = states
        self._offline = offline
        self._others = others
        self._offline_at = [index for index, state in enumerate(states) if state.leader == NO_LEADER]

    @property
    def states(self) -> Sequence[PartitionState]:
        return self._states

    @property
    def min_isr(self) -> Sequence[int | Unknown]:
        return list(self._merged(self._offline.min_isr, self._others.min_isr))

    @property
    def reassigning(self) -> Iterable[bool | Unknown]:
        return self._merged(self._offline.reassigning, self._others.reassigning)

    def incomplete(self) -> Collection[int]:
        unknown = {id(part): set(part.incomplete()) for part in (self._offline, self._others)}
        places = map(self._place, range(len(self))) if any(unknown.values()) else ()
        return [index for index, (part, at) in enumerate(places) if at in unknown[id(part)]]

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[Survey]:
        return self._merged(self._offline, self._others)

    @overload
    def __getitem__(self, at: int) -> Survey: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[Survey, ...]: ...

    def __getitem__(self, at: int | slice) -> Survey | tuple[Survey, ...]:
        if isinstance(at, slice):
            return tuple(self)[at]
        part, index = self._place(range(len(self))[at])
        return part[index]

    def _place(self, index: int) -> tuple[SurveyColumns, int]:
        before = bisect_left(self._offline_at, index)
        if before < len(self._offline_at) and self._offline_at[before] == index:
            return self._offline, before
        return self._others, index - before

    def _merged(self, offline: Iterable[T], others: Iterable[T]) -> Iterator[T]:
        leaderless, led = iter(offline), iter(others)
        return (next(leaderless if state.leader == NO_LEADER else led) for state in self._states)


def columns_of(surveys: Sequence[Survey]) -> SurveyColumns:
    """The same surveys, as columns where they are not."""
    return surveys if isinstance(surveys, SurveyColumns) else SurveyRows(surveys)


class SurveyTotals(NamedTuple):
    """Counts of partitions, and of replicas with how many answered. A min ISR that is not known counts as 1.

    ``led_under_min_isr`` are those under min ISR that have a leader; ``led_at_min_isr`` have one too, lack a
    replica, and are under min ISR when they lose another. ``refused`` are replicas that this caller may not read:
    they did not answer, and their brokers did.
    """

    partitions: int
    offline: int
    under_min_isr: int
    led_under_min_isr: int
    under_replicated: int
    elr_in_use: int
    replicas: int
    answered: int
    refused: int = 0
    led_at_min_isr: int = 0


def totals(surveys: Sequence[Survey]) -> SurveyTotals:
    """Counted over all of them."""
    columns = columns_of(surveys)
    offline = under = led_under = led_at = short = eligible = replicas = 0
    for state, min_isr in zip(columns.states, columns.min_isr, strict=True):
        in_sync, assigned = len(state.isr), len(state.replicas)
        replicas += assigned
        short += in_sync < assigned
        led = state.leader != NO_LEADER
        offline += not led
        if missing_in_sync(in_sync, min_isr):
            under += 1
            led_under += led
        led_at += led and in_sync < assigned and in_sync == min_isr
        eligible += uses_elr(state)
    unread = Counter(
        replica.log.why
        for survey in columns.rows(columns.incomplete())
        for replica in survey.replicas
        if isinstance(replica.log, Unknown)
    )
    answered, refused = replicas - unread.total(), unread[Why.NOT_ALLOWED]
    return SurveyTotals(
        len(columns), offline, under, led_under, short, eligible, replicas, answered, refused, led_at
    )


def missing_in_sync(in_sync: int, min_isr: int | Unknown) -> int:
    """How many replicas an ISR of that size lacks to reach min ISR, or to reach 1 if min ISR is unknown."""
    return max(0, (1 if isinstance(min_isr, Unknown) else min_isr) - in_sync)


def in_trouble(state: PartitionState) -> bool:
    """Offline, under min ISR, not fully replicated, or in need of the ELR."""
    return state.leader == NO_LEADER or len(state.isr) < len(state.replicas) or uses_elr(state)


def uses_elr(state: PartitionState) -> bool:
    """Whether the partition's ELR, or LastKnownELR, has a member."""
    return bool(state.elr or state.last_known_elr)


def troubled(surveys: Sequence[Survey]) -> tuple[Survey, ...]:
    """Those :func:`in_trouble`, in their order."""
    columns = columns_of(surveys)
    return tuple(columns.rows([index for index, state in enumerate(columns.states) if in_trouble(state)]))


def leaderless(surveys: Sequence[Survey]) -> tuple[Survey, ...]:
    """Those of partitions without a leader, in their order."""
    states = enumerate(columns_of(surveys).states)
    return tuple(columns_of(surveys).rows([index for index, state in states if state.leader == NO_LEADER]))


class UnknownValues(NamedTuple):
    """How many values are unknown, by the reason."""

    min_isr: Mapping[Unknown, int]
    reassigning: Mapping[Unknown, int]
    logs: Mapping[Unknown, int]
    epochs: Mapping[Unknown, int]


def unknown_values(surveys: Sequence[Survey], up: Collection[int]) -> UnknownValues:
    """Counted over all surveys; a log only where its broker is ``up`` and its replica could be elected."""
    columns = columns_of(surveys)
    logs: Counter[Unknown] = Counter()
    epochs: Counter[Unknown] = Counter()
    for survey in columns.rows(columns.incomplete()):
        for replica in survey.replicas:
            log = replica.log
            if isinstance(log, ReplicaLog):
                if isinstance(log.lineage, Unknown):
                    epochs[log.lineage] += 1
            elif replica.broker in up and replica.electable:
                logs[log] += 1
    return UnknownValues(_unknown(columns.min_isr), _unknown(columns.reassigning), logs, epochs)


def _unknown(values: Iterable[int | Unknown]) -> Counter[Unknown]:
    return Counter(value for value in values if isinstance(value, Unknown))
