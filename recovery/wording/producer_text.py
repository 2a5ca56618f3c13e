"""Producers whose last batches were cut off, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from recovery.transactions.producer_sequences import CutOffProducer, RefusedProducer
from recovery.wording.quantity_text import counted, more, some_of

SHOWN = 20

WHAT_THEY_DO = (
    "librdkafka's idempotent producer (2.x, tried) ends with a fatal error then, and its application has to be"
    " restarted; Java's begins a new producer epoch by itself"
)


def refused_producer_lines(producers: Sequence[RefusedProducer], shown: int = SHOWN) -> Iterator[str]:
    """Which producers the new leaders refuse, and what that means for their applications; nothing where none is."""
    if not producers:
        return
    ids = {one.cut_off.producer_id for one in producers}
    yield (
        f"{counted(len(ids), 'idempotent producer')} whose last batches were cut off: if it still runs, its next"
        f" batch is refused (OUT_OF_ORDER_SEQUENCE_NUMBER). {WHAT_THEY_DO}:"
    )
    rows = producers[: shown or None]
    for one in rows:
        cut, leader = one.cut_off, one.leader
        kind = "transactional, " if cut.transactional else ""
        same = "" if leader.epoch == cut.epoch else f" of epoch {leader.epoch}"
        yield (
            f"  {cut.tp}: producer id {cut.producer_id} ({kind}epoch {cut.epoch}) had written up to sequence"
            f" {cut.last_sequence:,}, the leader has it up to {leader.last_sequence:,}{same};"
            f" {counted(cut.records, 'record')} cut off"
        )
    yield from more(len(producers) - len(rows), indent="  ")


def tail_producer_lines(branches: Iterable[Sequence[CutOffProducer]]) -> Iterator[str]:
    """Which producers may be refused once these tails are cut off; one line, nothing where there is none."""
    ids = sorted({one.producer_id for branch in branches for one in branch if not one.transactional})
    if ids:
        yield (
            f"{counted(len(ids), 'idempotent producer')} wrote in the tails (ids {some_of(ids)}). Where an election"
            " cuts their last batches off, the new leader refuses the next batch (OUT_OF_ORDER_SEQUENCE_NUMBER):"
            f" {WHAT_THEY_DO}. ktriage verify PLAN --rescue DIR names them after the election."
        )
