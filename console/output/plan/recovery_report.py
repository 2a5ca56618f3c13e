"""``kafka-unclean-recovery`` and ``kafka-elect-leaders`` as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from backends.base.answers import Election
from console.operations.elections.kafka_elections import KafkaElectionResults
from console.operations.elections.leader_choice import Choices
from console.operations.elections.preserved_logs import preserved_json, preserved_lines
from console.operations.elections.recover_partitions import Recovery
from console.output.json_document import document
from console.output.plan.plan_json import (
    elected_json,
    failures_json,
    not_elected_json,
    plan_head,
    result_json,
    steps_json,
    summary_json,
    tp_json,
)
from console.output.plan.plan_table import elected_lines, outcome_counts, plan_lines, planned_json
from console.output.rescue.rescue_report import rescue_lines, rescued_fields
from console.output.survey.copied_log_report import copied_log_json
from console.output.survey.partition_report import survey_json
from console.output.survey.survey_json import cluster_json, contact_json, unknown_json
from console.output.survey.survey_report import (
    count_lines,
    evidence_json,
    replica_lines,
    survey_counts,
    unreachable_leaders_json,
)
from console.output.unread_disks_json import unread_brokers_json
from recovery.model import TopicPartition
from recovery.plan.importance import NO_TIERS, Importance
from recovery.plan.plan_review import candidate_harm, summarise
from recovery.plan.values import PlanRow
from recovery.wording.advice_text import steps_lines
from recovery.wording.quantity_text import printable
from recovery.wording.unread_disk_text import unread_broker_lines
from widgets.text_table import TextColumn, table


def election_lines(results: KafkaElectionResults, limit: int) -> Iterator[str]:
    """What was read first, counts, then failed elections, then the rest."""
    if results.rescued is not None:
        yield from rescue_lines(results.rescued, limit)
        yield ""
    yield outcome_counts(results.counts)
    failed = set(results.failures)
    ordered = sorted(results.elections, key=lambda election: election not in failed)
    shown = ordered[:limit] if limit else ordered
    rows = results.expected
    if shown:
        yield ""
        yield from table(
            (
                TextColumn("PARTITION"),
                TextColumn("OUTCOME"),
                TextColumn("LEADER", right=True),
                TextColumn("LEADER EPOCH", right=True),
                TextColumn("OFFSETS LOST"),
                TextColumn("DETAIL", below=True),
            ),
            [_cells(election, rows.get(election.tp)) for election in shown],
        )
    if len(ordered) > len(shown):
        yield f"… and {len(ordered) - len(shown):,} more (--rows 0, or --output json, shows all)"
    yield from unread_broker_lines(results.unread)


def _cells(election: Election, row: PlanRow | None) -> tuple[str, ...]:
    return (
        str(election.tp),
        str(election.outcome),
        str(election.leader) if election.leader >= 0 else "",
        str(election.leader_epoch) if election.leader_epoch >= 0 else "",
        "" if row is None else candidate_harm(row.chosen),
        printable(election.detail),
    )


def election_document(kind: str, results: KafkaElectionResults) -> Iterator[str]:
    """``ktriage.elect/2`` of a preferred or an unclean election."""
    return document(
        "elect",
        {
            "electionType": kind,
            "counts": {outcome.value: count for outcome, count in results.counts.items()},
            "elections": [_json(election, results.expected) for election in results.elections],
            "failures": [{**tp_json(e.tp), "reason": e.detail} for e in results.failures],
            "rescue": None if results.rescued is None else rescued_fields(results.rescued),
            "unreadDisks": unread_brokers_json(results.unread),
        },
    )


def _json(election: Election, rows: Mapping[TopicPartition, PlanRow]) -> dict[str, object]:
    row = rows.get(election.tp)
    lost = None if row is None else {"atLeast": row.loss.at_least, "atMost": row.loss.at_most}
    return {
        "loss": lost,
        **tp_json(election.tp),
        "outcome": election.outcome.value,
        "leader": election.leader,
        "leaderEpoch": election.leader_epoch,
        "inDoubt": election.in_doubt,
        "detail": election.detail,
    }


def chosen_lines(choices: Choices, show: bool, rows: int, importance: Importance = NO_TIERS) -> Iterator[str]:
    """The surveyed partitions and the choices; ``show``: every replica of the ``rows`` worst partitions, or
    of all (0).
    """
    reading = choices.reading
    yield from count_lines(reading)
    if show:
        yield from replica_lines(reading, rows, importance)
    if choices.rows:
        yield ""
        if not reading.stale:  # without a quorum nobody can be elected
            yield from steps_lines(choices.steps)
        yield from plan_lines(choices.plan, rows, native=choices.native)


def ended_lines(recovery: Recovery, rows: int) -> Iterator[str]:
    """The results of the elections, and before them what was read first."""
    if recovery.rescued is not None:
        yield ""
        yield from rescue_lines(recovery.rescued, rows)
    if recovery.elected is None and recovery.file is not None:
        yield "nothing was sent"
    if recovery.elected is not None:
        yield ""
        yield from elected_lines(recovery.elected, rows)
    if recovery.preserved is not None:
        yield from map(printable, preserved_lines(recovery.preserved))
        yield from unread_broker_lines(recovery.unread)


def recovery_document(command: str, recovery: Recovery, file: Path | None, show: bool) -> Iterator[str]:
    """``ktriage.recover/2``, and ``ktriage.elect/2`` of a longest-log election."""
    choices, elected = recovery.choices, recovery.elected
    reading, plan = choices.reading, choices.plan
    calls = {contact.broker: contact.call for contact in reading.contacts}
    fields: dict[str, object] = {
        "cluster": cluster_json(reading.cluster),
        "plan": plan_head(plan),
        "planFile": str(file) if file is not None else None,
        "counts": {**survey_counts(reading), **summary_json(summarise(plan))},
        "hiddenTopics": list(reading.selected.hidden),
        "notCompared": None
        if reading.selected.not_compared is None
        else unknown_json(reading.selected.not_compared),
        "leadersNotTold": unreachable_leaders_json(reading),
        "contacts": [contact_json(contact) for contact in reading.contacts],
        "evidence": evidence_json(reading.evidence),
        "copiedLog": copied_log_json(reading.copied_log),
        "steps": steps_json(choices.steps),
        "partitions": [planned_json(row) for row in plan.rows],
        "notElected": [not_elected_json(row) for row in plan.not_elected],
    }
    if show:
        fields["replicas"] = [
            survey_json(survey, calls, reading.verdicts.get(survey.tp)) for survey in reading.surveys
        ]
    if recovery.rescued is not None:
        fields["rescue"] = rescued_fields(recovery.rescued)
    if elected is not None:
        fields["elected"] = elected_json(elected)
        fields["elections"] = [result_json(result) for result in elected.results]
        fields["unreadDisks"] = unread_brokers_json(recovery.unread)
    if recovery.preserved is not None:
        fields["keptLogs"] = preserved_json(recovery.preserved)
    fields["failures"] = failures_json(recovery.failures)
    return document(command, fields)
