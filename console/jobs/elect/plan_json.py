"""Plans, advice, elections and the states read afterwards as JSON (docs/output.md). Keys as in the plan file."""

from __future__ import annotations

from collections.abc import Iterable

from console.jobs.elect.election_batches import Elected, Result, RowFailure
from console.reading.survey_json import loss_json, tp_json, unknown_json
from recovery.model import Unknown
from recovery.plan.plan_review import Summary
from recovery.plan.values import NotElected, Plan
from recovery.plan.verify import RowState
from recovery.plan.write import digest, utc_text


def plan_head(plan: Plan) -> dict[str, object]:
    """The plan's origin."""
    header = plan.header
    return {
        "planId": header.plan_id,
        "clusterId": header.cluster_id,
        "madeAt": utc_text(header.made_at),
        "madeBy": header.made_by,
        "ranking": header.ranking.value,
        "strategy": header.strategy.value,
        "uncheckedAccepted": header.accepted or None,
        "digest": digest(plan),
        "groups": [
            {
                "topic": row.tp.topic,
                "partition": row.tp.partition,
                "group": row.group,
                "offset": row.offset,
                "epoch": None if row.epoch < 0 else row.epoch,
                "place": row.place.name.lower().replace("_", "-"),
                "goBackTo": row.go_back_to,
            }
            for row in plan.affected
        ],
        "groupsUnread": list(plan.groups_unread),
    }


def summary_json(summary: Summary) -> dict[str, object]:
    """The plan in counts; ``atMost`` null if no bound is known."""
    return {
        "elect": summary.elect,
        "notElected": {verdict.value: count for verdict, count in summary.not_elected.items()},
        "acknowledgedLost": dict(sorted(summary.acknowledged.values.items())),
        "lossless": summary.lossless,
        "mayLose": summary.may_lose,
        "atLeast": summary.at_least,
        "atMost": summary.at_most,
        "rankingsDisagree": summary.disagree,
        "notBest": summary.not_best,
    }


def not_elected_json(row: NotElected) -> dict[str, object]:
    """A partition without an election."""
    return {
        **tp_json(row.tp),
        "verdict": row.verdict.value,
        "waitsFor": list(row.waits_for),
        "leader": row.leader,
        "offlineSinceMs": row.offline_since_ms,
        "offlineAlreadyMs": row.offline_already_ms,
        "reason": row.reason,
    }


def result_json(result: Result) -> dict[str, object]:
    """The result of one election, and the state read afterwards."""
    election = result.election
    return {
        **tp_json(election.tp),
        "designatedLeader": result.row.leader,
        "outcome": election.outcome.value,
        "succeeded": result.succeeded,
        "leader": election.leader,
        "leaderEpoch": election.leader_epoch,
        "orderReverted": election.reverted,
        "inDoubt": election.in_doubt,
        "loss": loss_json(result.row.loss),
        "detail": election.detail,
        "seen": state_json(result.state) if result.state is not None else None,
    }


def elected_json(elected: Elected) -> dict[str, object]:
    """The elections in counts."""
    return {
        "outcomes": {outcome.value: count for outcome, count in elected.counts.items()},
        "failures": len(elected.failures),
        "notSeen": elected.not_read_back,
    }


def state_json(state: RowState) -> dict[str, object]:
    """The state of one row (``ktriage verify``)."""
    return {
        **tp_json(state.tp),
        "leader": state.leader,
        "leading": state.leading.value,
        "usable": _known(state.usable),
        "replicated": state.replicated,
        "order": state.order.value,
        "gap": _known(state.gap),
        "lostOfPlan": None if state.lost is None else _known(state.lost),
        "good": state.good,
        "complete": state.complete,
        "oldLeaders": [{"broker": one.broker, "leaderEpoch": one.epoch} for one in state.old_leaders],
        "missing": list(state.missing),
    }


def failures_json(failures: Iterable[RowFailure]) -> list[dict[str, object]]:
    """What was requested and not done, with the reason."""
    return [{**tp_json(one.tp), "reason": one.reason} for one in failures]


def _known(value: bool | int | Unknown) -> object:
    return unknown_json(value) if isinstance(value, Unknown) else value
