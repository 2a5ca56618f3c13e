"""What became of elections and of other changes, by the lines of the journal."""

from __future__ import annotations

from collections.abc import Iterator

from console.journal.change_kinds import kind_of
from console.journal.planned_elections import PlannedElection, planned_elections
from console.journal.run_records import EntryBegun, EntryEnded
from recovery.model import NO_LEADER
from recovery.wording.loss_text import range_text
from recovery.wording.quantity_text import counted, more, printable

SHOWN = 10
"""So many partitions of a run are named; the others are counted."""


def elections_lines(begun: EntryBegun, ended: EntryEnded | None) -> Iterator[str]:
    """What was to be elected and by which plan, then a line for each partition, the largest losses first."""
    elections = planned_elections(begun, ended)
    by = plan_name(begun)
    yield printable(
        f"  {begun.at} elections of {counted(len(elections), 'partition')}{f' by {by}' if by else ''}"
    )
    for election in worst_elections(elections)[:SHOWN]:
        yield printable(f"    {election.tp}: {election_text(election)}")
    yield from more(len(elections) - SHOWN, " (--output json shows all)", "    ")


def plan_name(begun: EntryBegun) -> str:
    """The plan of an entry, such as ``recovery.json (plan 5f2c…, strategy balanced)``; "" where there was none."""
    detail = begun.detail
    if not detail.get("planId"):
        return ""
    file = detail.get("file") or "a plan that was not saved"
    return f"{file} (plan {detail['planId']}, strategy {detail.get('strategy', '?')})"


def worst_elections(elections: tuple[PlannedElection, ...]) -> list[PlannedElection]:
    """Those with the largest known loss first, then those without a bound."""
    return sorted(elections, key=lambda one: (-one.at_least, one.at_most is not None, one.tp))


def election_text(election: PlannedElection) -> str:
    """One election, without its partition: ``no leader -> 2 (elected, epoch 5); loses 300 offsets; …``."""
    parts = [f"{_led(election.leader_before)} -> {_new_leader(election)}"]
    if election.planned_leader != NO_LEADER:
        parts.append(f"offsets lost: {range_text(election.at_least, election.at_most)}")
        parts.append(f"acknowledged lost: {election.acknowledged or 'not judged'}")
    return "; ".join(parts)


def _new_leader(election: PlannedElection) -> str:
    planned = election.planned_leader
    if not election.outcome:
        return f"{_led(planned)} was planned, the result is not known"
    epoch = f", epoch {election.leader_epoch}" if election.leader_epoch >= 0 else ""
    other = "" if planned in (NO_LEADER, election.leader) else f", {planned} was planned"
    return f"{_led(election.leader)} ({election.outcome}{epoch}{other})"


def _led(leader: int) -> str:
    return "no leader" if leader == NO_LEADER else str(leader)


def fix_lines(begun: EntryBegun, ended: EntryEnded | None) -> Iterator[str]:
    """What an entry put right, in lines of a journal, the first :data:`SHOWN`."""
    kind = kind_of(begun.action)
    rows = list(kind.rows(begun, ended))
    for row in rows[:SHOWN]:
        yield printable(f"    {kind.row_line.format(*row)}")
    yield from more(len(rows) - SHOWN, " (--output json shows all)", "    ")
