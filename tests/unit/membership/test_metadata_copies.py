"""Copies of the metadata log of several nodes: which is the longest, and what the others lack."""

from __future__ import annotations

from pathlib import Path

from tests.unit.cli.command_process import invoke
from tests.unit.disk_scan.log_dirs import add_partition, log_dir, segment_name
from tests.unit.log_segments.segments import batch


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
        " 5 offsets from 40 on are another branch; 1 batch the same by epoch and checksum",
        "  node 102: last epoch 1, log end 40; lacks 20 offsets of node 101, from 40 on;"
        " 1 batch the same by epoch and checksum",
        "offsets below 40 hold the same batches on 2 of these 3; what was committed is in no file",
    ]
    segment = tmp_path / "102" / "__cluster_metadata-0" / segment_name(0)
    segment.write_bytes(batch(0, 20, epoch=1) + batch(20, 20, epoch=1, payload=b"others"))
    lines = invoke(
        tmp_path, "ktriage", "disk", "scan", *(str(tmp_path / str(node)) for node in (101, 102))
    ).out.splitlines()
    assert lines[-1] == (
        "  node 102: last epoch 1, log end 40; SHARES NOTHING with node 101;"
        " 0 batches the same by epoch and checksum"
    ), "the epochs are the same, and the records are not"
    segment.write_bytes(batch(0, 40, epoch=2))
    lines = invoke(
        tmp_path, "ktriage", "disk", "scan", *(str(tmp_path / str(node)) for node in (101, 102))
    ).out.splitlines()
    assert "SHARES NOTHING" in lines[-1], "the same records in another epoch; no checksum covers the epoch"
    one = invoke(tmp_path, "ktriage", "disk", "scan", str(tmp_path / "101"))
    assert "metadata log of" not in one.out
