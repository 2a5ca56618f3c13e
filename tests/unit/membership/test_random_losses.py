"""Random histories of the simulator, of which random disks are left: what any surviving disk holds is in the
rebuilt log or named before, no leader epoch is given out twice, and no other voters can commit.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from backends.disk_scan.log_dir_scan import scan_log_dirs
from backends.disk_scan.scan_values import ScanDepth
from backends.metadata_log.directory import DIRECTORY
from backends.metadata_log.quorum_copy import read_quorum_copy
from backends.simulator.disk_image import write_log_dirs
from backends.simulator.encoded_metadata_log import EncodedMetadataLog
from backends.simulator.fuzz import prepare, run
from console.jobs.quorum.lost_quorum_evidence import changes_from, history_of
from console.jobs.quorum.quorum_rebuild import (
    RebuildRefused,
    RebuildRequest,
    apply_rebuild,
    known_partitions,
    make_rebuild,
    scanned_replicas,
)
from recovery.membership.quorum_rebuild import GivenVoter, RebuildPlan
from recovery.membership.rewritten_partitions import ScannedReplica
from recovery.metadata_log.log_changes import PartitionSubject
from tests.repetitions import repetitions

pytestmark = pytest.mark.long

LOGS = Path(__file__).parent / "lost_quorum"
VOTERS_OF_THE_FORMAT = LOGS / "node-100" / DIRECTORY / "00000000000000000000-0000000000.checkpoint"
CLUSTER = "a-cluster"
OLD = (100, 101, 102)


def silent(_host: str, _port: int) -> bool:
    return False


def surviving_disks(seed: int, directory: Path, random: Random) -> dict[int, list[Path]]:
    """Log dirs by broker; each has the metadata log up to another place."""
    world, _checker = prepare(seed)
    run(world, seed, random.randint(5, 40))
    log = EncodedMetadataLog(world.committed_records)
    log.catch_up()
    left: dict[int, list[Path]] = {}
    for broker in sorted(world.disks):
        if random.random() < 0.3:
            continue
        dirs = list(write_log_dirs(world, CLUSTER, broker, directory / f"broker-{broker}"))
        if not dirs:
            continue
        shutil.rmtree(dirs[0] / DIRECTORY)
        folder = log.write(dirs[0], random.randint(log.end_offset // 3, log.end_offset))
        shutil.copy(VOTERS_OF_THE_FORMAT, folder)
        left[broker] = dirs
    return left


def made(request: RebuildRequest) -> RebuildPlan:
    """The plan, with every loss accepted that is named."""
    try:
        return make_rebuild(request, silent).plan
    except RebuildRefused as refused:
        assert refused.reasons
        raise


@pytest.mark.parametrize("seed", range(repetitions(15, 1_000)))
def test_what_a_surviving_disk_holds_is_kept_or_named(seed: int, tmp_path: Path) -> None:
    random = Random(f"losses {seed}")
    disks = surviving_disks(seed, tmp_path, random)
    sources = [broker for broker, dirs in disks.items() if (dirs[0] / DIRECTORY).is_dir()]
    if not sources:
        return
    blank = tmp_path / "blank"
    blank.mkdir()
    (blank / "meta.properties").write_text(
        f"cluster.id={CLUSTER}\ndirectory.id=BBBBBBBBBBBBBBBBBBBBBg\nnode.id=103\nversion=1\n"
    )
    source = disks[random.choice(sources)][0]
    data = tuple(path for dirs in disks.values() for path in dirs)
    request = RebuildRequest(
        source,
        (GivenVoter(103, "CONTROLLER", "127.0.0.1", 5),),
        OLD,
        into=blank,
        data=data,
        unscanned=tuple(range(1, 10)),
        accept_loss_of=tuple(disks),
        keep_strays=True,
    )
    try:
        plan = made(request)
    except RebuildRefused as refused:
        # What cannot be kept was named; the operator goes on without it.
        assert all("cannot be kept" in reason for reason in refused.reasons), refused.reasons
        plan = made(replace(request, keep_strays=False, accept_strays=True))
    apply_rebuild(plan, "a test", silent)
    check(plan, blank, disks, data, source)


def check(
    plan: RebuildPlan, blank: Path, disks: dict[int, list[Path]], data: tuple[Path, ...], source: Path
) -> None:
    rebuilt = read_quorum_copy(blank)
    history = history_of(rebuilt)
    present, before = dict(history.present()), known_partitions(history_of(read_quorum_copy(source)))
    scan = scan_log_dirs([str(path) for path in data], "host", 0, ScanDepth("none"))
    replicas: dict[PartitionSubject, list[ScannedReplica]] = {}
    for replica in scanned_replicas(scan):
        replicas.setdefault(replica.subject, []).append(replica)

    # No other voters can commit: all old ones are named, and their logs lose every vote against this one.
    assert {key.id for key in rebuilt.voters.keys} == {103}
    assert set(plan.dead) == {key.id for key in plan.old.keys}
    for dirs in disks.values():
        copy = read_quorum_copy(dirs[0])
        assert copy.position < rebuilt.position
        # What the copies have beyond the chosen one is named, change by change.
        for change in changes_from(copy, plan.log_end):
            assert any(f"offset {change.offset}: {change.text}" in line for line in plan.losses)

    for subject, found in replicas.items():
        if subject not in present:
            assert before.is_deleted(subject.topic_id) or any("strays" in line for line in plan.unchecked)
            continue
        now = present[subject]
        newest = max(one.epoch for one in found)
        best = max(one.position for one in found)
        written = any((one.topic_id, one.partition) == subject for one in plan.partitions)
        # The next leader's epoch is one above.
        assert now.leader_epoch >= newest
        assert not written or now.leader_epoch > newest
        in_isr = [one for one in found if one.broker in now.isr]
        assert all(one.position == best for one in in_isr)
        was = before.present.get(subject)
        if was is None or newest > was.leader_epoch:
            assert in_isr
