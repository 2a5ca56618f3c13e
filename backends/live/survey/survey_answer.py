"""The result of a survey, partition by partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any

from backends.live.calls.log_dir_replicas import NO_SIZES, ReplicaSizes
from backends.live.survey.survey_run import LiveSurvey
from backends.live.survey.topic_batch import NOT_ASKED
from recovery.compacted_logs import NOT_READ, CompactedLogs, compacted_logs
from recovery.min_isr import min_isr_from_config
from recovery.model import Broker, PartitionState, Replica, Survey, TopicPartition, Unknown
from recovery.standing import standing

_made = tuple.__new__
_name = itemgetter(slice(2))  # topic and partition

Replicas = Mapping[tuple[str, int], tuple[Replica, ...]]
Configs = Mapping[str, Mapping[str, str] | Unknown]


def replicas(run: LiveSurvey, brokers: Mapping[int, Broker], held: Mapping[int, ReplicaSizes]) -> Replicas:
    """Of every partition, in assignment order; also after the deadline. ``held`` has each broker's log dirs."""
    found: list[Replica | None] = [None] * run.tally.firsts[-1]
    for broker, several in run.batches.items():
        for batch in several:
            batch.fill(found, broker, brokers, held.get(broker, NO_SIZES))
    for odd in run.rows.values():
        odd.fill(found, brokers, held)
    rows: Iterable[Any]
    sizes = {len(state.replicas) for state in run.states}
    if len(sizes) == 1 and not run.leaders_only:
        rows = zip(*repeat(iter(found), sizes.pop()), strict=True)
    else:
        rows = map(_row, run.states, run.tally.firsts, repeat(found), repeat(brokers))
    return dict(zip(map(_name, run.states), rows, strict=True))


def _row(
    state: PartitionState, first: int, found: Sequence[Replica | None], brokers: Mapping[int, Broker]
) -> tuple[Replica, ...]:
    several = found[first : first + len(state.replicas)]
    return tuple(
        replica or Replica(broker, standing(state, broker, brokers), NOT_ASKED)
        for broker, replica in zip(state.replicas, several, strict=True)
    )


def surveys(
    states: Sequence[PartitionState],
    reported: Replicas,
    configs: Configs | Unknown,
    reassigning: frozenset[TopicPartition] | Unknown,
) -> tuple[Survey, ...]:
    """One for each of ``states``, in their order."""
    names = list(map(_name, states))
    busy: Iterable[bool | Unknown]
    if isinstance(reassigning, Unknown):
        busy = repeat(reassigning, len(names))
    else:
        busy = map(reassigning.__contains__, names) if reassigning else repeat(False, len(names))
    rows: Iterable[Any] = zip(
        states,
        map(reported.__getitem__, names),
        _min_isr(states, configs),
        busy,
        _compacted(states, configs),
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


def _min_isr(states: Sequence[PartitionState], configs: Configs | Unknown) -> Iterable[int | Unknown]:
    """The same for all partitions of a topic that have as many replicas."""
    if isinstance(configs, Unknown):
        return repeat(configs, len(states))
    known: dict[tuple[str, int], int | Unknown] = {}
    found = []
    for state in states:
        key = state.topic, len(state.replicas)
        value = known.get(key)
        if value is None:
            value = known[key] = min_isr_from_config(state, configs[state.topic])
        found.append(value)
    return found
