"""Who is elected if the chosen leader drops out, and the rows where that loses more than the plan says.

Kafka then elects the next electable replica in assignment order (the controller's PartitionChangeBuilder,
``electUncleanLeader``). The order that is written for the election puts the others by rank; where a replica's
broker is not registered no order can be written, and the assignment decides. A cluster with designated elections of
its own elects the designated leader or nobody (unclean-recovery-tool, "Designated Leader Elections").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from recovery.loss import Branch, Loss, branches
from recovery.model import Standing
from recovery.plan.plan_review import brief_candidate_harm, fixed_order_text, successor_harm
from recovery.plan.values import Plan, PlanRow, Successor
from recovery.wording.loss_text import brief_range

STAYS_OFFLINE = "nobody (stays offline)"
"""Who leads if the chosen leader drops out, where nobody else can be elected."""

WITHOUT_RIGHT = "without CLUSTER_ACTION"
"""Where the cluster elects the designated leader or nobody, a user without this right changes the assignment order
instead, as on other clusters, and another may lead.
"""

Bounds = tuple[int, int | None]
"""Offsets lost, at least and at most; None: no bound is known."""


@dataclass(frozen=True, slots=True)
class Risk:
    """The ``rows`` that would lose more if their chosen leader dropped out, worst first, out of ``elect``.

    ``planned`` is what they lose as planned, ``then`` what they lose if each is led by its worst successor.
    """

    rows: tuple[PlanRow, ...]
    elect: int
    planned: Bounds
    then: Bounds


def at_risk(plan: Plan) -> Risk:
    """The rows of the plan whose successor would lose more than the chosen leader."""
    found = [(row, worse) for row in plan.rows if (worse := worse_successor(row)) is not None]
    found.sort(key=lambda pair: _weight(pair[1].loss), reverse=True)
    return Risk(
        tuple(row for row, _ in found),
        len(plan.rows),
        _total(row.loss for row, _ in found),
        _total(worse.loss for _, worse in found),
    )


def worse_successor(row: PlanRow) -> Successor | None:
    """The worst of those that may be elected instead of the chosen leader; None where none loses more."""
    worse = [successor for successor in row.successors if _loses_more(row, successor)]
    return max(worse, key=lambda successor: _weight(successor.loss), default=None)


def risk_lines(plan: Plan, count: int, *, native: bool | None = None) -> Iterator[str]:
    """One line with the numbers and one for each of the worst ``count`` rows, of a single row one in all; nothing
    where no row loses more.

    ``native``: the cluster has designated elections of its own; None: that is not known.
    """
    risk = at_risk(plan)
    if not risk.rows:
        return
    if risk.elect == 1 and not native:
        (row,) = risk.rows
        unless = " (with ElectLeaders v3: it stays offline)" if native is None else ""
        yield f"If broker {row.leader} fails too, {risk_reason(row, alone=True)}{unless}."
        return
    yield f"{risk_text(risk, native=native)}."
    if native:
        return
    for row in risk.rows[:count]:
        yield f"{row.tp}: {risk_reason(row)}"


def risk_text(risk: Risk, *, native: bool | None = None) -> str:
    """The numbers of the whole plan in one line; ``native`` as above."""
    only = risk.rows[0] if len(risk.rows) == risk.elect == 1 else None
    chosen = "a chosen leader" if only is None else f"broker {only.leader}"
    if native:
        offline = "its partition" if only is None else f"{only.tp}"
        others = f"{len(risk.rows):,} of {risk.elect:,} may lose {brief_range(*risk.then)}"
        if only is not None:
            others = f"another may lead and lose {brief_range(*risk.then)}"
        return f"If {chosen} fails too, {offline} is offline again; {WITHOUT_RIGHT}, {others}"
    instead = f"{brief_range(*risk.then)} instead of {brief_range(*risk.planned)}"
    more = f"{len(risk.rows):,} of {risk.elect:,} may lose more, or newer records: {instead}"
    unless = " (with ElectLeaders v3: they stay offline)" if native is None else ""
    return f"If {chosen} fails too, {more}{unless}"


def risk_reason(row: PlanRow, *, alone: bool = False) -> str:
    """Who would lead instead, what that loses, and what the chosen one loses, unless the row stands ``alone``."""
    successor = _worst(row)
    then = f"lose {successor_harm(row, successor)}"
    if not alone:
        then += f"; {row.leader} loses {brief_candidate_harm(row.chosen)}"
    if not row.order_is_fixed:
        return f"broker {successor.broker} would lead and {then}"
    if successor.broker not in row.replicas[: row.replicas.index(row.leader)]:
        return f"broker {successor.broker} would lead and {then} ({fixed_order_text(row)})"
    if successor.standing is Standing.ELECTABLE:
        return f"broker {successor.broker} stands first, would lead and {then} ({fixed_order_text(row)})"
    return (
        f"broker {successor.broker} stands first, and would lead and {then}, if it is back by then"
        f" ({successor.standing} now; {fixed_order_text(row)})"
    )


def _worst(row: PlanRow) -> Successor:
    worse = worse_successor(row)
    assert worse is not None
    return worse


def _loses_more(row: PlanRow, successor: Successor) -> bool:
    """More offsets, or nobody knows how many, or newer records than any that the chosen leader loses."""
    chosen, then = row.loss, successor.loss
    if row.candidate(successor.broker) is None or then.at_least > chosen.at_least:
        return True
    if chosen.at_most is not None and (then.at_most is None or then.at_most > chosen.at_most):
        return True
    return _newer(row, successor.broker) > _newer(row, row.leader)


def _newer(row: PlanRow, broker: int) -> int:
    candidate = row.candidate(broker)
    if candidate is None or candidate.last_epoch is None:
        return 0
    return branches(candidate.loss, candidate.last_epoch).get(Branch.NEWER, 0)


def _weight(loss: Loss) -> tuple[int, bool, int]:
    return loss.at_least, loss.at_most is None, loss.at_most or 0


def _total(losses: Iterable[Loss]) -> Bounds:
    at_least, at_most = 0, 0
    unknown = False
    for loss in losses:
        at_least += loss.at_least
        at_most += loss.at_most or 0
        unknown = unknown or loss.at_most is None
    return at_least, None if unknown else at_most
