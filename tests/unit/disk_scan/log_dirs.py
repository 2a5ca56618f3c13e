"""Log dirs of a broker, built for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from struct import pack

from backends.log_segments.segment_reader import SegmentReader
from backends.log_segments.segment_source import SegmentBytes
from tests.unit.log_segments.segments import batch

CLUSTER, DIRECTORY, TOPIC_ID = "4L6g3nShT-eMCtK--X86sw", "pKx3rWm0RqGqkqg2bC0Q3A", "0hT1bLwVQbmRr2dqAjHb1w"


def log_dir(path: Path, node: int = 3) -> Path:
    """A log dir without partitions."""
    path.mkdir()
    ids = f"cluster.id={CLUSTER}\ndirectory.id={DIRECTORY}\nnode.id={node}\n"
    (path / "meta.properties").write_text(f"#\n#Sun Nov 22 18:13:40 UTC 2026\n{ids}version=1\n")
    return path


def segment_name(base: int) -> str:
    return f"{base:020}.log"


def offset_index(segment: bytes, base: int, interval: int = 4096) -> bytes:
    """The ``.index`` that a broker writes: relative offset and byte of a batch, about every ``interval`` bytes."""
    found, since = bytearray(), 0
    for one in SegmentReader(SegmentBytes(segment), check_from=None):
        if since > interval:
            found += pack(">ii", one.header.last_offset - base, one.position)
            since = 0
        since += one.header.size
    return bytes(found)


def add_partition(
    path: Path,
    name: str,
    segments: Mapping[int, bytes],
    *,
    epochs: Sequence[tuple[int, int]] | None = ((0, 0),),
    topic_id: str = TOPIC_ID,
) -> Path:
    folder = path / name
    folder.mkdir()
    for base, data in segments.items():
        (folder / segment_name(base)).write_bytes(data)
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    if epochs is not None:
        lines = [f"{epoch} {start}\n" for epoch, start in epochs]
        (folder / "leader-epoch-checkpoint").write_text(f"0\n{len(lines)}\n" + "".join(lines))
    return folder


def write_offsets(path: Path, name: str, offsets: Mapping[str, int]) -> None:
    """A checkpoint of offsets: ``topic partition`` to offset."""
    lines = [f"{key} {offset}\n" for key, offset in offsets.items()]
    (path / name).write_text(f"0\n{len(lines)}\n" + "".join(lines))


def stale_long_tail(path: Path) -> Path:
    """Broker 2 of the incident: 0 to 999 in epoch 0, 1000 to 1299 in epoch 2."""
    log_dir(path, node=2)
    first = b"".join(batch(base, 100, payload=b"a" * 50) for base in range(0, 1000, 100))
    second = batch(1000, 300, epoch=2, payload=b"b" * 90)
    add_partition(path, "orders-0", {0: first, 1000: second}, epochs=[(0, 0), (2, 1000), (4, 1300)])
    write_offsets(path, "replication-offset-checkpoint", {"orders 0": 1000})
    write_offsets(path, "recovery-point-offset-checkpoint", {"orders 0": 1000})
    return path
