"""Plans and elections in counts as JSON (docs/output.md). Keys as in the plan file."""

from __future__ import annotations

from collections.abc import Iterable

from console.jobs.elect.election_batches import Elected, RowFailure
from console.reading.survey_json import tp_json
from recovery.plan.plan_review import Summary
from recovery.plan.values import Plan
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


def elected_json(elected: Elected) -> dict[str, object]:
    """The elections in counts."""
    return {
        "outcomes": {outcome.value: count for outcome, count in elected.counts.items()},
        "failures": len(elected.failures),
        "notSeen": elected.not_read_back,
    }


def failures_json(failures: Iterable[RowFailure]) -> list[dict[str, object]]:
    """What was requested and not done, with the reason."""
    return [{**tp_json(one.tp), "reason": one.reason} for one in failures]
