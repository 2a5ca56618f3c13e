"""A controller replacement with its plan file and its journal entry: makes, saves, reads and carries it out."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import NamedTuple

from backends.base.membership import Membership
from console.change.unfinished_orders import unfinished_quorum
from console.errors import InputError
from console.jobs.quorum.replacement_plan import ReplacementChoice, plan_replacement
from console.jobs.quorum.replacement_steps import ReplacementResult, StopReason, Watcher, go_through
from console.journal.change_kinds import NOT_REBUILT, REPLACE
from console.journal.journal import Journal
from console.new_files import write_new
from console.plan_files import plans_directory, share_plan
from console.provenance import made_by, now, version
from console.reading.remembered_voters import quorum_problems, remember_voters
from console.signals import StopRequest
from recovery.membership.replacement import (
    ReplacementError,
    ReplacementHeader,
    ReplacementPlan,
)
from recovery.membership.replacement_file import from_json, to_json

PATIENCE = 3600.0
"""Seconds that one step may take; most of it is the time until somebody has worked on a host."""


class LoadedReplacement(NamedTuple):
    """A plan and its file (an absolute path, so that another shell finds it; None: it was only shown), with the
    steps that were confirmed as done.
    """

    plan: ReplacementPlan
    file: Path | None
    confirmed: frozenset[int] = frozenset()

    @classmethod
    def of(
        cls, plan: ReplacementPlan, file: Path | None, confirmed: frozenset[int] = frozenset()
    ) -> LoadedReplacement:
        return cls(plan, None if file is None else file.resolve(), confirmed)

    @property
    def cluster_id(self) -> str:
        return self.plan.wanted.cluster_id


async def make_replacement(membership: Membership, choice: ReplacementChoice) -> ReplacementPlan:
    """Makes the plan for that choice. Raises as :func:`plan_replacement`."""
    header = ReplacementHeader(str(uuid.uuid4()), now().isoformat(timespec="seconds"), made_by(), version())
    return await plan_replacement(membership, choice, header)


def save_replacement(plan: ReplacementPlan, file: Path | None = None) -> Path:
    """Writes the plan to a new ``file``, or under the state directory; returns where. Raises InputError."""
    if file is None:
        name = f"replace-{plan.wanted.kind}-{plan.header.plan_id[:8]}.json"
        file = plans_directory(plan.wanted.cluster_id) / name
        write_new(file, to_json(plan))
        share_plan(file)
        return file
    write_new(file, to_json(plan))
    return file


def read_replacement(file: Path) -> ReplacementPlan:
    """The plan that a file holds. Raises InputError."""
    try:
        return from_json(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read ({error})") from None
    except ReplacementError as error:
        raise InputError(f"{file}: {error}") from None


def refuse_replacement_of_other_cluster(plan: ReplacementPlan, cluster_id: str) -> None:
    """Raises InputError if the plan was made for another cluster."""
    if plan.wanted.cluster_id != cluster_id:
        raise InputError(f"the plan is for cluster {plan.wanted.cluster_id}, and this is {cluster_id}")


async def run_replacement(
    membership: Membership,
    planned: LoadedReplacement,
    journal: Journal,
    watcher: Watcher,
    stop: StopRequest,
    *,
    attended: bool = True,
    not_rebuilt: bool = False,
) -> ReplacementResult:
    """Carries out the plan; ``not_rebuilt`` as in ReplacementChoice. Journal entries of earlier runs for it are
    closed when it is done.
    """
    plan = planned.plan
    found = await unfinished_quorum(membership, planned.cluster_id)
    looked = {NOT_REBUILT: True} if not_rebuilt else {}
    entry = journal.before(REPLACE, {"file": str(planned.file), "planId": plan.header.plan_id, **looked})
    confirmed = found.confirmed_steps(plan.header.plan_id)
    with stop.in_flight():
        result = await go_through(
            membership,
            plan,
            journal,
            watcher,
            stop,
            patience=PATIENCE,
            attended=attended,
            confirmed=confirmed,
        )
    if result.quorum is not None:
        remember_voters(result.quorum)
    if result.reason is StopReason.DONE:
        journal.after(entry, {"course": str(result.reason)})
        earlier = [e.entry for e in (*found.of(REPLACE), *found.entries)]
        journal.settle("the replacement was carried out to its end", entries=earlier)
        for problem in (await quorum_problems(membership)).texts:
            watcher.says(plan.steps[-1], problem)
    # resume finds the newest entry; it replaces those of earlier runs.
    elif replacements := found.of(REPLACE):
        journal.settle("a later run went on with it", entries=[e.entry for e in replacements])
    return result
