"""Preferred and unclean elections as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator

from backends.base.answers import Election
from console.operations.elections.kafka_elections import KafkaElectionResults
from console.output.json_document import document
from console.output.plan.plan_json import tp_json
from console.output.plan.plan_table import outcome_counts
from console.output.text_table import TextColumn, table
from recovery.wording.quantity_text import printable


def election_lines(results: KafkaElectionResults, limit: int) -> Iterator[str]:
    """Counts, then failed elections, then the rest."""
    yield outcome_counts(results.counts)
    failed = set(results.failures)
    ordered = sorted(results.elections, key=lambda election: election not in failed)
    shown = ordered[:limit] if limit else ordered
    if shown:
        yield ""
        yield from table(
            (
                TextColumn("PARTITION"),
                TextColumn("OUTCOME"),
                TextColumn("LEADER", right=True),
                TextColumn("LEADER EPOCH", right=True),
                TextColumn("DETAIL", below=True),
            ),
            [_cells(election) for election in shown],
        )
    if len(ordered) > len(shown):
        yield f"… and {len(ordered) - len(shown):,} more (--rows 0, or --output json, shows all)"


def _cells(election: Election) -> tuple[str, ...]:
    return (
        str(election.tp),
        str(election.outcome),
        str(election.leader) if election.leader >= 0 else "",
        str(election.leader_epoch) if election.leader_epoch >= 0 else "",
        printable(election.detail),
    )


def election_document(kind: str, results: KafkaElectionResults) -> Iterator[str]:
    """``ktriage.elect/1`` of a preferred or an unclean election."""
    return document(
        "elect",
        {
            "electionType": kind,
            "counts": {outcome.value: count for outcome, count in results.counts.items()},
            "elections": [_json(election) for election in results.elections],
            "failures": [{**tp_json(e.tp), "reason": e.detail} for e in results.failures],
        },
    )


def _json(election: Election) -> dict[str, object]:
    return {
        **tp_json(election.tp),
        "outcome": election.outcome.value,
        "leader": election.leader,
        "leaderEpoch": election.leader_epoch,
        "inDoubt": election.in_doubt,
        "detail": election.detail,
    }
