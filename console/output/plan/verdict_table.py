"""What each choice of leader loses of the acknowledged records, as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from console.output.text_table import TextColumn, table
from recovery.acknowledged.verdict import PartitionVerdicts
from recovery.loss import loss
from recovery.model import Lineage, ReplicaLog, Survey, TopicPartition
from recovery.wording.loss_text import short_loss
from recovery.wording.verdict_text import short_verdict, verdict_text

COLUMNS = (
    TextColumn("PARTITION"),
    TextColumn("ELECT", right=True),
    TextColumn("LOSES"),
    TextColumn("LOSES ACKED"),
    TextColumn("IN FULL", below=True),
)


def verdict_lines(
    surveys: Iterable[Survey], verdicts: Mapping[TopicPartition, PartitionVerdicts]
) -> Iterator[str]:
    """One line for each replica that answered, of partitions that were judged; nothing where none was."""
    rows = [
        (
            str(survey.tp),
            str(broker),
            short_loss(loss(survey, broker), _last_epoch(survey.log(broker))),
            short_verdict(verdict),
            verdict_text(verdict),
        )
        for survey in surveys
        if (judged := verdicts.get(survey.tp)) is not None
        for broker, verdict in judged.candidates.items()
    ]
    if rows:
        yield ""
        yield (
            "What electing each replica loses; acked: told to a producer with acks=all as written;"
            " committed: consumers could read it"
        )
        yield from table(COLUMNS, rows)


def _last_epoch(log: ReplicaLog | None) -> int | None:
    return log.lineage.last_epoch if log is not None and isinstance(log.lineage, Lineage) else None
