"""What a run copied of a cluster's metadata log, as text and as JSON (docs/output.md)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from console.operations.history.metadata_log_copy import CopiedRange
from console.output.json_document import document, one_line
from recovery.wording.quantity_text import counted


def copied_line(copied: CopiedRange, title: str, path: Path) -> str:
    """One line: how much, and how far the copy goes now."""
    snapshot = f" and {counted(copied.snapshots, 'snapshot')}" if copied.snapshots else ""
    return (
        f"{counted(copied.offsets, 'record')}{snapshot} of the metadata log of {title} copied to {path}, which goes"
        f" to offset {copied.next_offset:,} now"
    )


def copied_document(copied: CopiedRange, cluster_id: str, path: Path) -> Iterator[str]:
    """``ktriage.metadata-log-copy/1``."""
    return document("metadata-log-copy", copied_fields(copied, cluster_id, path))


def copied_event(copied: CopiedRange, cluster_id: str, path: Path) -> str:
    """The same fields on one line, for a run that goes on."""
    return one_line(copied_fields(copied, cluster_id, path))


def copied_fields(copied: CopiedRange, cluster_id: str, path: Path) -> dict[str, object]:
    return {
        "clusterId": cluster_id,
        "directory": str(path),
        "offsets": copied.offsets,
        "snapshots": copied.snapshots,
        "nextOffset": copied.next_offset,
        "highWatermark": copied.high_watermark,
    }
