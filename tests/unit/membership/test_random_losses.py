"""Random histories of the simulator, of which random disks are left: what any surviving disk holds is in the
rebuilt log or named before, no leader epoch is given out twice, and no other voters can commit, also where the
rebuilt quorum has grown and is lost again.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from backends.disk_scan.log_dir_scan import scan_log_dirs
from backends.disk_scan.scan_values import ScanDepth
from backends.metadata_log.batch_writer import leader_change_batch, voters_batch
from backends.metadata_log.directory import DIRECTORY
from backends.metadata_log.quorum_copy import read_quorum_copy
from backends.simulator.disk_image import write_log_dirs
from backends.simulator.encoded_metadata_log import EncodedMetadataLog
from backends.simulator.fuzz import prepare, run
from console.jobs.quorum.lost_quorum_evidence import changes_from, gather_evidence, history_of
from console.jobs.quorum.quorum_rebuild import (
    RebuildRefused,
    RebuildRequest,
    apply_rebuild,
    known_partitions,
    make_rebuild,
    scanned_replicas,
)
from recovery.membership.quorum_rebuild import GivenVoter, RebuildPlan, voters_to_name
from recovery.membership.rewritten_partitions import ScannedReplica
from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint
from recovery.metadata_log.log_changes import PartitionSubject
from tests.repetitions import repetitions

pytestmark = pytest.mark.long

LOGS = Path(__file__).parent / "lost_quorum"
VOTERS_OF_THE_FORMAT = LOGS / "node-100" / DIRECTORY / "00000000000000000000-0000000000.checkpoint"
CLUSTER = "a-cluster"
OLD = (100, 101, 102)
VOTERS_OF_THE_FORMAT_KEYS = read_quorum_copy(LOGS / "node-100").voters.keys


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
    lost_again(request, blank, disks, tmp_path, random)


def lost_again(
    first: RebuildRequest, blank: Path, disks: dict[int, list[Path]], directory: Path, random: Random
) -> None:
    """The rebuilt quorum leads, grows, and is lost; some brokers have followed it, others have not."""
    grow(blank, random)
    for dirs in disks.values():
        if random.random() < 0.5:
            shutil.rmtree(dirs[0] / DIRECTORY)
            shutil.copytree(blank / DIRECTORY, dirs[0] / DIRECTORY)
    again = directory / "again"
    again.mkdir()
    (again / "meta.properties").write_text(
        f"cluster.id={CLUSTER}\ndirectory.id=CCCCCCCCCCCCCCCCCCCCCg\nnode.id=110\nversion=1\n"
    )
    source = random.choice([*(dirs[0] for dirs in disks.values()), blank])
    evidence = gather_evidence((*(dirs[0] for dirs in disks.values()), blank), chosen=source)
    named = voters_to_name(evidence.chosen, evidence.copies)
    request = replace(
        first,
        source=source,
        into=again,
        voters=(GivenVoter(110, "CONTROLLER", "127.0.0.1", 6),),
        dead=tuple({*named, *(key.id for key in evidence.chosen.voters.keys)}),
        compare=(blank,),
        accept_loss_of=(*disks, 103),
        keep_strays=False,
        accept_strays=True,
    )
    left_out = random.choice(request.dead)
    with pytest.raises(RebuildRefused) as refused:
        make_rebuild(replace(request, dead=tuple(set(request.dead) - {left_out})), silent)
    assert any(f" {left_out}" in reason and "--dead" in reason for reason in refused.value.reasons)
    plan = made(request)
    apply_rebuild(plan, "a test", silent)
    only_one_commits(plan, [*(dirs[0] for dirs in disks.values()), blank, again])


def grow(blank: Path, random: Random) -> None:
    """It is led, and a few voters are added one by one, as a leader writes them."""
    copy = read_quorum_copy(blank)
    voters, offset, epoch = copy.voters, copy.end, copy.epoch + 1
    with (blank / DIRECTORY / copy.segment).open("ab") as log:
        log.write(leader_change_batch(offset, epoch, 1, 103, (103,)))
        for node in range(104, 104 + random.randint(0, 3)):
            offset += 1
            key = ReplicaKey(node, f"AAAAAAAAAAAAAAAAAAAA{node % 10}w")
            voters = voters.plus(Voter(key, (VoterEndpoint("CONTROLLER", "127.0.0.1", node),)))
            log.write(voters_batch(offset, epoch, 1, [voters]))


def only_one_commits(plan: RebuildPlan, dirs: list[Path]) -> None:
    """Of each voter set that any disk knows, or knew, no majority is left that was not named as dead; and each log
    loses every vote against the rebuilt one.
    """
    copies = [read_quorum_copy(path) for path in dirs]
    sets = {VOTERS_OF_THE_FORMAT_KEYS, *(copy.voters.keys for copy in copies)}
    for keys in sets - {(plan.key,)}:
        alive = [key for key in keys if key.id not in plan.dead or key == plan.key]
        assert len(alive) < len(keys) // 2 + 1, (keys, plan.dead)
    rebuilt = next(copy for copy in copies if copy.path == plan.target)
    assert all(copy.position < rebuilt.position for copy in copies if copy is not rebuilt)


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

    assert {key.id for key in rebuilt.voters.keys} == {103}
    only_one_commits(plan, [*(dirs[0] for dirs in disks.values()), blank])
    for dirs in disks.values():
        copy = read_quorum_copy(dirs[0])
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
