"""What compaction has taken out of a log, which its epochs and its end do not show.

Compaction removes a record once the log holds a newer one of the same key. Where an election truncates the newer
one afterwards, the key is gone from this log, although its epochs and its end are those of a log that holds
everything. So the logs of a compacted topic are compared by what they hold: batch by batch where their headers were
read (a replica's copy of a batch has the same base offset, which compaction keeps), else by their size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class CompactedBatch(NamedTuple):
    """A record batch: offsets ``base`` to ``last``, both inclusive, of which ``records`` are still there.

    ``crc`` is the batch's checksum, which leaves out the leader epoch: two copies with the same one hold the same.
    """

    base: int
    last: int
    records: int
    crc: int


class CompactedLogs(NamedTuple):
    """What the logs of a partition hold whose topic is compacted, or may be: its configuration is not known.

    ``batches`` are those of each broker whose log was read from its start to its end; ``unread`` says why another
    broker's was not. Both are empty before anything is read.
    """

    batches: Mapping[int, tuple[CompactedBatch, ...]]
    unread: Mapping[int, str]


NOT_READ = CompactedLogs({}, {})


def compacted_logs(config: Mapping[str, str] | object) -> CompactedLogs | None:
    """For a topic with that effective configuration; None: it is not compacted.

    Anything but a mapping is a configuration that is not known.
    """
    if isinstance(config, Mapping) and "compact" not in config.get("cleanup.policy", ""):
        return None
    return NOT_READ


def lacking(
    here: Sequence[CompactedBatch], others: Sequence[Sequence[CompactedBatch]], low: int, high: int
) -> int:
    """At most how many records from ``low`` up to ``high`` the ``others`` hold and ``here`` does not."""
    mine = {batch.base: batch for batch in here}
    theirs: dict[int, set[CompactedBatch]] = {}
    for log in others:
        for batch in log:
            if batch.base < high and batch.last >= low and batch != mine.get(batch.base):
                theirs.setdefault(batch.base, set()).add(batch)
    found = 0
    for base, several in theirs.items():
        own = mine.get(base)
        offsets = max(batch.last for batch in several) + 1 - base
        found += min(offsets - (own.records if own else 0), sum(batch.records for batch in several))
    return found
