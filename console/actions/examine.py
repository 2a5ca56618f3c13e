"""Looking, before anything is changed: partitions, their configurations, and every replica's log."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from backends.base.answers import ClusterInfo, Contact, Depth, SurveyRequest
from backends.base.protocol import Backend, Progress
from console.actions.selection import Selected, Selection, Which, select
from recovery.model import PartitionState, Survey, TopicPartition, Unknown, Why

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")

Configs = Mapping[str, Mapping[str, str] | Unknown]


@dataclass(frozen=True, slots=True)
class Depths:
    """How long to ask, in seconds, and how much."""

    duration: float = 30.0
    depth: Depth = Depth.DIVERGENCE
    log_dirs: bool = True


@dataclass(frozen=True, slots=True)
class Picture:
    """The partitions asked for as they are, one survey each, in the order asked for.

    ``marks`` tells per topic what an unclean election takes from it beside records. ``hidden`` and
    ``visible_only`` as in :class:`console.actions.selection.Selected`.
    """

    cluster: ClusterInfo
    surveys: tuple[Survey, ...]
    contacts: tuple[Contact, ...]
    marks: Mapping[str, tuple[str, ...]]
    hidden: tuple[str, ...]
    visible_only: bool
    selection: Selection


async def examine(
    backend: Backend,
    selection: Selection,
    depths: Depths,
    progress: Progress | None = None,
) -> Picture:
    """Opens the backend, finds the partitions and surveys them. Raises InputError and BackendError."""
    cluster = await backend.open()
    selected = await select(backend, selection)
    configs: Configs = {}
    if selection.which is Which.UNDER_MIN_ISR:
        configs = await backend.topic_configs(_topics(selected.states))
        states = tuple(state for state in selected.states if is_under_min_isr(state, configs))
        selected = Selected(states, selected.hidden, selected.visible_only)
    surveys: tuple[Survey, ...] = ()
    contacts: tuple[Contact, ...] = ()
    if selected.states:
        request = SurveyRequest(selected.states, depths.duration, depths.depth, depths.log_dirs)
        moving, fetched, result = await together(
            backend.reassignments([state.tp for state in selected.states]),
            backend.topic_configs(_topics(selected.states)),
            backend.survey(request, progress),
        )
        configs = fetched
        in_progress = moving if isinstance(moving, Unknown) else frozenset(row.tp for row in moving)
        surveys = tuple(_completed(survey, configs, in_progress) for survey in result.surveys)
        contacts = result.contacts
    marks = {topic: marks_of(topic, configs.get(topic)) for topic in _topics(selected.states)}
    return Picture(cluster, surveys, contacts, marks, selected.hidden, selected.visible_only, selection)


def is_under_min_isr(state: PartitionState, configs: Configs) -> bool:
    """Fewer replicas in sync than the topic asks for. Where min.insync.replicas is not known: fewer than 1."""
    needed = effective_min_isr(state, configs.get(state.topic))
    return len(state.isr) < (1 if isinstance(needed, Unknown) else needed)


def effective_min_isr(state: PartitionState, config: Mapping[str, str] | Unknown | None) -> int | Unknown:
    """min(min.insync.replicas, replication factor) (KIP-966), or why it is not known."""
    if config is None:
        return Unknown(Why.NOT_ANSWERED, "the topic's configuration was not asked for")
    if isinstance(config, Unknown):
        return config
    value = config.get("min.insync.replicas", "")
    if not value.isdecimal():
        return Unknown(Why.FAILED, "the topic's configuration has no min.insync.replicas")
    return min(int(value), len(state.replicas))


def marks_of(topic: str, config: Mapping[str, str] | Unknown | None) -> tuple[str, ...]:
    """What makes a topic lose more, or other things, than the offsets counted (design: "Rank and loss")."""
    marks = ["internal"] if topic.startswith("__") else []
    if topic == "__transaction_state":
        marks.append("transactions")
    if config is None or isinstance(config, Unknown):
        return (*marks, "configuration not known")
    if "compact" in config.get("cleanup.policy", ""):
        marks.append("compacted")
    if config.get("remote.storage.enable") == "true":
        marks.append("tiered")
    return tuple(marks)


async def together(
    one: Coroutine[Any, Any, A], two: Coroutine[Any, Any, B], three: Coroutine[Any, Any, C]
) -> tuple[A, B, C]:
    """All three at once; when one fails the others are cancelled, and its own error is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = group.create_task(one), group.create_task(two), group.create_task(three)
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return tasks[0].result(), tasks[1].result(), tasks[2].result()


def _completed(survey: Survey, configs: Configs, moving: frozenset[TopicPartition] | Unknown) -> Survey:
    reassigning = moving if isinstance(moving, Unknown) else survey.tp in moving
    min_isr = effective_min_isr(survey.state, configs.get(survey.state.topic))
    return survey._replace(min_isr=min_isr, reassigning=reassigning)


def _topics(states: Sequence[PartitionState]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(state.topic for state in states))
