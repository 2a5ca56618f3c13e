"""The incidents of a history, one partition after the other: what the rules on columns are compared with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple

from deltalake import DeltaTable

from pipeline.history.history_sources import HistorySources
from pipeline.history.timeline import Moment
from pipeline.tables.schemas import PARTITION_STATES

KINDS = ("offline", "under min ISR", "ELR in use")


class Seen(NamedTuple):
    """What a snapshot says of a partition for one kind; ``bad`` None: it does not show it."""

    moment: Moment
    bad: bool | None
    deleted: bool
    row: Mapping[str, Any]
    topic_id: str = ""
    remade: bool = False


def scalar_incidents(sources: HistorySources) -> Iterator[tuple[Any, ...]]:
    """(cluster, topic, partition, kind, began, last seen, ended, at least, at most, outcome, how, topic id)."""
    for cluster_id, one in sources.clusters.items():
        moments = {moment.snapshot: moment for moment in one.timeline.moments}
        table = DeltaTable(f"{one.root.path}/{PARTITION_STATES.name}").to_pyarrow_dataset().to_table()
        rows = [
            row
            for row in table.to_pylist()
            if row["cluster_id"] == cluster_id and row["snapshot"] in moments and row["topic"]
        ]
        rows.sort(key=lambda row: (row["topic"], row["partition"], moments[row["snapshot"]].number))
        for (topic, partition), mine in groupby(rows, lambda row: (row["topic"], row["partition"])):
            by_snapshot = [list(same) for _, same in groupby(mine, lambda row: row["snapshot"])]
            for kind in KINDS:
                line = _topics([_seen(kind, same, moments[same[0]["snapshot"]]) for same in by_snapshot])
                for told in _of_line(kind, line, one.timeline.moments):
                    yield (cluster_id, topic, partition, kind, *told)


def _seen(kind: str, rows: Sequence[Mapping[str, Any]], moment: Moment) -> Seen:
    row, deleted = rows[0], bool(rows[0]["deleted"])
    if len(rows) > 1:
        return Seen(moment, None, deleted, row)
    if deleted:
        return Seen(moment, False, deleted, row)
    if kind == "offline":
        return Seen(moment, row["leader"] == -1, False, row)
    if row["leader"] == -1:
        return Seen(moment, False, False, row)
    if kind == "ELR in use":
        return Seen(moment, bool(row["elr"]), False, row)
    min_isr = row["min_isr"]
    return Seen(moment, None if min_isr is None else len(row["isr"]) < min_isr, False, row)


def _topics(line: Sequence[Seen]) -> list[Seen]:
    """With the topic of each; the row of a partition that is gone has none."""
    topic_id, found = "", []
    for seen in line:
        now = seen.row["topic_id"] or topic_id
        found.append(seen._replace(topic_id=now, remade=topic_id not in ("", now)))
        topic_id = now
    return found


def _of_line(kind: str, line: Sequence[Seen], moments: Sequence[Moment]) -> Iterator[tuple[Any, ...]]:
    place = 0
    while place < len(line):
        first = last = line[place]
        before = line[place - 1] if place else None
        while place + 1 < len(line) and _goes_on(last, line[place + 1]):
            place += 1
            last = line[place]
        place += 1
        if first.bad and not first.deleted:
            after = line[place] if place < len(line) else None
            yield _told(kind, Span(before, first, last, after), moments)


def _goes_on(now: Seen, following: Seen) -> bool:
    same = following.bad == now.bad and following.moment.segment == now.moment.segment
    return same and not following.deleted and not following.remade


class Span(NamedTuple):
    """The first and the last snapshot that show an incident, and what is seen of the partition around them."""

    before: Seen | None
    first: Seen
    last: Seen
    after: Seen | None


def _told(kind: str, span: Span, moments: Sequence[Moment]) -> tuple[Any, ...]:
    before, first, last, after = span
    segment = [moment for moment in moments if moment.segment == last.moment.segment]
    full = next((one for one in segment if one.complete and one.number > last.moment.number), None)
    near = after if after is not None and after.moment.segment == last.moment.segment else None
    # A full snapshot that comes first does not show the partition.
    missed = full is not None and (near is None or full.number < near.moment.number)
    ended: datetime | None = None
    how = None
    if missed:
        assert full is not None
        seen, outcome = full.before, "unknown"
    elif near is None:
        ongoing = after is None and any(moment.last for moment in segment)
        seen, outcome = segment[-1].at, "ongoing" if ongoing else "unknown"
    else:
        seen = near.moment.before
        known = near.remade or near.bad is not None
        outcome = (
            "deleted" if known and (near.remade or near.deleted) else "recovered" if known else "unknown"
        )
        ended = near.moment.at if known else None
        how = _how(last, near) if kind == "offline" and outcome == "recovered" else None
    began = first.moment.at
    sound = _sound_at(before, first)
    assert seen is not None
    least = (seen - began).total_seconds()
    most = None if ended is None or sound is None else (ended - sound).total_seconds()
    return began, seen, ended, least, most, outcome, how, first.topic_id


def _sound_at(before: Seen | None, first: Seen) -> datetime | None:
    """The snapshot before the first, if it is known that it was not so then."""
    if before is not None and before.moment.segment == first.moment.segment:
        return None if before.bad is None and not first.remade else first.moment.before
    return first.moment.before if first.moment.known_before else None


def _how(last: Seen, after: Seen) -> str:
    leader = after.row["leader"]
    if leader in last.row["isr"]:
        return "elected from the ISR"
    return "elected from the ELR" if leader in (last.row["elr"] or ()) else "elected outside ISR and ELR"
