"""Finds the requested partitions in the cluster: unknown ones are refused before anything is sent."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from backends.base.answers import Depth, Partitions, SurveyRequest
from backends.base.errors import NotAllowed
from backends.base.protocol import Backend, Progress
from console.errors import InputError
from recovery.model import PartitionState, Survey, TopicPartition, Unknown, Why
from recovery.wording.quantity_text import some_of

SHOWN = 5
SETTLE_SECONDS = 10.0
"""How long the replicas of chosen partitions are asked again."""
CLUSTER = "Cluster:kafka-cluster"


class Which(StrEnum):
    """Which of the visible partitions: all, or only those with a problem."""

    ALL = "all"
    OFFLINE = "offline"
    UNDER_MIN_ISR = "under min ISR"


@dataclass(frozen=True, slots=True)
class Selection:
    """The request: the partitions named, every partition of the topics named, or all; then ``which``.

    ``best_effort``: named partitions that do not exist, or may not be seen, do not refuse the others.
    """

    partitions: tuple[TopicPartition, ...] | None = None
    topics: tuple[str, ...] = ()
    which: Which = Which.ALL
    best_effort: bool = False

    @property
    def named(self) -> bool:
        return self.partitions is not None or bool(self.topics)

    @property
    def text(self) -> str:
        """What was named, such as ``topic orders`` or ``orders-0, orders-3``; "" where nothing was."""
        if self.partitions is not None:
            return some_of(self.partitions, SHOWN)
        return f"topic {some_of(self.topics, SHOWN)}" if self.topics else ""


@dataclass(frozen=True, slots=True)
class Selected:
    """The states of the requested partitions, and what could not be seen.

    ``hidden`` are topics that exist and that this user may not describe. ``visible_only``: the cluster
    silently left out what this user may not see. ``not_compared``: why it is not known whether there are such
    topics; None if ``hidden`` is complete. ``unreachable_leaders`` are partitions with a leader that has no
    address on the listener that was asked: they are not offline, and not among the states. ``found`` is all
    that was read to find ``states``; ``whole``: of the whole cluster. ``missing``: why partitions that were named
    are not among the states, of a request that makes the best effort.
    """

    states: tuple[PartitionState, ...]
    hidden: tuple[str, ...] = ()
    visible_only: bool = False
    not_compared: Unknown | None = None
    unreachable_leaders: Mapping[TopicPartition, Unknown] = field(default_factory=dict)
    found: Partitions = field(default_factory=lambda: Partitions(()))
    whole: bool = False
    missing: Mapping[TopicPartition, str] = field(default_factory=dict)

    def without(self, partitions: Container[TopicPartition]) -> Selected:
        """The same without those partitions."""
        return replace(self, states=tuple(state for state in self.states if state.tp not in partitions))


async def select(backend: Backend, selection: Selection) -> Selected:
    """The partitions that were named, in that order, or all partitions of the cluster.

    Raises InputError if a named topic or partition does not exist (by the best effort: if none does); NotAllowed
    if this user may not see it, or if no partition is visible and it is not known whether any exists. The caller
    applies ``which`` UNDER_MIN_ISR, because it knows the configurations.
    """
    if selection.partitions is not None:
        topics: tuple[str, ...] | None = tuple(dict.fromkeys(tp.topic for tp in selection.partitions))
    else:
        topics = selection.topics or None
    found = await backend.partitions(topics)
    missing: Mapping[TopicPartition, str] = {}
    if selection.best_effort and selection.partitions is not None:
        there = {state.tp for state in found.states}
        present = tuple(tp for tp in selection.partitions if tp in there)
        if present:
            missing = {tp: _why_missing(found, tp) for tp in selection.partitions if tp not in there}
            selection = replace(selection, partitions=present)
    if topics is not None and not missing:
        _refuse_missing(found, topics)
    elif (
        topics is None
        and not found.states
        and found.not_compared is not None
        and found.not_compared.why is Why.NOT_ALLOWED
    ):
        raise NotAllowed(
            "DESCRIBE", CLUSTER, "tell whether there are partitions that this caller may not see"
        )
    states = found.states
    if selection.partitions is not None:
        states = _in_order(found, selection.partitions)
    elif selection.topics:
        _refuse_empty(found, selection.topics)
    if selection.which is Which.OFFLINE:
        states = tuple(state for state in states if state.offline)
    return Selected(
        states,
        found.hidden,
        found.visible_only,
        found.not_compared,
        found.unreachable_leaders,
        found=found,
        whole=topics is None,
        missing=missing,
    )


def _refuse_missing(found: Partitions, topics: Collection[str]) -> None:
    asked = set(topics)
    hidden = [topic for topic in found.hidden if topic in asked]
    for tp, why in found.unknown.items():
        if tp.topic in asked and why.why is Why.NOT_ALLOWED:
            hidden.append(tp.topic)
    if hidden:
        raise NotAllowed("DESCRIBE", f"topic {some_of(sorted(set(hidden)), SHOWN)}", "see its partitions")
    missing = {tp.topic: why for tp, why in found.unknown.items() if tp.topic in asked and tp.partition < 0}
    if missing:
        details = sorted({str(why) for why in missing.values()})
        raise InputError(f"unknown topic {some_of(sorted(missing), SHOWN)} ({details[0]}); nothing was sent")


def _why_missing(found: Partitions, tp: TopicPartition) -> str:
    if tp in found.unreachable_leaders:
        return found.unreachable_leaders[tp].detail
    unknown = found.unknown.get(tp) or found.unknown.get(TopicPartition(tp.topic, -1))
    if tp.topic in found.hidden or (unknown is not None and unknown.why is Why.NOT_ALLOWED):
        return f"needs DESCRIBE on topic {tp.topic}"
    return "no such partition" if unknown is None else f"no such partition ({unknown})"


def _refuse_empty(found: Partitions, topics: Sequence[str]) -> None:
    there = {state.topic for state in found.states} | {tp.topic for tp in found.unknown if tp.partition >= 0}
    missing = [topic for topic in topics if topic not in there]
    if missing:
        raise InputError(f"unknown topic {some_of(missing, SHOWN)}; nothing was sent")


def _in_order(found: Partitions, requested: Sequence[TopicPartition]) -> tuple[PartitionState, ...]:
    by_name = {state.tp: state for state in found.states}
    unreachable = found.unreachable_leaders
    refused = [tp for tp in requested if tp in unreachable]
    if refused:
        raise InputError(f"{some_of(refused, SHOWN)}: {unreachable[refused[0]].detail}; nothing was sent")
    topics = {state.topic for state in found.states}
    unknown_topics = list(dict.fromkeys(tp.topic for tp in requested if tp.topic not in topics))
    if unknown_topics:
        raise InputError(f"unknown topic {some_of(unknown_topics, SHOWN)}; nothing was sent")
    missing = [tp for tp in requested if tp not in by_name]
    if missing:
        raise InputError(f"no such partition: {some_of(missing, SHOWN)}; nothing was sent")
    return tuple(by_name[tp] for tp in requested)


async def survey_rows(
    backend: Backend,
    partitions: Sequence[TopicPartition],
    progress: Progress | None = None,
    seconds: float = SETTLE_SECONDS,
    depth: Depth = Depth.DIVERGENCE,
) -> tuple[Survey, ...]:
    """A new survey of the partitions that still exist; the others are left out. Raises BackendError."""
    found = await described(backend, partitions)
    return await surveyed(backend, found.states, progress, seconds, depth=depth)


async def described(backend: Backend, partitions: Sequence[TopicPartition]) -> Partitions:
    """The states of those partitions only, and everything of their topics that could not be read."""
    requested = set(partitions)
    found = await backend.partitions(tuple(dict.fromkeys(tp.topic for tp in partitions)))
    return replace(found, states=tuple(state for state in found.states if state.tp in requested))


async def surveyed(
    backend: Backend,
    states: tuple[PartitionState, ...],
    progress: Progress | None,
    seconds: float,
    *,
    leaders_only: bool = False,
    depth: Depth = Depth.DIVERGENCE,
) -> tuple[Survey, ...]:
    """A new survey of partitions as they were described. Raises BackendError.
    ``leaders_only``: for a partition with a leader only the leader is asked, and only for the last epoch of
    its log.
    """
    if not states:
        return ()
    depth = Depth.LAST if leaders_only else depth
    request = SurveyRequest(states, seconds, depth, log_dirs=False, leaders_only=leaders_only)
    return tuple((await backend.survey(request, progress)).surveys)
