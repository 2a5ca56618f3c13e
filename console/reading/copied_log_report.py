"""What became of a copied metadata log, as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

from backends.base.judged_partitions import CopyUse
from backends.metadata_log.copied_log import CopiedMetadataLog
from recovery.wording.quantity_text import age, counted, printable


def copy_end(copy: CopiedMetadataLog) -> str:
    """Up to when it tells, and how long ago that was."""
    end = datetime.fromtimestamp(copy.end_ms / 1000, UTC)
    old = age(max(0, copy.read_ms - copy.end_ms) / 1000)
    return f"ends at {end:%Y-%m-%d %H:%M:%S} UTC, {old} ago"


def copy_damage(copy: CopiedMetadataLog) -> tuple[str, ...]:
    """Why its reading ended before the end of the files; nothing where it did not."""
    if copy.problem is None:
        return ()
    return (f"was read up to offset {copy.history.end_offset:,}: {copy.problem}",)


def copied_log_lines(use: CopyUse | None) -> Iterator[str]:
    """Why it was needed, how old it is, and for how many partitions it counts."""
    if use is None:
        return
    copy = use.copy
    if not use.needed:
        further = "" if use.live is None else f" further than it goes, though not to its end ({use.live})"
        yield printable(f"{copy.path} was not needed: the active controller's metadata log was read{further}")
        return
    yield printable(f"the active controller's metadata log was not read: {use.live}")
    whose = (
        "" if copy.cluster_id or not use.used else "; that it is of this cluster is known by topic ids only"
    )
    yield printable(
        f"{copy.path} {copy_end(copy)}, and counts for {counted(use.used, 'offline partition')}{whose}"
    )
    if use.refused:
        first = Counter(map(str, use.refused)).most_common(1)[0][0]
        yield printable(
            f"it does not count for {counted(len(use.refused), 'partition')} ({first}): a copy must end after the"
            " partition lost its leader"
        )
    yield from (printable(f"{copy.path} {damage}") for damage in copy_damage(copy))


def copied_log_json(use: CopyUse | None) -> dict[str, object] | None:
    """docs/output.md, "copiedLog"."""
    if use is None:
        return None
    return {
        "path": str(use.copy.path),
        "clusterId": use.copy.cluster_id or None,
        "endMs": use.copy.end_ms,
        "readAtMs": use.copy.read_ms,
        "needed": use.needed,
        "used": use.used,
        "refused": len(use.refused),
        "problem": use.copy.problem,
    }
