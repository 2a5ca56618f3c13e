"""What the runs of a journal wrote back, and which offsets it was taken from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from console.journal.change_kinds import RESTORE_RECORDS
from console.journal.run_records import EntryBegun, EntryEnded, RunRecord, read_runs
from recovery.loss import count, union, union_by, without
from recovery.model import EpochSpan, TopicPartition
from recovery.rescue_branches import RescueBranch


class RestorePlace(NamedTuple):
    """Records of one partition, and the topic that they are written to (the partition's number stays)."""

    tp: TopicPartition
    topic_id: str
    to_topic: str


class RecordedRestore(NamedTuple):
    """One command that wrote records back, with all of its runs; ``at`` is when the last one began.

    ``records`` stand in the target after it; None: its last run did not record how many. ``whole``: it selected
    everything, and everything was written. ``spans`` are the offsets of the rescue that it chose from.
    """

    at: str
    directory: str
    words: tuple[str, ...]
    target: str
    records: int | None
    whole: bool
    spans: Mapping[RestorePlace, tuple[EpochSpan, ...]]

    def same_offsets(self, place: RestorePlace, spans: Iterable[EpochSpan]) -> int:
        """How many of the offsets in ``spans`` it chose from too, for the same place."""
        return shared(spans, self.spans.get(place, ()))


def shared(spans: Iterable[EpochSpan], others: Iterable[EpochSpan]) -> int:
    """How many offsets of the same epochs are in both."""
    one = union(spans)
    return count(one) - count(without(one, others))


def spans_detail(branches: Iterable[tuple[RescueBranch, str]]) -> list[dict[str, object]]:
    """For the journal: the offsets of each branch, and the topic that its records are written to."""
    return [
        {
            "topic": branch.tp.topic,
            "partition": branch.tp.partition,
            "topicId": branch.topic_id,
            "toTopic": to_topic,
            "epochs": [list(span) for span in branch.spans],
        }
        for branch, to_topic in branches
    ]


def recorded_restores(runs: Iterable[RunRecord]) -> tuple[RecordedRestore, ...]:
    """Every restore that those runs, oldest first, recorded; one that was not sent or wrote nothing is left out."""
    found: dict[tuple[str, ...], RecordedRestore] = {}
    for run in runs:
        for begun, ended in run.entries(RESTORE_RECORDS):
            restore = _restore(begun, ended)
            found[(restore.directory, *restore.words)] = restore
    return tuple(one for one in found.values() if one.records != 0)


def written_back(cluster_id: str) -> Mapping[Path, int]:
    """How many records of which rescues stand in their targets, of those that were written back as a whole. Raises
    JournalError, InputError.
    """
    restores = recorded_restores(read_runs(cluster_id))
    return {Path(one.directory): one.records for one in restores if one.whole and one.records is not None}


def _restore(begun: EntryBegun, ended: EntryEnded | None) -> RecordedRestore:
    detail = begun.detail
    records = None if ended is None else ended.result.get("records")
    words, target = tuple(map(str, detail.get("options", ()))), str(detail.get("target", ""))
    everything = words in (("--to-source",), ("--to-topic", target))
    return RecordedRestore(
        begun.at,
        str(detail.get("directory", "")),
        words,
        target,
        records if isinstance(records, int) else None,
        everything and ended is not None and not ended.refused,
        _spans(detail.get("branches", ())),
    )


def _spans(branches: Iterable[Mapping[str, Any]]) -> dict[RestorePlace, tuple[EpochSpan, ...]]:
    return union_by(map(_placed, branches))


def _placed(branch: Mapping[str, Any]) -> tuple[RestorePlace, list[EpochSpan]]:
    tp = TopicPartition(str(branch["topic"]), int(branch["partition"]))
    place = RestorePlace(tp, str(branch["topicId"]), str(branch["toTopic"]))
    return place, [EpochSpan(*map(int, span)) for span in branch["epochs"]]
