"""The result of a survey, partition by partition."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, repeat
from operator import itemgetter
from types import MappingProxyType
from typing import Any, overload

from backends.live.calls.describe_log_dirs import NO_SIZES, ReplicaSizes
from backends.live.survey.min_isr_answers import MinIsrOn
from backends.live.survey.survey_run import LiveSurvey
from backends.live.survey.topic_batch import NOT_ASKED, TopicBatch
from recovery.compacted_logs import NOT_READ, CompactedLogs, compacted_logs
from recovery.controller.rules import effective_min_isr, min_isr_from_config
from recovery.model import Broker, MinIsrLevels, PartitionState, Replica, Survey, TopicPartition, Unknown
from recovery.standing import standing
from recovery.survey_columns import SurveyColumns

_made = tuple.__new__
_name = itemgetter(slice(2))  # topic and partition

Replicas = Mapping[tuple[str, int], tuple[Replica, ...]]
Configs = Mapping[str, Mapping[str, str] | Unknown]

_FEW = 4
"""One row in so many: fewer are created one by one, more of them all at once, which costs less for each."""


class SurveyedReplicas:
    """The replicas of a survey that has ended, also by its deadline. ``sizes``: the log dirs of each broker."""

    def __init__(
        self, run: LiveSurvey, brokers: Mapping[int, Broker], sizes: Mapping[int, ReplicaSizes]
    ) -> None:
        self._run = run
        self._brokers = brokers
        self._sizes = sizes

    def all(self) -> Replicas:
        """Of every partition, in assignment order."""
        run, brokers = self._run, self._brokers
        firsts = list(accumulate((len(state.replicas) for state in run.states), initial=0))
        found: list[Replica | None] = [None] * firsts[-1]
        assigned = [state.replicas for state in run.states]
        for broker, several in run.batches.items():
            sizes = self._sizes.get(broker, NO_SIZES)
            for batch in several:
                for index, replica in batch.replicas(broker, brokers, sizes):
                    found[firsts[index] + assigned[index].index(broker)] = replica
        for row in run.rows.values():
            for replica in row.replicas(brokers, self._sizes):
                found[firsts[row.index] + row.state.replicas.index(replica.broker)] = replica
        rows: Iterable[Any]
        sizes_of = set(map(len, assigned))
        if len(sizes_of) == 1 and not run.leaders_only:
            rows = zip(*repeat(iter(found), sizes_of.pop()), strict=True)
        else:
            parts = (found[first : first + len(row)] for first, row in zip(firsts, assigned, strict=False))
            rows = map(self._asked_or_not, run.states, parts)
        return dict(zip(map(_name, run.states), rows, strict=True))

    def one(self, state: PartitionState) -> tuple[Replica, ...]:
        """Of one of the partitions."""
        row = self._run.rows.get(state.tp)
        odd = {} if row is None else {one.broker: one for one in row.replicas(self._brokers, self._sizes)}
        return self._asked_or_not(
            state, [odd.get(broker) or self._of_batch(state, broker) for broker in state.replicas]
        )

    def incomplete(self) -> set[TopicPartition]:
        """The partitions with a replica whose log, or last epoch, may be unknown."""
        run = self._run
        found = set(run.rows)
        for several in run.batches.values():
            for batch in several:
                found.update(run.states[index].tp for index in batch.incomplete())
        if run.leaders_only:
            found.update(state.tp for state in run.states)
        return found

    def _asked_or_not(self, state: PartitionState, several: Sequence[Replica | None]) -> tuple[Replica, ...]:
        return tuple(
            replica or Replica(broker, standing(state, broker, self._brokers), NOT_ASKED)
            for broker, replica in zip(state.replicas, several, strict=True)
        )

    def _of_batch(self, state: PartitionState, broker: int) -> Replica | None:
        sizes = self._sizes.get(broker, NO_SIZES)
        for batch in self._batches.get((broker, state.topic), ()):
            replica = batch.replica(state.partition, broker, self._brokers, sizes)
            if replica is not None:
                return replica
        return None

    @cached_property
    def _batches(self) -> Mapping[tuple[int, str], Sequence[TopicBatch]]:
        found: dict[tuple[int, str], list[TopicBatch]] = {}
        for broker, several in self._run.batches.items():
            for batch in several:
                found.setdefault((broker, batch.topic), []).append(batch)
        return found


class LiveSurveys(SurveyColumns):
    """One for each of ``states``, in their order; a row is created when it is read. Equal to any sequence of the
    same rows.
    """

    def __init__(
        self,
        states: Sequence[PartitionState],
        replicas: SurveyedReplicas,
        configs: Configs | Unknown,
        reassigning: frozenset[TopicPartition] | Unknown,
        min_isr_on: MinIsrOn = MappingProxyType({}),
    ) -> None:
        self._states = states
        self._replicas = replicas
        self._configs = configs
        self._reassigning = reassigning
        self._min_isr_on = min_isr_on

    @property
    def states(self) -> Sequence[PartitionState]:
        return self._states

    @cached_property
    def min_isr(self) -> Sequence[int | Unknown]:
        found = _min_isr(self._states, self._configs)
        if not self._min_isr_on:
            return found
        return [
            effective_min_isr(min(one.in_force for one in on), len(state.replicas))
            if (on := self._answers(state))
            else value
            for state, value in zip(self._states, found, strict=True)
        ]

    def _answers(self, state: PartitionState) -> tuple[MinIsrLevels, ...]:
        """Of the brokers that have a replica of a partition without a leader."""
        if not state.offline:
            return ()
        answers = self._min_isr_on.get(state.topic, ())
        return tuple(one for one in answers if one.broker in state.replicas)

    @property
    def reassigning(self) -> Iterable[bool | Unknown]:
        busy = self._reassigning
        if isinstance(busy, Unknown):
            return repeat(busy, len(self._states))
        if not busy:
            return repeat(False, len(self._states))
        return map(busy.__contains__, map(_name, self._states))

    def incomplete(self) -> Collection[int]:
        unknown = self._replicas.incomplete()
        if not unknown:
            return ()
        return [index for index, state in enumerate(self._states) if state.tp in unknown]

    def rows(self, indices: Collection[int]) -> Iterator[Survey]:
        rows: Sequence[Survey] = self if len(indices) * _FEW < len(self) else self._all
        return map(rows.__getitem__, indices)

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[Survey]:
        return iter(self._all)

    @overload
    def __getitem__(self, at: int) -> Survey: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[Survey, ...]: ...

    def __getitem__(self, at: int | slice) -> Survey | tuple[Survey, ...]:
        if isinstance(at, slice) or "_all" in vars(self):
            return self._all[at]
        state, busy, configs = self._states[at], self._reassigning, self._configs
        return Survey(
            state,
            self._replicas.one(state),
            self.min_isr[at],
            busy if isinstance(busy, Unknown) else state.tp in busy,
            NOT_READ if isinstance(configs, Unknown) else compacted_logs(configs[state.topic]),
            self._answers(state),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and self._all == tuple(other)

    def __hash__(self) -> int:
        return hash(self._all)

    @cached_property
    def _all(self) -> tuple[Survey, ...]:
        reported = self._replicas.all()
        rows: Iterable[Any] = zip(
            self._states,
            map(reported.__getitem__, map(_name, self._states)),
            self.min_isr,
            self.reassigning,
            _compacted(self._states, self._configs),
            map(self._answers, self._states) if self._min_isr_on else repeat((), len(self._states)),
            repeat(False, len(self._states)),
            strict=True,
        )
        return tuple(map(_made, repeat(Survey), rows))  # as Survey(...) does, without a call of Python's


def _compacted(
    states: Sequence[PartitionState], configs: Configs | Unknown
) -> Iterable[CompactedLogs | None]:
    if isinstance(configs, Unknown):
        return repeat(NOT_READ, len(states))
    of = {topic: compacted_logs(config) for topic, config in configs.items()}
    return [of[state.topic] for state in states]


def _min_isr(states: Sequence[PartitionState], configs: Configs | Unknown) -> Sequence[int | Unknown]:
    """The same for all partitions of a topic that have as many replicas."""
    if isinstance(configs, Unknown):
        return [configs] * len(states)
    known: dict[tuple[str, int], int | Unknown] = {}
    found = []
    for state in states:
        key = state.topic, len(state.replicas)
        value = known.get(key)
        if value is None:
            value = known[key] = min_isr_from_config(state, configs[state.topic])
        found.append(value)
    return found
