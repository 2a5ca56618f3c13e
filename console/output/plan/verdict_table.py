"""What each choice of leader loses of the acknowledged records, as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from console.output.text_table import TextColumn, table
from recovery.acknowledged.verdict import PartitionVerdicts
from recovery.loss import loss
from recovery.model import Lineage, ReplicaLog, Survey, TopicPartition
from recovery.wording.loss_text import short_loss
from recovery.wording.replica_text import STANDING_WORDS
from recovery.wording.verdict_text import short_verdict, verdict_text

COLUMNS = (
    TextColumn("PARTITION"),
    TextColumn("ELECT", right=True),
    TextColumn("OFFSETS LOST"),
    TextColumn("LOSES ACKED"),
    TextColumn("IN FULL", below=True),
)
_CANNOT = " (cannot)"


def verdict_lines(
    surveys: Iterable[Survey], verdicts: Mapping[TopicPartition, PartitionVerdicts]
) -> Iterator[str]:
    """One line for each replica that answered, of partitions that were judged; nothing where none was.

    A replica that the controller would not elect is listed too, and marked: its broker may be unfenced later.
    """
    rows = [
        (
            str(survey.tp),
            f"{broker}{_CANNOT if _obstacle(survey, broker) else ''}",
            short_loss(loss(survey, broker), _last_epoch(survey.log(broker))),
            short_verdict(verdict),
            f"{_obstacle(survey, broker)}{verdict_text(verdict)}",
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


def _obstacle(survey: Survey, broker: int) -> str:
    """Why the controller would not elect the replica, before what the choice would lose; empty if it would."""
    replica = survey.replica(broker)
    if replica is None or replica.electable:
        return ""
    return f"cannot be elected now ({STANDING_WORDS[replica.standing]}); if it could: "


def _last_epoch(log: ReplicaLog | None) -> int | None:
    return log.lineage.last_epoch if log is not None and isinstance(log.lineage, Lineage) else None
