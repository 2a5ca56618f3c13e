"""A simulated broker's log dirs on a real disk."""

from __future__ import annotations

import json
from pathlib import Path

from backends.disk_scan.log_dir_scan import scan_log_dirs
from backends.disk_scan.scan_values import ScanDepth
from backends.simulator.committed_records import HistoryFolder
from backends.simulator.disk_image import write_log_dirs
from backends.simulator.world import World
from console.disk_evidence_files import readings_of_scan
from console.reading.disk_evidence import registration_facts
from recovery.disk_evidence import DiskReading
from tests.unit.simulator.clusters import FOO, cluster, end, topology, until


def reading(world: World, broker: int, directory: Path) -> DiskReading:
    paths = [str(path) for path in write_log_dirs(world, "a-cluster", broker, directory)]
    (found,) = readings_of_scan(scan_log_dirs(paths, "host", 0, ScanDepth("all")))
    return found


def registered_at(world: World, found: DiskReading) -> int:
    (facts,) = registration_facts(HistoryFolder(world.committed_records).catch_up(), [found]).values()
    assert facts.registered_at is not None
    return facts.registered_at[0]


def test_a_broker_that_ran_again_after_its_disk_was_copied_is_told_by_the_metadata_log(
    tmp_path: Path,
) -> None:
    world = cluster(topology(acks=None))
    world.kill_broker(3)
    until(world, lambda: world.image.brokers[3].fenced)
    found = reading(world, 3, tmp_path / "copy")
    assert found.metadata_end is not None
    assert registered_at(world, found) < found.metadata_end
    before = world.image.brokers[3].epoch
    world.start_broker(3)
    until(world, lambda: world.image.brokers[3].epoch != before)
    assert registered_at(world, found) >= found.metadata_end


def test_only_after_a_clean_shutdown_the_broker_epoch_is_in_every_log_dir(tmp_path: Path) -> None:
    world = cluster(topology(log_dirs=2, partitions=4, acks=None))
    epoch = world.image.brokers[3].epoch
    world.shut_down_broker(3)
    world.kill_broker(2)
    until(world, lambda: 3 not in world.brokers)
    for path in write_log_dirs(world, "a-cluster", 3, tmp_path / "clean"):
        noted = json.loads((path / ".kafka_cleanshutdown").read_text(encoding="utf-8"))
        assert noted == {"version": 0, "brokerEpoch": epoch}
    for path in write_log_dirs(world, "a-cluster", 2, tmp_path / "killed"):
        assert not (path / ".kafka_cleanshutdown").exists()


def test_the_log_dirs_that_work_hold_every_log_that_lies_in_them(tmp_path: Path) -> None:
    world = cluster(topology(log_dirs=2, partitions=4, acks=None))
    world.break_log_dir(1, 0)
    found = reading(world, 1, tmp_path / "copy")
    disk = world.disks[1]
    assert set(found.logs) == {tp for tp, log in disk.logs.items() if log.directory == 1}
    assert [path.name for path in (tmp_path / "copy").iterdir()] == ["log-dir-1"]
    assert {one.log.log_end_offset for one in found.logs.values()} == {1000}
    assert {one.directory_id for one in found.logs.values()} == {disk.directories[1].id}


def test_a_log_that_lost_its_unflushed_end_is_written_as_the_disk_has_it(tmp_path: Path) -> None:
    world = cluster(topology())
    until(world, lambda: end(world, 3) > 1200)
    world.power_off([3])
    found = reading(world, 3, tmp_path / "copy")
    assert found.logs[FOO].log.log_end_offset == world.disks[3].logs[FOO].end
    assert found.logs[FOO].lost_tail is None
