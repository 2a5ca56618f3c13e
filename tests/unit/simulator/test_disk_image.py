"""A simulated broker's log dirs on a real disk."""

from __future__ import annotations

import json
from pathlib import Path

from backends.disk_scan.log_dir_scan import scan_log_dirs
from backends.disk_scan.scan_values import ScanDepth
from backends.metadata_log.quorum_copy import read_quorum_copy
from backends.simulator.disk_image import write_log_dirs, write_metadata_log_dir
from backends.simulator.simulation import Simulation
from backends.simulator.world import World
from console.disk_evidence_files import readings_of_scan
from console.jobs.quorum.lost_quorum_evidence import history_of
from console.jobs.quorum.quorum_rebuild import RebuildRequest, apply_rebuild, make_rebuild
from console.reading.disk_evidence import registration_facts
from console.simulator_backend import scenario
from recovery.disk_evidence import DiskReading
from recovery.membership.quorum_rebuild import GivenVoter
from testbed.histories.history_folder import HistoryFolder
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


def test_of_a_lost_quorum_the_disks_that_are_left_can_be_rebuilt_from(tmp_path: Path) -> None:
    """The scenario is where the way back is practised: the disks hold its topics and its voters."""
    lost = scenario("two-of-three-voters-lost")
    simulation = Simulation(lost, 1)
    simulation.advance_to(lost.operator_at)
    world = simulation.world
    (metadata,) = write_metadata_log_dir(world, "a-cluster", 100, tmp_path / "100")
    assert write_metadata_log_dir(world, "a-cluster", 102, tmp_path / "102") == (), "that disk has failed"
    data = [write_log_dirs(world, "a-cluster", broker, tmp_path / f"{broker}")[0] for broker in world.disks]
    copies = [read_quorum_copy(path) for path in (metadata, *data)]
    for copy in copies:
        assert (copy.kraft_version, copy.voters) == (1, world.quorum.disks[100].log.voters)
        assert copy.end == copies[0].end and history_of(copy).topic_ids("payments")
    voter = GivenVoter(100, "", "127.0.0.1", 1)
    request = RebuildRequest(metadata, (voter,), (101, 102), data=tuple(data))
    plan = make_rebuild(request, lambda _host, _port: False).plan
    apply_rebuild(plan, "a drill", lambda _host, _port: False)
    assert [key.id for key in read_quorum_copy(metadata).voters.keys] == [100]


def test_a_broker_that_died_lacks_what_was_committed_since(tmp_path: Path) -> None:
    world = cluster(topology(acks=None))
    world.kill_broker(3)
    until(world, lambda: world.brokers[2].state.image.brokers[3].fenced)
    ends = {}
    for broker in (2, 3):
        (path,) = write_log_dirs(world, "a-cluster", broker, tmp_path / f"{broker}")
        ends[broker] = read_quorum_copy(path).end
    assert ends[3] < ends[2]


def test_the_voters_on_the_disks_are_those_after_their_changes(tmp_path: Path) -> None:
    joining = scenario("controller-auto-join")
    simulation = Simulation(joining, 1)
    simulation.advance_to(joining.operator_at)
    world = simulation.world
    world.kill_broker(1)
    until(world, lambda: world.image.brokers[1].fenced)
    (metadata,) = write_metadata_log_dir(world, "a-cluster", 100, tmp_path / "100")
    voters = read_quorum_copy(metadata).voters
    assert [key.id for key in voters.keys] == [100, 101, 102]
    assert set(voters.keys) == {world.quorum.disks[node].key for node in (100, 101, 102)}
