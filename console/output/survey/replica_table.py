"""Partitions and replica logs as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from backends.base.answers import Contact
from console.output.text_table import TextColumn, table
from recovery.model import Lineage, Replica, Survey, Unknown
from recovery.wording.quantity_text import human_bytes, ids, offset, printable
from recovery.wording.replica_text import disk_text, elr_text, replica_sets

SPANS_SHOWN = 3

COLUMNS = (
    TextColumn("PARTITION"),
    TextColumn("BROKER", right=True),
    TextColumn("IN"),
    TextColumn("CONTROLLER SAYS"),
    TextColumn("LAST EPOCH", right=True),
    TextColumn("LOG END", right=True),
    TextColumn("LOG START", right=True),
    TextColumn("HIGH WATERMARK", right=True, below=True),
    TextColumn("LEADER EPOCH", right=True, below=True),
    TextColumn("EPOCHS", below=True),
    TextColumn("SIZE", right=True, below=True),
    TextColumn("LOG DIR", below=True),
    TextColumn("LEARNT BY", below=True),
    TextColumn("NOT LEARNT", below=True),
)


def replica_table(surveys: Iterable[Survey], contacts: Sequence[Contact]) -> Iterator[str]:
    """One line for each replica. The last column says why a value is missing."""
    calls = {contact.broker: contact.call for contact in contacts}
    rows = [_cells(survey, replica, calls) for survey in surveys for replica in survey.replicas]
    return table(COLUMNS, rows)


def _cells(survey: Survey, replica: Replica, calls: Mapping[int, str]) -> tuple[str, ...]:
    log = replica.log
    start = (
        str(survey.tp),
        str(replica.broker),
        "+".join(replica_sets(survey.state, replica.broker)) or "-",
        replica.standing.value,
    )
    if isinstance(log, Unknown):
        return (*start, *[""] * 9, printable(str(log)))
    lineage = log.lineage
    return (
        *start,
        _epoch(lineage.last_epoch) if isinstance(lineage, Lineage) else "?",
        offset(log.log_end_offset),
        offset(log.log_start_offset),
        offset(log.high_watermark),
        str(log.leader_epoch),
        _spans(lineage) if isinstance(lineage, Lineage) else "?",
        human_bytes(log.size, unknown=""),
        log.log_dir,
        calls.get(replica.broker, "") if replica.disk_read_ms is None else disk_text(replica.disk_read_ms),
        "" if isinstance(lineage, Lineage) else printable(f"epochs: {lineage}"),
    )


def partition_lines(surveys: Iterable[Survey]) -> Iterator[str]:
    """One line per partition: leader, epoch, and the sets."""
    columns = (
        TextColumn("PARTITION"),
        TextColumn("LEADER", right=True),
        TextColumn("LEADER EPOCH", right=True),
        TextColumn("REPLICAS"),
        TextColumn("ISR"),
        TextColumn("ELR"),
        TextColumn("LAST KNOWN ELR"),
        TextColumn("MIN ISR"),
        TextColumn("REASSIGNING", below=True),
    )
    rows = []
    for survey in surveys:
        state = survey.state
        rows.append(
            (
                str(state.tp),
                "none" if state.offline else str(state.leader),
                str(state.leader_epoch),
                ids(state.replicas),
                ids(state.isr),
                elr_text(state.elr),
                elr_text(state.last_known_elr),
                known(survey.min_isr),
                _in_brief(survey.reassigning),
            )
        )
    return table(columns, rows)


def _in_brief(value: bool | Unknown) -> str:
    """Whether it is so. Why that is not known can fill lines, and is told once for all partitions."""
    return str(value.why) if isinstance(value, Unknown) else known(value)


def contact_lines(contacts: Iterable[Contact]) -> Iterator[str]:
    """The brokers that did not answer, with the address that was tried and the reason."""
    for contact in contacts:
        if contact.problem is not None:
            problem = printable(str(contact.problem))
            named = contact.address in problem
            yield problem if named else f"broker {contact.broker} at {contact.address}: {problem}"


def known(value: int | bool | Unknown) -> str:
    """The value, or why it is not known."""
    if isinstance(value, Unknown):
        return printable(str(value))
    if isinstance(value, bool):
        return "yes" if value else ""
    return str(value)


def _epoch(value: int) -> str:
    return str(value) if value >= 0 else "none"


def _spans(lineage: Lineage) -> str:
    shown = lineage.spans[-SPANS_SHOWN:]
    earlier = "… " if len(lineage.spans) > len(shown) or (shown and lineage.floor < shown[0].start) else ""
    return earlier + " ".join(f"{s.epoch}:{s.start}-{s.end}" for s in shown) if shown else "empty"
