"""What elections did to consumer groups and transactions, as a part of ``ktriage verify``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from console.operations.consumers.election_aftermath import ElectionAftermath
from console.operations.consumers.group_offsets import GroupOffset
from console.output.groups_report import group_table, offset_json
from console.output.transactions_report import endings_text, transaction_json, transaction_table
from recovery.model import Unknown
from recovery.wording.quantity_text import counted, printable

UNREAD_SHOWN = 5


def aftermath_lines(aftermath: ElectionAftermath, limit: int) -> Iterator[str]:
    """The groups that are affected and the transactions that hang, and what could not be read of either."""
    groups, transactions = aftermath.groups, aftermath.transactions
    if not isinstance(groups, Unknown) and groups.rows:
        affected = aftermath.affected
        yield f"{counted(len(groups.rows), 'committed offset')} of consumer groups: {_affected_text(affected)}"
        if affected:
            yield from group_table(affected, groups, limit)
    yield from _unread(aftermath.groups_unread, "other groups may be affected")
    if not isinstance(transactions, Unknown) and transactions.rows:
        hanging = aftermath.hanging
        yield f"{counted(len(transactions.rows), 'open transaction')}: {endings_text(transactions.rows)}"
        if hanging:
            yield from transaction_table(hanging, transactions, limit)
    yield from _unread(aftermath.transactions_unread, "other transactions may hang")


def _affected_text(affected: Sequence[GroupOffset]) -> str:
    """Such as ``2 affected (last record read: 2 on the branch that is cut off), 1 not known``."""
    places = Counter(str(row.judgement.place) for row in affected if not isinstance(row.judgement, Unknown))
    number = sum(places.values())
    where = ", ".join(f"{count:,} {place}" for place, count in places.items())
    known = f"{number:,} affected{f' (last record read: {where})' if places else ''}"
    return known if number == len(affected) else f"{known}, {len(affected) - number:,} not known"


def _unread(reasons: tuple[str, ...], what: str) -> Iterator[str]:
    for reason in reasons[:UNREAD_SHOWN]:
        yield f"{what}: {printable(reason)}"
    if len(reasons) > UNREAD_SHOWN:
        yield f"… and for {len(reasons) - UNREAD_SHOWN:,} more reasons"


def aftermath_json(aftermath: ElectionAftermath) -> dict[str, object]:
    """``groupOffsets`` and ``hangingTransactions`` of ``ktriage.verify/1``, each with what was not read."""
    groups, transactions = aftermath.groups, aftermath.transactions
    return {
        "groupOffsets": []
        if isinstance(groups, Unknown)
        else [offset_json(row, groups) for row in aftermath.affected],
        "groupsUnread": list(aftermath.groups_unread),
        "hangingTransactions": []
        if isinstance(transactions, Unknown)
        else [transaction_json(row, transactions) for row in aftermath.hanging],
        "transactionsUnread": list(aftermath.transactions_unread),
    }
