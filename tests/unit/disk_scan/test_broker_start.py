"""A dead broker's log dirs that Kafka does not load as they are: said before somebody starts the broker.

That Kafka does so is tried in tests/live/test_broker_start.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from backends.disk_scan.broker_start import BAD_CHECKPOINTS
from backends.disk_scan.log_dir_scan import scan_log_dirs
from backends.disk_scan.scan_values import (
    BEGINS_EMPTY,
    CUT_OFF,
    DELETES,
    DIR_OFFLINE,
    ENDS,
    RENAMED_TO_STRAY,
    TO_REPAIR,
    DiskScan,
    scan_lines,
)
from console.disk_evidence_files import read_disk_evidence
from console.jobs.disks.disk_scan_run import advice_lines
from console.reading.survey_report import disk_start_lines
from recovery.disk_evidence import with_disks
from recovery.model import Lineage, Standing, TopicPartition
from tests.command_server import Ended
from tests.unit.cli.command_process import invoke
from tests.unit.disk_scan.log_dirs import CLUSTER, DIRECTORY, TOPIC_ID, add_partition, log_dir, write_offsets
from tests.unit.log_segments.segments import batch, old_message
from tests.unit.recovery.surveys import SILENT, log, survey


def data(path: Path, node: int = 3) -> Path:
    """A healthy log dir with one replica."""
    log_dir(path, node)
    add_partition(path, "orders-0", {0: batch(0, 100)})
    write_offsets(path, "replication-offset-checkpoint", {"orders 0": 100})
    return path


def scan(*paths: Path) -> DiskScan:
    return scan_log_dirs([str(path) for path in paths], "host-3", 0)


def shown(home: Path, *paths: Path) -> Ended:
    return invoke(home, "ktriage", "disk", "scan", *map(str, paths))


def write(name: str, text: str) -> Callable[[Path], Path]:
    def broken(path: Path) -> Path:
        (path / name).write_text(text)
        return path / name

    return broken


def no_partition_metadata(path: Path) -> Path:
    (path / "orders-0" / "partition.metadata").unlink()
    return path / "orders-0"


def no_meta_properties(path: Path) -> Path:
    (path / "meta.properties").unlink()
    return path / "meta.properties"


def foreign_folder(path: Path) -> Path:
    (path / "lost+found").mkdir()
    return path / "lost+found"


def properties(name: str, value: str) -> Callable[[Path], Path]:
    """meta.properties with another value."""

    def broken(path: Path) -> Path:
        file = path / "meta.properties"
        lines = [line for line in file.read_text().splitlines() if not line.startswith(f"{name}=")]
        file.write_text("\n".join([*lines, f"{name}={value}", ""]))
        return file

    return broken


def folder_gone(path: Path) -> Path:
    """The checkpoint has a partition that has no folder."""
    file = path / "replication-offset-checkpoint"
    file.write_text("0\n1\ngone 4 1300\n")
    return path / "gone-4"


def transaction_index(path: Path) -> Path:
    file = path / "orders-0" / f"{0:020}.txnindex"
    file.write_bytes(b"\0\0" + bytes(32) + b"\1\0" + bytes(32))
    return file


def transaction_index_of_4_4(path: Path) -> Path:
    """Tried: 4.3.1 loads it, and 4.4.0 ends."""
    file = transaction_index(path)
    file.write_bytes(b"\0\1" + bytes(32))
    return file


def log_start_beyond_the_end(path: Path) -> Path:
    write_offsets(path, "log-start-offset-checkpoint", {"orders 0": 120})
    return path / "orders-0"


def torn_before_another_segment(path: Path) -> Path:
    (path / "orders-0" / f"{0:020}.log").write_bytes(batch(0, 50) + batch(50, 50)[:-1])
    (path / "orders-0" / f"{100:020}.log").write_bytes(batch(100, 10))
    return path / "orders-0"


def delete_folder(path: Path) -> Path:
    return add_partition(path, f"gone-7.{'0' * 32}-delete", {0: batch(0, 40)})


def deleted_segment(path: Path) -> Path:
    file = path / "orders-0" / f"{100:020}.log.deleted"
    file.write_bytes(batch(100, 10))
    return file


METADATA, EPOCHS = "orders-0/partition.metadata", "orders-0/leader-epoch-checkpoint"
BROKEN = [
    (write(METADATA, ""), ENDS, "it has 0 bytes"),
    (write(METADATA, "version: 0\n"), ENDS, "it has one line only"),
    (write(METADATA, "version: 0\ntopic_id:\n"), DIR_OFFLINE, "a line that Kafka cannot read"),
    (no_partition_metadata, RENAMED_TO_STRAY, "an empty log in its place"),
    (write(EPOCHS, "0\n2\n0 0\n"), DIR_OFFLINE, "Kafka cannot read it"),
    (write(EPOCHS, "0\n1\nx y\n"), ENDS, "Kafka cannot read it"),
    *((write(name, "0\n7\n"), DIR_OFFLINE, "Kafka cannot read it") for name in BAD_CHECKPOINTS),
    (no_meta_properties, ENDS, "never formatted"),
    (write("meta.properties", "version=1\ncluster.id=a\n"), DIR_OFFLINE, "no node.id"),
    (write("meta.properties", "cluster.id=a\nnode.id=3\n"), ENDS, "no broker.id"),
    (write("meta.properties", ""), ENDS, "no cluster.id and no broker.id"),
    (write("meta.properties", "version=1\ncluster.id=\\u12\n"), DIR_OFFLINE, "meta.properties: line 2"),
    (properties("node.id", "3 "), DIR_OFFLINE, "'3 ' is no number"),
    (write(METADATA, f"version: 1\ntopic_id: {TOPIC_ID}\n"), DIR_OFFLINE, "version 1 is not known"),
    (write(METADATA, f"version 0\ntopic_id: {TOPIC_ID}\n"), DIR_OFFLINE, "a line that Kafka cannot read"),
    (write("orders-0/abc.timeindex", ""), ENDS, "its name is no offset"),
    (transaction_index, ENDS, "an aborted transaction of a version that Kafka does not know"),
    (
        transaction_index_of_4_4,
        ENDS,
        "an aborted transaction of a version that Kafka 4.4 and later does not know",
    ),
    (log_start_beyond_the_end, CUT_OFF, "deletes all its segments"),
    (torn_before_another_segment, CUT_OFF, "cuts this log at offset 50 and deletes what lies behind"),
    (delete_folder, DELETES, "offsets 0 to 39 of gone-7"),
    (deleted_segment, DELETES, "deletes it when it loads the log"),
    (foreign_folder, ENDS, "no partition's folder"),
    (write(METADATA, "version: 0\ntopic_id: zz\n"), ENDS, "'zz' is no topic id"),
    (write(METADATA, f"version: 0\ntopic_id: {'A' * 22}\n"), DIR_OFFLINE, "all zeros"),
    (write("orders-0/00000000000000000000-old.log", ""), ENDS, "its name is no offset"),
    (write("orders-0/abc.snapshot", ""), ENDS, "its name is no offset"),
    (properties("version", "2"), DIR_OFFLINE, "version 2 is not known"),
    (properties("directory.id", "foo"), DIR_OFFLINE, "'foo' is no id"),
    (properties("directory.id", "AAAAAAAAAAAAAAAAAAAAAQ"), ENDS, "is reserved"),
    (properties("node.id", "x"), DIR_OFFLINE, "'x' is no number"),
    (folder_gone, BEGINS_EMPTY, "its folder is not there"),
]


@pytest.mark.parametrize(("broken", "effect", "why"), BROKEN)
def test_what_the_broker_does_at_its_start_stands_first(
    tmp_path: Path, broken: Callable[[Path], Path], effect: str, why: str
) -> None:
    path = data(tmp_path / "data")
    assert scan(path).at_start == ()
    where = broken(path)
    (found,) = scan(path).at_start
    assert (found.effect, found.where) == (effect, str(where))
    assert why in found.why and found.repair
    ended = shown(tmp_path, path)
    assert ended.out.startswith("WHAT THE BROKER DOES WITH THESE DIRS AT ITS START")
    lost = "lost records at the end" in ended.err
    assert ("Try first: run broker" in ended.err) is (effect not in TO_REPAIR and not lost)
    assert ("what you may need of the records" in ended.err) is (
        effect not in TO_REPAIR and "Before" in ended.err
    )
    told = json.loads("".join(scan_lines(scan(path))))
    assert told["atStart"] == [found._asdict()]


@pytest.mark.parametrize("mark", ["stray", "delete"])
def test_an_empty_partition_metadata_ends_the_broker_in_any_folder(tmp_path: Path, mark: str) -> None:
    path = data(tmp_path / "data")
    folder = path / f"orders-7.0123456789abcdef0123456789abcde1-{mark}"
    folder.mkdir()
    (folder / "partition.metadata").write_text("")
    (found,) = scan(path).at_start
    assert (found.effect, found.where) == (ENDS, str(folder / "partition.metadata"))


def test_a_partition_metadata_that_cannot_be_read_takes_the_dir_offline_in_any_folder(tmp_path: Path) -> None:
    path = data(tmp_path / "data")
    folder = path / f"orders-7.{'0' * 32}-stray"
    folder.mkdir()
    (folder / "partition.metadata").write_text("version: 0\nno line\n")
    (effect,) = scan(path).at_start
    assert (effect.effect, effect.where) == (DIR_OFFLINE, str(folder / "partition.metadata"))


def test_after_a_clean_stop_the_broker_does_not_look_for_damaged_places(tmp_path: Path) -> None:
    path = data(tmp_path / "data")
    torn_before_another_segment(path)
    (path / ".kafka_cleanshutdown").write_text("")
    assert scan(path).at_start == ()


@pytest.mark.parametrize(
    ("behind", "ends"), [(bytes(4096), True), (bytes(12), False), (batch(100, 50)[:-1], False)]
)
def test_zeros_behind_the_last_batch_end_a_broker_that_was_stopped_cleanly(
    tmp_path: Path, behind: bytes, *, ends: bool
) -> None:
    """A batch that is cut short is passed over, as are fewer bytes than the head of a batch."""
    path = data(tmp_path / "data")
    (path / ".kafka_cleanshutdown").write_text("")
    file = path / "orders-0" / f"{0:020}.log"
    whole = batch(0, 100)
    file.write_bytes(whole + behind)
    found = scan(path)
    effects = [one for one in found.at_start if one.effect == ENDS]
    assert bool(effects) is ends
    if ends:
        assert found.dirs[0].logs[0].lost_tail is None, "a clean stop has written every record"
        assert effects[0].repair.endswith(f"truncate -s {len(whole)} {file}")


def test_a_partition_without_a_folder_is_looked_at_and_does_not_forbid_the_start(tmp_path: Path) -> None:
    """Its topic may have been deleted in the seconds before the stop, after the checkpoint was written."""
    path = data(tmp_path / "data")
    write_offsets(path, "replication-offset-checkpoint", {"orders 0": 100, "gone 3": 40})
    advised = " ".join(advice_lines(scan(path)))
    assert "look whether 1 partition without a folder" in advised
    assert "Do not start" not in advised and "Try first" not in advised


def test_a_partition_in_the_other_log_dir_or_being_deleted_is_not_missed(tmp_path: Path) -> None:
    first, second = data(tmp_path / "a"), log_dir(tmp_path / "b")
    text = (second / "meta.properties").read_text().replace(DIRECTORY, "bBgYEsQI1_LYj4bkgJZzHg")
    (second / "meta.properties").write_text(text)
    write_offsets(second, "replication-offset-checkpoint", {"orders 0": 100, "gone 3": 40})
    assert [Path(one.where).name for one in scan(first, second).at_start] == ["gone-3"]
    assert [Path(one.where).name for one in scan(second).at_start] == ["gone-3", "orders-0"]
    add_partition(second, f"gone-3.{'0' * 32}-delete", {0: batch(0, 40)})
    assert [one.effect for one in scan(first, second).at_start] == [DELETES]


def test_a_stray_without_a_log_beside_it_is_named_and_counts_where_it_is_still_assigned(
    tmp_path: Path,
) -> None:
    path = data(tmp_path / "data")
    stray = path / f"orders-0.{'0' * 32}-stray"
    (path / "orders-0").rename(stray)
    (effect,) = scan(path).at_start
    assert (effect.effect, effect.where) == (BEGINS_EMPTY, str(stray))
    assert "rename the folder to orders-0" in effect.repair
    file = tmp_path / "broker-3.json"
    file.write_text("".join(scan_lines(scan(path))))
    reading = read_disk_evidence([file])
    for topic, repaired in (("orders", True), ("payments", False)):
        asked = survey({1: log((0, 0, 90)), 3: SILENT}, isr=(3,), standings={3: Standing.FENCED})
        asked = asked._replace(state=asked.state._replace(topic=topic))
        ((found,), _) = with_disks([asked], reading, {})
        assert [one.disk_to_repair for one in found.replicas] == [False, repaired]
    add_partition(path, "orders-0", {0: batch(0, 20)})
    assert scan(path).at_start == ()


def test_a_dir_without_its_id_is_named(tmp_path: Path) -> None:
    path = data(tmp_path / "data")
    text = (path / "meta.properties").read_text()
    (path / "meta.properties").write_text(text.replace(f"directory.id={DIRECTORY}\n", ""))
    assert any("no directory.id" in remark for remark in scan(path).dirs[0].remarks)


def test_the_empty_place_of_a_disk_that_is_not_mounted_ends_the_broker(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (effect,) = scan(data(tmp_path / "data"), tmp_path / "empty").at_start
    assert (effect.effect, effect.where) == (ENDS, str(tmp_path / "empty"))
    assert "mount the disk" in effect.repair


def test_two_dirs_with_a_metadata_log_end_the_broker(tmp_path: Path) -> None:
    first, second = data(tmp_path / "a"), log_dir(tmp_path / "b")
    for number, path in enumerate((first, second)):
        text = (path / "meta.properties").read_text()
        (path / "meta.properties").write_text(text.replace(DIRECTORY, f"pKx3rWm0RqGqkqg2bC0Q3{'AB'[number]}"))
        add_partition(path, "__cluster_metadata-0", {0: batch(0, 10)})
    (effect,) = scan(first, second).at_start
    assert effect.effect == ENDS and "the metadata log stands in 2 log dirs" in effect.why


@pytest.mark.parametrize(
    ("text", "why"), [("", "0 bytes"), ("{", "no JSON"), ('{"leaderId":1}', "no data_version")]
)
def test_a_quorum_state_that_cannot_be_read_ends_the_broker(tmp_path: Path, text: str, why: str) -> None:
    path = data(tmp_path / "data")
    folder = add_partition(path, "__cluster_metadata-0", {0: batch(0, 10)})
    (folder / "quorum-state").write_text('{"leaderId":100,"leaderEpoch":2,"data_version":1}')
    assert scan(path).at_start == ()
    (folder / "quorum-state").write_text(text)
    (effect,) = scan(path).at_start
    assert (effect.effect, effect.where) == (ENDS, str(folder / "quorum-state")) and why in effect.why


def test_folders_are_named_as_kafka_reads_names(tmp_path: Path) -> None:
    """``UnifiedLog.parseTopicPartitionName`` takes any topic name, and any id before the mark."""
    path = data(tmp_path / "data")
    add_partition(path, "two words-3", {0: batch(0, 5)})
    for name in ("gone-7", "gone-7.abc-stray"):
        add_partition(path, name, {0: batch(0, 5)})
    assert scan(path).at_start == ()
    (path / "gone-7-stray").mkdir()
    (effect,) = scan(path).at_start
    assert effect.effect == ENDS and "no partition's folder" in effect.why


def test_a_copy_for_a_move_without_partition_metadata_becomes_a_stray_and_no_empty_log_begins(
    tmp_path: Path,
) -> None:
    path = data(tmp_path / "data")
    copied = add_partition(path, f"orders-0.{'0' * 32}-future", {0: batch(0, 10)})
    (copied / "partition.metadata").unlink()
    (effect,) = scan(path).at_start
    assert (effect.effect, effect.where) == (RENAMED_TO_STRAY, str(copied))
    assert "does not go on with this move" in effect.why and "empty log" not in effect.why
    assert "ask for the move again" in effect.repair


def test_two_copies_for_a_move_of_one_partition_end_the_broker(tmp_path: Path) -> None:
    path = data(tmp_path / "data")
    for number in (1, 2):
        add_partition(path, f"orders-0.0123456789abcdef0123456789abcde{number}-future", {0: batch(0, 10)})
    (found,) = scan(path).at_start
    assert found.effect == ENDS and "2 folders are copies of orders-0" in found.why


@pytest.mark.parametrize("name", [*BAD_CHECKPOINTS, EPOCHS])
def test_a_file_of_0_bytes_has_no_entry_for_kafka_and_is_no_remark(tmp_path: Path, name: str) -> None:
    path = data(tmp_path / "data")
    write(name, "")(path)
    (found,) = scan(path).dirs
    assert (found.at_start, found.remarks) == ((), ())
    assert found.logs[0].at_start == ()


def test_a_partition_in_two_log_dirs_names_the_better_log(tmp_path: Path) -> None:
    first, second = data(tmp_path / "a"), log_dir(tmp_path / "b")
    text = (second / "meta.properties").read_text().replace(DIRECTORY, "bBgYEsQI1_LYj4bkgJZzHg")
    (second / "meta.properties").write_text(text)
    add_partition(second, "orders-0", {0: batch(0, 140)})
    (found,) = scan(first, second).at_start
    assert found.effect == ENDS and found.why.startswith("orders-0 stands in 2 log dirs")
    assert (
        f"the better log is in {second} (last epoch 0, log end 140; the other: last epoch 0, log end 100)"
        in found.why
    )
    assert (
        "Do not start broker 3 with these dirs as they are: it ends at its start"
        in shown(tmp_path, first, second).err
    )


def test_two_logs_that_end_alike_are_compared_by_what_their_batches_hold(tmp_path: Path) -> None:
    first, second = data(tmp_path / "a"), log_dir(tmp_path / "b")
    text = (second / "meta.properties").read_text().replace(DIRECTORY, "bBgYEsQI1_LYj4bkgJZzHg")
    (second / "meta.properties").write_text(text)
    folder = add_partition(second, "orders-0", {0: batch(0, 100)})
    (found,) = scan(first, second).at_start
    assert "both logs hold the same batches, by offsets and checksums" in found.why
    segment = folder / f"{0:020}.log"
    segment.write_bytes(batch(0, 60) + batch(60, 40, payload=b"others"))
    (found,) = scan(first, second).at_start
    assert "both logs end alike, and differ from offset 0 on" in found.why


def test_messages_of_old_formats_are_counted_and_are_no_lost_records(tmp_path: Path) -> None:
    """A broker of today serves them from its disk."""
    path = data(tmp_path / "data")
    old = b"".join(old_message(1, offset, b"value") for offset in range(40))
    add_partition(path, "old-0", {0: old + batch(40, 60)}, epochs=((0, 40),))
    add_partition(path, "older-0", {0: old_message(0, 0, b"one")}, epochs=())
    logs = {log.topic: log for log in scan(path).dirs[0].logs}
    old_log, older = logs["old"], logs["older"]
    assert (old_log.log_end, old_log.lost_tail, old_log.defect) == (100, None, None)
    assert (old_log.old_messages, old_log.old_size, old_log.old_end) == (40, len(old), 40)
    assert old_log.spans == ((0, 40, 100),) and old_log.records is None
    assert (older.log_end, older.lost_tail, older.spans) == (1, None, ())
    ended = shown(tmp_path, path)
    assert "Try first: run broker 3" in ended.err
    assert "(not read: 41 messages of formats 0 and 1)" in ended.err
    assert "40 messages of formats 0 and 1, before offset 40, were not read" in ended.out
    file = tmp_path / "broker-3.json"
    file.write_text("\n".join(scan_lines(scan(path))))
    (reading,) = read_disk_evidence([file])
    log = reading.logs[TopicPartition("old", 0)].log
    assert isinstance(log.lineage, Lineage) and log.lineage.floor == 40

    damaged = bytearray(old)
    damaged[-1] ^= 1
    (path / "old-0" / f"{0:020}.log").write_bytes(bytes(damaged))
    (torn,) = (log for log in scan(path).dirs[0].logs if log.topic == "old")
    assert torn.defect is not None and torn.defect.kind == "wrong checksum" and torn.log_end == 39


def test_what_is_no_replica_is_counted_beside_no_sign_of_a_loss(tmp_path: Path) -> None:
    path = data(tmp_path / "data")
    for mark in ("stray", "future"):
        add_partition(path, f"orders-1.{'0' * 32}-{mark}", {0: batch(0, 10)})
    assert "(no replicas, and not counted: 1 future folder, 1 stray folder)" in shown(tmp_path, path).err


def test_evidence_says_what_is_to_be_repaired_before_its_broker_is_started(tmp_path: Path) -> None:
    path = data(tmp_path / "data")
    foreign_folder(path)
    file = tmp_path / "broker-3.json"
    file.write_text("\n".join(scan_lines(scan(path))))
    (reading,) = read_disk_evidence([file])
    told, repair = disk_start_lines(reading)
    assert told == (
        f"before broker 3 is started with it: the broker ends: {path / 'lost+found'}: it is no partition's folder,"
        " and Kafka stops at any other folder in a log dir"
    )
    assert repair == f"  repair: move it out of {path}"


def test_log_dirs_of_two_clusters_are_no_evidence_of_one_broker(tmp_path: Path) -> None:
    first, second = data(tmp_path / "a"), data(tmp_path / "b")
    text = (second / "meta.properties").read_text()
    (second / "meta.properties").write_text(text.replace(CLUSTER, "BBBBBBBBBBBBBBBBBBBBBQ"))
    (found,) = scan(first, second).at_start
    assert found.effect == ENDS and "they are of 2 clusters" in found.why
    assert "next: ktriage plan" not in shown(tmp_path, first, second).err


def test_the_copy_of_a_disk_beside_the_disk_is_told(tmp_path: Path) -> None:
    first, second = log_dir(tmp_path / "a"), log_dir(tmp_path / "b")
    for path in (first, second):
        write_offsets(path, "replication-offset-checkpoint", {})
    (found,) = scan(first, second).at_start
    assert "the same directory id" in found.why
    assert scan(first, data(tmp_path / "other", node=4)).at_start == (), (
        "dirs of two nodes are not given together"
    )


def test_a_dir_that_was_only_formatted_is_called_so(tmp_path: Path) -> None:
    path = log_dir(tmp_path / "data")
    (path / "__cluster_metadata-0").mkdir()
    (path / "__cluster_metadata-0" / f"{0:020}-{0:010}.checkpoint").write_bytes(b"")
    ended = shown(tmp_path, path)
    assert "formatted, and never started" in ended.out
    assert "lost records" not in ended.err and "next:" not in ended.err
    write_offsets(path, "recovery-point-offset-checkpoint", {})
    assert "never started" not in shown(tmp_path, path).out


def test_meta_properties_is_read_as_java_writes_it(tmp_path: Path) -> None:
    path = data(tmp_path / "data")
    text = (path / "meta.properties").read_text()
    (path / "meta.properties").write_text(text.replace(CLUSTER, "abc\\=\\=\\:d"))
    (found,) = scan(path).dirs
    assert (found.cluster_id, found.logs[0].topic_id) == ("abc==:d", TOPIC_ID)
