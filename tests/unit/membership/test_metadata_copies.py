"""Copies of the metadata log of several nodes: which is the longest, and what the others lack."""

from __future__ import annotations

from pathlib import Path

from recovery.membership.metadata_copies import MetadataCopy, compare_copies, on_majority
from recovery.model import EpochSpan, Lineage
from tests.unit.cli.command_process import invoke
from tests.unit.disk_scan.log_dirs import add_partition, log_dir, segment_name
from tests.unit.log_segments.segments import batch


def copy(node: int, *spans: tuple[int, int, int]) -> MetadataCopy:
    found = tuple(EpochSpan(*span) for span in spans)
    return MetadataCopy(node, f"/data/{node}", Lineage(found[-1].epoch, found, found[0].start), found[-1].end)


def test_a_later_epoch_is_longer_than_a_higher_end() -> None:
    stale = copy(103, (1, 0, 500))
    best, behind = copy(101, (1, 0, 400), (2, 400, 450)), copy(102, (1, 0, 400), (2, 400, 430))
    compared = compare_copies([stale, behind, best])
    assert [(one.copy.node, one.agrees_to) for one in compared] == [(101, 450), (102, 430), (103, 400)]
    assert on_majority(compared) == 430


def test_without_an_epoch_in_common_nothing_is_claimed() -> None:
    compared = compare_copies([copy(101, (5, 900, 950)), copy(102, (1, 0, 100))])
    assert [one.agrees_to for one in compared] == [950, None]
    assert on_majority(compared) is None


def test_a_scan_of_several_nodes_compares_their_metadata_logs(tmp_path: Path) -> None:
    for node, tail in ((101, batch(40, 20, epoch=3)), (102, b""), (103, batch(40, 5, epoch=2))):
        path = log_dir(tmp_path / str(node), node=node)
        epochs = [(1, 0), (3, 40)] if node == 101 else [(1, 0), (2, 40)] if node == 103 else [(1, 0)]
        add_partition(path, "__cluster_metadata-0", {0: batch(0, 40, epoch=1) + tail}, epochs=epochs)
    ended = invoke(
        tmp_path, "ktriage", "disk", "scan", *(str(tmp_path / str(node)) for node in (101, 102, 103))
    )
    lines = ended.out.splitlines()[-4:]
    assert lines == [
        "  node 101: last epoch 3, log end 60",
        "  node 103: last epoch 2, log end 45; lacks 20 offsets of node 101, from 40 on;"
        " 5 offsets from 40 on are another branch; 1 batch the same by checksum",
        "  node 102: last epoch 1, log end 40; lacks 20 offsets of node 101, from 40 on;"
        " 1 batch the same by checksum",
        "offsets below 40 have the same epochs, and the same batches by their checksums, on 2 of these 3;"
        " what was committed is in no file",
    ]
    segment = tmp_path / "102" / "__cluster_metadata-0" / segment_name(0)
    segment.write_bytes(batch(0, 20, epoch=1) + batch(20, 20, epoch=1, payload=b"others"))
    lines = invoke(
        tmp_path, "ktriage", "disk", "scan", *(str(tmp_path / str(node)) for node in (101, 102))
    ).out.splitlines()
    assert lines[-2:] == [
        "  node 102: last epoch 1, log end 40; lacks 60 offsets of node 101, from 0 on;"
        " 40 offsets from 0 on are another branch; 0 batches the same by checksum",
        "offsets below 0 have the same epochs, and the same batches by their checksums, on 2 of these 2;"
        " what was committed is in no file",
    ], "the epochs are the same, and the records are not"
    one = invoke(tmp_path, "ktriage", "disk", "scan", str(tmp_path / "101"))
    assert "metadata log of" not in one.out
