"""Log dirs as a broker leaves them: whole, torn, damaged, moved, deleted; read without a change."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from backends.disk_scan.log_dir_scan import scan_log_dirs
from backends.disk_scan.scan_script import scan_script
from backends.disk_scan.scan_values import DiskScan, ScanDepth, ScannedLog, scan_lines
from tests.unit.disk_scan.log_dirs import (
    CLUSTER,
    DIRECTORY,
    TOPIC_ID,
    add_partition,
    log_dir,
    segment_name,
    stale_long_tail,
    write_offsets,
)
from tests.unit.log_segments.segments import batch


def scan(*paths: Path, checksums: str = "unflushed") -> DiskScan:
    return scan_log_dirs([str(path) for path in paths], "host-3", 1_795_381_700_000, ScanDepth(checksums))


def only_log(path: Path, checksums: str = "unflushed") -> ScannedLog:
    ((log,),) = [found.logs for found in scan(path, checksums=checksums).dirs]
    return log


def test_a_dead_brokers_dir_says_whose_it_is_and_where_its_logs_end(tmp_path: Path) -> None:
    (found,) = scan(stale_long_tail(tmp_path / "data")).dirs
    assert (found.cluster_id, found.node_id, found.directory_id) == (CLUSTER, 2, DIRECTORY)
    assert (found.clean_shutdown, found.problem, found.remarks) == (False, None, ())
    (log,) = found.logs
    assert (log.topic, log.partition, log.topic_id, log.kind) == ("orders", 0, TOPIC_ID, "log")
    assert (log.log_start, log.log_end, log.high_watermark) == (0, 1300, 1000)
    assert log.spans == ((0, 0, 1000), (2, 1000, 1300))
    assert (log.last_epoch, log.leader_epoch) == (2, 4)
    assert (log.defect, log.lost_tail, log.remarks, log.records) == (None, None, (), 1300)


def test_a_clean_stop_leaves_its_file(tmp_path: Path) -> None:
    stale_long_tail(tmp_path / "data")
    (tmp_path / "data" / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":9}')
    assert scan(tmp_path / "data").dirs[0].clean_shutdown


def test_nothing_in_the_dirs_is_changed(tmp_path: Path) -> None:
    path = stale_long_tail(tmp_path / "data")

    def state() -> list[tuple[str, int, str]]:
        files = sorted(file for file in path.rglob("*") if file.is_file())
        return [
            (str(file), file.stat().st_mtime_ns, hashlib.sha256(file.read_bytes()).hexdigest())
            for file in files
        ]

    before = state()
    for file in path.rglob("*"):
        file.chmod(0o500 if file.is_dir() else 0o400)
    path.chmod(0o500)
    scan(path)
    assert state() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["data"]
    for file in (path, *path.rglob("*")):
        file.chmod(0o700)


# Tails.


@pytest.mark.parametrize(
    ("name", "tail", "kind"),
    [
        (
            "the last batch was not written to its end",
            batch(1300, epoch=2, payload=b"x" * 50)[:-9],
            "cut short",
        ),
        ("zeros after a power loss", bytes(4096), "zeros"),
        ("a damaged batch", batch(1300, epoch=2, payload=b"x")[:-1] + b"y", "wrong checksum"),
        ("an epoch that goes back", batch(1300, epoch=1), "out of order"),
    ],
)
def test_a_log_ends_where_its_whole_batches_end(tmp_path: Path, name: str, tail: bytes, kind: str) -> None:
    path = stale_long_tail(tmp_path / "data")
    segment = path / "orders-0" / segment_name(1000)
    size = segment.stat().st_size
    with segment.open("ab") as file:
        file.write(tail)
    log = only_log(path)
    assert log.log_end == 1300
    assert log.defect is not None
    assert (log.defect.kind, log.defect.offset, log.defect.position) == (kind, 1300, size)
    assert log.lost_tail == log.defect.text


def test_only_what_was_not_flushed_is_checked_unless_all_is_asked_for(tmp_path: Path) -> None:
    path = stale_long_tail(tmp_path / "data")
    segment = path / "orders-0" / segment_name(0)
    data = bytearray(segment.read_bytes())
    data[70] ^= 1
    segment.write_bytes(data)
    assert only_log(path).defect is None
    log = only_log(path, "all")
    assert (log.log_end, log.defect and log.defect.kind) == (0, "wrong checksum")
    assert log.defect is not None
    assert log.defect.segments_after == 1


@pytest.mark.parametrize(
    ("checkpoint", "text"),
    [
        ("replication-offset-checkpoint", "below its high watermark 1400"),
        ("recovery-point-offset-checkpoint", "was flushed up to 1400"),
    ],
)
def test_a_checkpoint_beyond_the_end_shows_that_a_tail_was_lost(
    tmp_path: Path, checkpoint: str, text: str
) -> None:
    path = stale_long_tail(tmp_path / "data")
    write_offsets(path, checkpoint, {"orders 0": 1400})
    lost = only_log(path).lost_tail
    assert lost is not None
    assert text in lost


def test_an_epoch_that_began_beyond_the_end_shows_that_a_tail_was_lost(tmp_path: Path) -> None:
    log_dir(tmp_path / "data")
    add_partition(tmp_path / "data", "t-0", {0: batch(0, 5)}, epochs=[(0, 0), (3, 9)])
    assert only_log(tmp_path / "data").lost_tail == "it ends at 5, and leader epoch 3 began at 9"


# Beginnings, holes and epochs.


def test_deleted_records_raise_the_log_start(tmp_path: Path) -> None:
    path = stale_long_tail(tmp_path / "data")
    write_offsets(path, "log-start-offset-checkpoint", {"orders 0": 1100})
    log = only_log(path)
    assert (log.log_start, log.spans) == (1100, ((2, 1100, 1300),))


def test_a_log_start_below_the_first_segment_is_a_mark_of_tiered_storage(tmp_path: Path) -> None:
    path = stale_long_tail(tmp_path / "data")
    (path / "orders-0" / segment_name(0)).unlink()
    write_offsets(path, "log-start-offset-checkpoint", {"orders 0": 400})
    log = only_log(path)
    assert (log.log_start, log.may_be_tiered) == (1000, True)


def test_a_log_whose_records_are_all_deleted_remembers_its_epoch(tmp_path: Path) -> None:
    log_dir(tmp_path / "data")
    add_partition(tmp_path / "data", "t-0", {700: b""}, epochs=[(5, 700)])
    log = only_log(tmp_path / "data")
    assert (log.log_start, log.log_end, log.spans, log.last_epoch) == (700, 700, (), 5)
    assert log.lost_tail is None


def test_where_compaction_left_a_hole_the_checkpoint_tells_where_an_epoch_began(tmp_path: Path) -> None:
    log_dir(tmp_path / "data")
    data = batch(0, 2, delta=9) + batch(30, 1, epoch=2)
    folder = add_partition(tmp_path / "data", "t-0", {0: data}, epochs=[(0, 0), (2, 20)])
    assert only_log(tmp_path / "data").spans == ((0, 0, 20), (2, 20, 31))
    (folder / "leader-epoch-checkpoint").unlink()
    log = only_log(tmp_path / "data")
    assert log.spans == ((0, 0, 30), (2, 30, 31))
    assert "no leader-epoch-checkpoint" in log.remarks[0]


def test_a_copy_of_a_compacted_log_has_its_first_epoch_from_its_start_on(tmp_path: Path) -> None:
    """The leader's first batches were compacted away before the copy was made: no epoch is known for them."""
    log_dir(tmp_path / "data")
    add_partition(tmp_path / "data", "t-0", {0: batch(40, 5, epoch=2)}, epochs=[(2, 40)])
    log = only_log(tmp_path / "data")
    assert (log.log_start, log.spans, log.remarks) == (0, ((2, 0, 45),), ())


def test_a_checkpoint_that_contradicts_the_batches_is_told_and_not_believed(tmp_path: Path) -> None:
    path = stale_long_tail(tmp_path / "data")
    (path / "orders-0" / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n3 900\n")
    log = only_log(path)
    assert log.spans == ((0, 0, 1000), (2, 1000, 1300))
    assert log.remarks == ("its leader-epoch-checkpoint differs from the epochs of its batches",)


@pytest.mark.parametrize("text", ["1\n0\n", "0\n2\n0 0\n", "0\n1\nx y\n", "0\n2\n3 0\n1 5\n", "\0" * 40])
def test_a_damaged_checkpoint_is_told(tmp_path: Path, text: str) -> None:
    path = stale_long_tail(tmp_path / "data")
    (path / "orders-0" / "leader-epoch-checkpoint").write_text(text)
    log = only_log(path)
    assert log.spans == ((0, 0, 1000), (2, 1000, 1300))
    assert len(log.remarks) == 2


# What lies beside the replicas.


def test_future_deleted_and_stray_copies_are_named(tmp_path: Path) -> None:
    path = stale_long_tail(tmp_path / "data")
    mark = "0123456789abcdef0123456789abcdef"
    for kind in ("future", "delete", "stray"):
        add_partition(path, f"orders-0.{mark}-{kind}", {0: batch(0, 7)})
    (path / "lost+found").mkdir()
    (path / "orders-1").write_text("a file")
    logs = scan(path).dirs[0].logs
    assert {log.kind: log.log_end for log in logs} == {"log": 1300, "future": 7, "deleted": 7, "stray": 7}
    assert all(log.high_watermark == -1 for log in logs if log.kind != "log")


def test_a_folder_without_a_segment_is_no_empty_log(tmp_path: Path) -> None:
    log_dir(tmp_path / "data")
    add_partition(tmp_path / "data", "t-0", {}, epochs=None)
    log = only_log(tmp_path / "data")
    assert (log.log_start, log.log_end, log.last_epoch) == (0, 0, -1)
    assert log.lost_tail == "it has no segment: what it held is not known"


def test_a_log_dir_that_lost_its_identity_is_read_and_other_folders_are_not_taken_for_partitions(
    tmp_path: Path,
) -> None:
    for name in ("dbus-1", "log-dir-1"):
        (tmp_path / "d3" / name).mkdir(parents=True)
    path = stale_long_tail(tmp_path / "d3" / "log-dir-0")
    (above,) = scan(tmp_path / "d3").dirs
    assert not above.logs and above.problem == (
        "is no log dir: it has no meta.properties and no partition with a segment; a log dir lies below it:"
        f" {path}"
    )
    (path / "meta.properties").unlink()
    (found,) = scan(path).dirs
    assert found.problem is None and [log.log_end for log in found.logs] == [1300]


def test_bad_dirs_get_one_clear_line_and_do_not_stop_the_others(tmp_path: Path) -> None:
    good = stale_long_tail(tmp_path / "data")
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    found = scan(tmp_path / "nothing", tmp_path / "file", tmp_path / "empty", tmp_path, good).dirs
    problems = [one.problem for one in found]
    assert problems[4] is None
    assert len(found[4].logs) == 1
    assert problems[:3] == [
        "cannot be listed: No such file or directory",
        "cannot be listed: Not a directory",
        "is no log dir: it has no meta.properties and no partition with a segment",
    ]
    assert problems[3] is not None
    assert f"a log dir lies below it: {good}" in problems[3]


def test_a_dir_whose_folders_may_not_be_looked_into_gets_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_path: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    path = stale_long_tail(tmp_path / "data")
    monkeypatch.setattr(Path, "is_dir", refuse)
    assert scan(path).dirs[0].problem == "cannot be listed: Permission denied"


def test_a_segment_that_is_a_fifo_blocks_nothing(tmp_path: Path) -> None:
    log_dir(tmp_path / "data")
    folder = add_partition(tmp_path / "data", "t-0", {})
    os.mkfifo(folder / segment_name(0))
    log = only_log(tmp_path / "data")
    assert log.defect is not None
    assert (log.defect.kind, log.log_end) == ("unreadable", -1)


# Hostile files.


def test_mutated_dirs_never_stop_a_scan_and_never_gain_a_record(tmp_path: Path) -> None:
    source = random.Random(11)
    path = stale_long_tail(tmp_path / "data")
    files = [file for file in sorted(path.rglob("*")) if file.is_file()]
    whole = {file: file.read_bytes() for file in files}
    for _ in range(300):
        file = source.choice(files)
        data = bytearray(whole[file])
        for _ in range(source.randrange(1, 4)):
            at = source.randrange(len(data) + 1)
            match source.randrange(4):
                case 0:
                    del data[at:]
                case 1 if at < len(data):
                    data[at] ^= 1 << source.randrange(8)
                case 2:
                    data[at:at] = source.randbytes(source.randrange(30))
                case _:
                    data += bytes(source.randrange(90))
        file.write_bytes(data)
        found = scan(path, checksums="all")
        for log in found.dirs[0].logs:
            ends = [0 if not log.spans else log.spans[0][1]]
            for _, start, end in log.spans:
                assert start == ends[-1] < end
                ends.append(end)
            assert log.records is not None
            assert log.records <= 1300
        json.loads("\n".join(scan_lines(found)))
        file.write_bytes(whole[file])


# The script.


def test_the_script_gives_the_same_json_under_an_isolated_interpreter(tmp_path: Path) -> None:
    path = stale_long_tail(tmp_path / "data")
    with (path / "orders-0" / segment_name(1000)).open("ab") as file:
        file.write(b"".join(batch(base, epoch=2, payload=bytes(5000)) for base in range(1300, 1320)))
        file.write(batch(1320, epoch=2, payload=b"x" * 3000)[:-1] + b"y")
    result = subprocess.run(
        [sys.executable, "-I", "-S", "-", str(path), str(tmp_path / "nothing")],
        input=scan_script(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    ends, mount, cut, repair, bad = result.stderr.splitlines()
    assert ends.startswith("THE BROKER ENDS: ") and mount.startswith("  repair: mount the disk")
    assert cut.startswith("THE LOG IS CUT OFF: ") and repair.startswith("  repair: copy the folder")
    assert bad == f"{tmp_path}/nothing: cannot be listed: No such file or directory"
    assert result.returncode == 1
    told = json.loads(result.stdout)
    expected = json.loads("\n".join(scan_lines(scan(path, tmp_path / "nothing"))))
    assert told["partitions"][0]["defect"]["kind"] == "wrong checksum"
    for document in (told, expected):
        del document["host"], document["readAtMs"]
    assert told == expected


def test_the_script_is_python_3_8_and_imports_the_standard_library_only() -> None:
    tree = ast.parse(scan_script(), feature_version=(3, 8))
    imported = {
        (node.module or "").partition(".")[0] if isinstance(node, ast.ImportFrom) else name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    assert imported - {"crc32c"} <= sys.stdlib_module_names
    named = [
        name
        for node in tree.body
        for name in (
            [node.name]
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
            else [target.id for target in node.targets if isinstance(target, ast.Name)]
            if isinstance(node, ast.Assign)
            else []
        )
    ]
    assert sorted(named) == sorted(set(named)), "two modules of the script use one name"
    newer = {"removeprefix", "removesuffix", "bit_count", "is_relative_to", "pairwise", "StrEnum", "UTC"}
    assert not newer & {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Match)]
