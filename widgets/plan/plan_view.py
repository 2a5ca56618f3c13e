"""A plan as this pane shows it: its rows, their results, and the progress of applying it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from recovery.model import TopicPartition
from recovery.plan.judgement import Judgement
from recovery.plan.values import Plan
from recovery.plan.verify import RowState


class BatchProgress(NamedTuple):
    """How far applying is: what is being done in a few words, and ``done`` of ``of`` partitions."""

    what: str
    done: int
    of: int


class RowOutcome(NamedTuple):
    """How a row's election ended, in the words of the command line."""

    good: bool
    word: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class PlanView:
    """``plan`` None: nothing was chosen yet. ``checks`` compare it with the cluster of now, ``edited`` are the rows
    whose leader was chosen by hand, ``file`` where it was saved (None: not yet), ``outcomes`` what its elections
    came to, ``states`` what was seen afterwards. ``native``: the cluster elects designated leaders itself.
    ``how``: the keys that lead to a plan.
    """

    plan: Plan | None
    checks: Mapping[TopicPartition, Judgement] = field(default_factory=dict)
    edited: frozenset[TopicPartition] = frozenset()
    file: str | None = None
    digest: str = ""
    batch: BatchProgress | None = None
    outcomes: Mapping[TopicPartition, RowOutcome] = field(default_factory=dict)
    states: Mapping[TopicPartition, RowState] = field(default_factory=dict)
    native: bool = False
    how: str = ""
