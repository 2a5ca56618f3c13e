"""Plans, advice, elections and the states read afterwards as JSON (docs/output.md). Keys as in the plan file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from console.operations.elections.election_batches import Elected, Result, RowFailure
from console.output.survey.survey_json import unknown_json
from recovery.advice import FirstStep
from recovery.loss import Loss
from recovery.model import TopicPartition, Unknown
from recovery.plan.plan_review import Summary
from recovery.plan.values import NotElected, Plan
from recovery.plan.verify import RowState
from recovery.plan.write import digest, utc_text
from recovery.wording.advice_text import step_lines


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


def loss_json(loss: Loss) -> dict[str, object]:
    """A range of offsets (docs/output.md, "loss")."""
    return {
        "atLeast": loss.at_least,
        "atMost": loss.at_most,
        "tail": loss.tail,
        "head": loss.head,
        "unanswered": list(loss.unanswered),
        "firstMs": loss.first_ms,
        "lastMs": loss.last_ms,
        "compacted": loss.compacted,
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
        "orderRestored": election.restored,
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


def tp_json(tp: TopicPartition) -> dict[str, object]:
    return {"topic": tp.topic, "partition": tp.partition}


def _known(value: bool | int | Unknown) -> object:
    return unknown_json(value) if isinstance(value, Unknown) else value


def steps_json(steps: Sequence[FirstStep]) -> list[dict[str, object]]:
    """All steps in order, with the sentences of the tables."""
    return [_step_json(step) for step in steps]


def _step_json(step: FirstStep) -> dict[str, object]:
    advice = step.advice
    return {
        "kind": advice.kind.value,
        "brokers": list(advice.brokers),
        "partitions": step.partitions,
        "example": tp_json(step.example),
        "keepDown": [
            {
                "broker": one.broker,
                "electedAs": one.kind.value,
                "checksRecords": one.checks_records,
                "failedDisk": one.failed_disk,
                "cutsOff": list(one.cuts_off),
            }
            for one in advice.keep_down
        ],
        "checkDisk": list(advice.check_disk),
        "byElr": advice.by_elr,
        "reassigning": advice.reassigning,
        "leadsAgain": advice.leads_again,
        "instead": list(advice.instead),
        "startIfWhole": [one.broker for one in advice.start_if_whole],
        "readBefore": list(advice.read_before),
        "repairBefore": list(advice.repair),
        "onlyThen": step.only_then,
        "text": " ".join(step_lines(step)),
    }
