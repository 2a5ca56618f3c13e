"""A plan as text (docs/files.md).

One partition a line, so that ``diff`` and a reviewer see one change as one line. Text is put together by hand
and not by :mod:`json`: 200,000 partitions are written in about a second.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from json.encoder import encode_basestring_ascii

from recovery.loss import Loss
from recovery.model import NO_LEADER, EpochSpan
from recovery.plan.values import (
    FORMAT_VERSION,
    WARNING,
    AffectedGroup,
    BarePlan,
    Header,
    NotElected,
    Plan,
    PlanCandidate,
    PlanRow,
)
from recovery.plan.verdict_json import verdict_as_text

_text = encode_basestring_ascii  # what json.dumps does with a string, and several times as fast


def to_json(plan: Plan) -> str:
    """The plan file's text; reading it gives an equal plan."""
    head = f'{{"warning": {_text(WARNING)},\n{_header(plan.header)},\n'
    if plan.steps:
        head += f'"steps": [\n{_lines(map(_text, plan.steps))}],\n'
    partitions = f'"partitions": [\n{_lines(map(row_json, plan.rows))}],\n'
    rows = [f'"notElected": [\n{_lines(map(_not_elected, plan.not_elected))}]']
    if plan.groups:
        rows.append(f'"groups": [\n{_lines(map(_affected_group, plan.groups))}]')
    if plan.groups_unread:
        unread = (f'{{"why": {_text(why)}}}' for why in plan.groups_unread)
        rows.append(f'"groupsUnread": [\n{_lines(unread)}]')
    lists = ",\n".join(rows)
    return f"{head}{partitions}{lists}}}\n"


def bare_json(bare: BarePlan) -> str:
    """The recovery tool's own output file: no preconditions, nothing but the leaders."""
    rows = (
        f'{{"topic": {_text(row.tp.topic)}, "partition": {row.tp.partition}, "designatedLeader": {row.leader}}}'
        for row in bare.rows
    )
    return f'{{"partitions": [\n{_lines(rows)}]}}\n'


def digest(plan: Plan) -> str:
    """SHA-256 (64 hex digits) of the plan's text as :func:`to_json` writes it.

    So it is what ``sha256sum`` says of a file that nobody touched, and white space, the order of keys and
    keys that are not ours do not change it. The order of rows does: ``--first N`` goes by it.
    """
    return text_digest(to_json(plan))


def text_digest(written: str) -> str:
    """The same, of a text that :func:`to_json` just wrote."""
    return sha256(written.encode()).hexdigest()


def _lines(rows: Iterable[str]) -> str:
    joined = ",\n".join(rows)
    return joined + "\n" if joined else ""


def _header(header: Header) -> str:
    fields = {
        "formatVersion": FORMAT_VERSION,
        "planId": header.plan_id,
        "clusterId": header.cluster_id,
        "madeAt": utc_text(header.made_at),
        "madeBy": header.made_by,
        "toolVersion": header.tool_version,
        "ranking": header.ranking.value,
        "strategy": header.strategy.value,
    }
    if header.accepted:
        fields["uncheckedAccepted"] = header.accepted
    return ",\n".join(f"{_text(key)}: {json.dumps(value)}" for key, value in fields.items())


def utc_text(when: datetime) -> str:
    """The moment as the file has it: ISO 8601, UTC, to the microsecond where it has any."""
    return when.astimezone(UTC).isoformat().replace("+00:00", "Z")


def row_json(row: PlanRow) -> str:
    """The row as it stands in a plan file."""
    tp, topic_id, leader_epoch, replicas, order, candidates, unanswered, reason, marks, *_ = row
    successor = row.successor
    fields = [
        f'"topic": {_text(tp.topic)}, "partition": {tp.partition}, "designatedLeader": {order[0]}',
        f'"topicId": {_text(topic_id)}, "leaderEpoch": {leader_epoch}',
        f'"replicas": {[*replicas]}, "order": {[*order]}',
        # Derived, for people who read the file; not read back.
        f'"successor": {"null" if successor is None else successor.broker}',
    ]
    if row.other_ranking_leader is not None:
        fields.append(f'"otherRankingLeader": {row.other_ranking_leader}')
    if row.clean_electors:
        fields.append(f'"cleanElectors": {[*row.clean_electors]}')
    if row.offline_since_ms is not None:
        fields.append(f'"offlineSinceMs": {row.offline_since_ms}')
    if row.offline_already_ms is not None:
        fields.append(f'"offlineAlreadyMs": {row.offline_already_ms}')
    if unanswered:
        silent = (f'{{"broker": {broker}, "standing": "{standing}"}}' for broker, standing in unanswered)
        fields.append(f'"silent": [{", ".join(silent)}]')
    if marks:
        fields.append(f'"marks": {json.dumps(marks)}')
    fields.append(f'"reason": {_text(reason)}, "candidates": [{", ".join(map(_candidate, candidates))}]')
    return f"{{{', '.join(fields)}}}"


def _candidate(candidate: PlanCandidate) -> str:
    broker, standing, leader_epoch, last_epoch, log_end, log_start, high_watermark, loss, *_ = candidate
    read_ms, verdict = candidate.disk_read_ms, candidate.verdict
    disk = "" if read_ms is None else f', "diskReadAtMs": {read_ms}'
    reported = "" if verdict is None else f', "acknowledged": {verdict_as_text(verdict)}'
    writes = ', "stillWrites": true' if candidate.still_writes else ""
    return (
        f'{{"broker": {broker}, "standing": "{standing}", "leaderEpoch": {leader_epoch},'
        f' "lastEpoch": {_optional(last_epoch)}, "logEnd": {log_end}, "logStart": {log_start},'
        f' "highWatermark": {high_watermark}, "loss": {_loss(loss)}{disk}{reported}{writes}}}'
    )


def _loss(loss: Loss) -> str:
    if loss == _NOTHING:
        return '{"atLeast": 0, "atMost": 0}'
    fields = [f'"atLeast": {loss.at_least}, "atMost": {_optional(loss.at_most)}']
    if loss.tail:
        fields.append(f'"tail": {_spans(loss.tail)}')
    if loss.head:
        fields.append(f'"head": {_spans(loss.head)}')
    if loss.unanswered:
        fields.append(f'"unanswered": {[*loss.unanswered]}')
    if loss.compacted != 0:
        fields.append(f'"compacted": {_optional(loss.compacted)}')
    if loss.first_ms is not None:
        fields.append(f'"firstMs": {loss.first_ms}')
    if loss.last_ms is not None:
        fields.append(f'"lastMs": {loss.last_ms}')
    return f"{{{', '.join(fields)}}}"


_NOTHING = Loss(0, 0, (), (), ())


def _spans(spans: Sequence[EpochSpan]) -> str:
    return str([[*span] for span in spans])


def _optional(number: int | None) -> str:
    return "null" if number is None else str(number)


def _not_elected(row: NotElected) -> str:
    leader = f', "leader": {row.leader}' if row.leader != NO_LEADER else ""
    if row.offline_since_ms is not None:
        leader += f', "offlineSinceMs": {row.offline_since_ms}'
    if row.offline_already_ms is not None:
        leader += f', "offlineAlreadyMs": {row.offline_already_ms}'
    return (
        f'{{"topic": {_text(row.tp.topic)}, "partition": {row.tp.partition}, "verdict": "{row.verdict.value}",'
        f' "waitsFor": {[*row.waits_for]}{leader}, "reason": {_text(row.reason)}}}'
    )


def _affected_group(row: AffectedGroup) -> str:
    return (
        f'{{"group": {_text(row.group)}, "topic": {_text(row.tp.topic)}, "partition": {row.tp.partition},'
        f' "offset": {row.offset}, "epoch": {row.epoch}, "lastRead": "{row.place.value}",'
        f' "goBackTo": {_optional(row.go_back_to)}, "leader": {row.leader}}}'
    )
