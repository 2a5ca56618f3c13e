"""Applying a plan as text and as JSON, and what it means for consumers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from console.jobs.consumers.election_aftermath import ElectionAftermath
from console.jobs.consumers.group_offsets import GroupOffset
from console.jobs.consumers.groups_report import offset_fields, offsets_json
from console.jobs.consumers.transactions_report import endings_text, transaction_fields
from console.jobs.elect.apply_plan import Applied
from console.jobs.elect.plan_json import elected_json, failures_json, plan_head, summary_json
from console.jobs.elect.plan_table import RESULT, elected_lines, plan_lines
from console.jobs.elect.preserved_logs import preserved_json, preserved_lines
from console.jobs.rescue.rescue_report import rescue_lines, rescued_fields
from console.output.json_document import document
from console.reading.consumer_reading import consumer_json, consumer_lines
from console.reading.plan_comparison import PreparedPlan
from console.reading.survey_json import tp_json
from console.reading.unread_disks_json import unread_brokers_json
from recovery.model import Unknown
from recovery.plan.judgement import Judgement, RowDecision
from recovery.plan.plan_review import summarise
from recovery.wording.producer_text import refused_producer_lines
from recovery.wording.quantity_text import counted, more, printable
from recovery.wording.unread_disk_text import unread_broker_lines
from widgets.fields import Field, data_field, json_of, partition_fields, text_rows


def prepared_lines(prepared: PreparedPlan, limit: int) -> Iterator[str]:
    """How many rows of the plan can still be applied, and what its elections would lose."""
    yield check_counts(prepared.checks)
    yield from others_lines(prepared.checks)
    for check in prepared.checks[: limit or None]:
        for note in check.notes:
            yield f"note: {check.tp}: {printable(note)}"
    refused = prepared.refused
    if refused:
        yield ""
        yield from text_rows(CHECK, refused, limit=limit, rest="")
    if prepared.holding.rows:
        yield ""
        yield from plan_lines(prepared.holding, limit, native=prepared.native)


def check_counts(checks: tuple[Judgement, ...]) -> str:
    """How many rows may be applied, and why the others may not."""
    counts = {one: sum(1 for check in checks if check.decision is one) for one in RowDecision}
    return f"{counted(len(checks), 'partition')} of the plan: " + ", ".join(
        f"{count:,} {decision}" for decision, count in counts.items() if count
    )


def others_lines(checks: Iterable[Judgement]) -> Iterator[str]:
    """A warning where rows show that somebody else has changed their partitions since the plan was made."""
    count = sum(check.others_at_work for check in checks)
    if count:
        yield (
            f"{counted(count, 'partition')} changed since the plan was made: somebody else may be at work on"
            " this cluster (ktriage journal shows the runs that share this state directory, and no others)"
        )


CHECK: tuple[Field[Judgement], ...] = (
    *partition_fields(lambda c: c.tp),
    Field("now", "NOW", lambda c: c.decision.value, lambda c: str(c.decision)),
    Field("reason", "REASON", lambda c: c.reason.value, lambda c: str(c.reason)),
    Field("detail", "WHY", lambda c: c.detail, lambda c: printable(c.detail), below=True),
    data_field("notes", lambda c: list(c.notes)),
)
"""A row of the plan against the cluster, with what moved."""
check_json = json_of(CHECK)


def applied_lines(applied: Applied, limit: int) -> Iterator[str]:
    """The results of the elections, and before them what was read first; where a consumer contradicts, that first
    of all.
    """
    if applied.consumer is not None:
        yield from consumer_lines(applied.consumer, limit)
    if applied.rescued is not None:
        yield ""
        yield from rescue_lines(applied.rescued, limit)
    if applied.elected is None:
        if applied.rescued is not None:
            left_out = tuple(check for check in applied.prepared.checks if not check.holds)
            yield ""
            yield "compared again after the rescue:"
            yield from text_rows(CHECK, left_out, limit=limit, rest="")
        yield "nothing was sent"
        return
    yield ""
    yield from elected_lines(applied.elected, limit)
    if applied.preserved is not None:
        yield from map(printable, preserved_lines(applied.preserved))
    yield from unread_broker_lines(applied.prepared.plan.rows, applied.unread)


def applied_document(command: str, applied: Applied) -> Iterator[str]:
    """``ktriage.apply/2``, and ``ktriage.elect/3`` for elections from a file."""
    prepared, elected = applied.prepared, applied.elected
    return document(
        command,
        {
            "plan": plan_head(prepared.plan),
            "counts": {
                "checked": {decision.value: count for decision, count in prepared.counts.items()},
                **summary_json(summarise(prepared.holding)),
            },
            "checks": list(map(check_json, prepared.checks)),
            "rehearsal": list(prepared.rehearsal),
            "elected": elected_json(elected) if elected is not None else None,
            "elections": list(map(json_of(RESULT), elected.results)) if elected is not None else [],
            "failures": failures_json(applied.failures),
            "rescue": rescued_fields(applied.rescued) if applied.rescued is not None else None,
            "keptLogs": preserved_json(applied.preserved) if applied.preserved is not None else None,
            "unreadDisks": unread_brokers_json(applied.unread),
            "consumer": consumer_json(applied.consumer),
        },
    )


UNREAD_SHOWN = 5


def aftermath_lines(aftermath: ElectionAftermath, limit: int, *, loses: bool = False) -> Iterator[str]:
    """The groups that are affected, the transactions that hang, the producers that are refused, and what could not
    be read of them. ``loses``: the elections may have cut off something.
    """
    groups, transactions = aftermath.groups, aftermath.transactions
    if not isinstance(groups, Unknown) and groups.rows:
        affected = aftermath.affected
        yield f"{counted(len(groups.rows), 'committed offset')} of consumer groups: {_affected_text(affected)}"
        if affected:
            yield from text_rows(offset_fields(groups), affected, limit=limit)
    yield from _unread(aftermath.groups_unread, "other groups may be affected")
    if not isinstance(transactions, Unknown) and transactions.rows:
        hanging = aftermath.hanging
        yield f"{counted(len(transactions.rows), 'open transaction')}: {endings_text(transactions.rows)}"
        if hanging:
            yield from text_rows(transaction_fields(transactions), hanging, limit=limit)
    yield from _unread(aftermath.transactions_unread, "other transactions may hang")
    if isinstance(aftermath.producers, Unknown):
        if loses:
            why = printable(aftermath.producers.detail)
            yield f"idempotent producers whose last batches were cut off: not known ({why})"
    else:
        yield from refused_producer_lines(aftermath.producers.rows, limit)
        yield from _unread(aftermath.producers.unread, "other producers may be refused")


def _affected_text(affected: Sequence[GroupOffset]) -> str:
    """Such as ``2 affected (last record read: 2 on the branch that is cut off), 1 not known``."""
    places = Counter(str(row.judgement.place) for row in affected if not isinstance(row.judgement, Unknown))
    number = sum(places.values())
    where = ", ".join(f"{count:,} {place}" for place, count in places.items())
    known = f"{number:,} affected{f' (last record read: {where})' if places else ''}"
    return known if number == len(affected) else f"{known}, {len(affected) - number:,} not known"


def _unread(reasons: tuple[str, ...], what: str) -> Iterator[str]:
    yield from (f"{what}: {printable(reason)}" for reason in reasons[:UNREAD_SHOWN])
    yield from more(len(reasons) - UNREAD_SHOWN, noun="reason")


def aftermath_json(aftermath: ElectionAftermath) -> dict[str, object]:
    """``groupOffsets`` and ``hangingTransactions`` of ``ktriage.verify/3``, each with what was not read."""
    groups, transactions = aftermath.groups, aftermath.transactions
    return {
        "groupOffsets": [] if isinstance(groups, Unknown) else list(offsets_json(aftermath.affected, groups)),
        "groupsUnread": list(aftermath.groups_unread),
        "hangingTransactions": []
        if isinstance(transactions, Unknown)
        else list(map(json_of(transaction_fields(transactions)), aftermath.hanging)),
        "transactionsUnread": list(aftermath.transactions_unread),
        "refusedProducers": []
        if isinstance(aftermath.producers, Unknown)
        else [
            {
                **tp_json(one.cut_off.tp),
                "producerId": one.cut_off.producer_id,
                "epoch": one.cut_off.epoch,
                "lastSequence": one.cut_off.last_sequence,
                "records": one.cut_off.records,
                "lastMs": one.cut_off.last_ms,
                "transactional": one.cut_off.transactional,
                "leaderHasEpoch": one.leader.epoch,
                "leaderHasSequence": one.leader.last_sequence,
            }
            for one in aftermath.producers.rows
        ],
        "producersUnread": [str(aftermath.producers)]
        if isinstance(aftermath.producers, Unknown)
        else list(aftermath.producers.unread),
    }
