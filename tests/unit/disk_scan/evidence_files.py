"""Results of ``ktriage disk scan --output json``, built for tests."""

from __future__ import annotations

from pathlib import Path

from backends.disk_scan.scan_values import DiskScan, ScannedDir, ScannedLog, scan_lines

READ_MS = 1_795_381_700_000
DIR = "/kafka/0"


def scanned_log(
    topic: str, topic_id: str, spans: tuple[tuple[int, int, int], ...], leader_epoch: int, partition: int = 0
) -> ScannedLog:
    end = spans[-1][2] if spans else 0
    return ScannedLog(
        folder=f"{topic}-{partition}",
        kind="log",
        topic=topic,
        partition=partition,
        topic_id=topic_id,
        log_start=spans[0][1] if spans else 0,
        log_end=end,
        high_watermark=-1,
        recovery_point=-1,
        last_epoch=spans[-1][0] if spans else -1,
        leader_epoch=leader_epoch,
        spans=spans,
        last_timestamp=-1,
        records=end,
        size=100 * end,
        skipped=0,
        segments=1,
        may_be_tiered=False,
        defect=None,
        lost_tail=None,
        remarks=(),
    )


def evidence_file(
    path: Path,
    broker: int,
    cluster_id: str,
    *logs: ScannedLog,
    metadata_end: int = 1 << 40,
    directory: str = "",
) -> Path:
    """Of a disk that holds the metadata log up to ``metadata_end``."""
    metadata = scanned_log("__cluster_metadata", "", ((1, 0, metadata_end),), 1)
    found = ScannedDir(DIR, None, cluster_id, broker, directory, False, (), (metadata, *logs))
    path.write_text("\n".join(scan_lines(DiskScan("host-3", READ_MS, "unflushed", (found,)))))
    return path
