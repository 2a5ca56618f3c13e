"""Random histories of the simulator, of which random disks are left, brokers' and one controller's: what any
surviving disk holds is in the rebuilt log or named before, no leader epoch is given out twice, and no other voters
can commit, also where the rebuilt quorum has grown and is lost again.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from backends.disk_scan.log_dir_scan import scan_log_dirs
from backends.disk_scan.scan_values import ScanDepth
from backends.metadata_log.batch_writer import leader_change_batch, voters_batch
from backends.metadata_log.directory import DIRECTORY
from backends.metadata_log.quorum_copy import read_quorum_copy
from backends.simulator.disk_image import write_log_dirs
from backends.simulator.encoded_metadata_log import EncodedMetadataLog
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
from recovery.membership.rewritten_partitions import KnownPartitions, ScannedReplica
from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint
from recovery.metadata_log.log_changes import PartitionSubject
from testbed.histories.random_histories import prepare, run
from tests.repetitions import repetitions

pytestmark = pytest.mark.long

LOGS = Path(__file__).parent / "lost_quorum"
VOTERS_OF_THE_FORMAT = LOGS / "node-100" / DIRECTORY / "00000000000000000000-0000000000.checkpoint"
CLUSTER = "a-cluster"
SURVIVOR = 100
VOTERS_OF_THE_FORMAT_KEYS = read_quorum_copy(LOGS / "node-100").voters.keys


def silent(_host: str, _port: int) -> bool:
    return False


class Survivors(NamedTuple):
    """``brokers``: log dirs by broker, the one with the metadata log first. ``controller``: the metadata log dir of
    controller 100, where that is left.
    """

    brokers: dict[int, list[Path]]
    controller: Path | None

    @property
    def copies(self) -> tuple[Path, ...]:
        """Each has the metadata log up to another place; there is at least one."""
        found = tuple(dirs[0] for dirs in self.brokers.values())
        return found if self.controller is None else (*found, self.controller)

    @property
    def nodes(self) -> tuple[int, ...]:
        return (*self.brokers, *(() if self.controller is None else (SURVIVOR,)))


def surviving_disks(seed: int, directory: Path, random: Random) -> Survivors:
    """Random ones; where chance leaves none, the controller's disk is left."""
    world, _checker = prepare(seed)
    run(world, seed, random.randint(5, 40))
    log = EncodedMetadataLog(world.committed_records)
    log.catch_up()

    def write_log(log_dir: Path) -> None:
        folder = log.write(log_dir, random.randint(log.end_offset // 3, log.end_offset))
        shutil.copy(VOTERS_OF_THE_FORMAT, folder)

    left: dict[int, list[Path]] = {}
    for broker in sorted(world.disks):
        if random.random() < 0.3:
            continue
        dirs = list(write_log_dirs(world, CLUSTER, broker, directory / f"broker-{broker}"))
        if not dirs:
            continue
        shutil.rmtree(dirs[0] / DIRECTORY)
        write_log(dirs[0])
        left[broker] = dirs
    if left and random.random() < 0.6:
        return Survivors(left, None)
    controller = metadata_log_dir(
        directory, next(key for key in VOTERS_OF_THE_FORMAT_KEYS if key.id == SURVIVOR)
    )
    write_log(controller)
    return Survivors(left, controller)


def metadata_log_dir(directory: Path, key: ReplicaKey) -> Path:
    """As it is after the format, without a log."""
    made = directory / f"controller-{key.id}"
    made.mkdir()
    (made / "meta.properties").write_text(
        f"cluster.id={CLUSTER}\ndirectory.id={key.directory_id}\nnode.id={key.id}\nversion=1\n"
    )
    return made


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
    source = random.choice(disks.copies)
    in_place = source == disks.controller
    target = source if in_place else metadata_log_dir(tmp_path, ReplicaKey(203, "BBBBBBBBBBBBBBBBBBBBBg"))
    before = known_partitions(history_of(read_quorum_copy(source)))
    evidence = gather_evidence(disks.copies, chosen=source)
    # The history may have changed the voters.
    named = {*voters_to_name(evidence.chosen, evidence.copies), *(k.id for k in evidence.chosen.voters.keys)}
    data = tuple(path for dirs in disks.brokers.values() for path in dirs)
    request = RebuildRequest(
        source,
        (GivenVoter(SURVIVOR if in_place else 203, "CONTROLLER", "127.0.0.1", 5),),
        tuple(sorted(named - {SURVIVOR} if in_place else named)),
        into=None if in_place else target,
        data=data,
        compare=() if disks.controller is None or in_place else (disks.controller,),
        unscanned=tuple(range(1, 10)),
        accept_loss_of=disks.nodes,
        keep_strays=True,
    )
    try:
        plan = made(request)
    except RebuildRefused as refused:
        # What cannot be kept was named; the operator goes on without it, and keeps the rest.
        assert all("cannot be kept" in reason for reason in refused.reasons), refused.reasons
        plan = made(replace(request, accept_strays=True))
    apply_rebuild(plan, "a test", silent)
    check(plan, disks, data, before)
    lost_again(plan, request, disks, tmp_path, random)


def lost_again(
    first: RebuildPlan, request: RebuildRequest, disks: Survivors, directory: Path, random: Random
) -> None:
    """The rebuilt quorum leads, grows, and is lost; some brokers have followed it, others have not."""
    grow(first, random)
    for dirs in disks.brokers.values():
        if random.random() < 0.5:
            shutil.rmtree(dirs[0] / DIRECTORY)
            shutil.copytree(first.target, dirs[0] / DIRECTORY)
    rebuilt = Path(first.target).parent
    copies = tuple(dict.fromkeys((*disks.copies, rebuilt)))
    source = random.choice(copies)
    evidence = gather_evidence(copies, chosen=source)
    named = voters_to_name(evidence.chosen, evidence.copies)
    again = replace(
        request,
        source=source,
        into=metadata_log_dir(directory, ReplicaKey(210, "CCCCCCCCCCCCCCCCCCCCCg")),
        voters=(GivenVoter(210, "CONTROLLER", "127.0.0.1", 6),),
        dead=tuple({*named, *(key.id for key in evidence.chosen.voters.keys)}),
        compare=tuple(copy for copy in copies if copy in (disks.controller, rebuilt)),
        accept_loss_of=(*disks.nodes, first.key.id),
        accept_loss_of_rebuild=(first.epoch,),
        keep_strays=False,
        accept_strays=True,
    )
    left_out = random.choice(again.dead)
    with pytest.raises(RebuildRefused) as refused:
        make_rebuild(replace(again, dead=tuple(set(again.dead) - {left_out})), silent)
    assert any(f" {left_out}" in reason and "--dead" in reason for reason in refused.value.reasons)
    plan = made(again)
    apply_rebuild(plan, "a test", silent)
    only_one_commits(plan, (*copies, Path(plan.target)))


def grow(plan: RebuildPlan, random: Random) -> None:
    """It is led, and a few voters are added one by one, as a leader writes them."""
    copy = read_quorum_copy(Path(plan.target))
    voters, offset, epoch = copy.voters, copy.end, copy.epoch + 1
    with (Path(plan.target) / copy.segment).open("ab") as log:
        log.write(leader_change_batch(offset, epoch, 1, plan.key.id, (plan.key.id,)))
        for node in range(204, 204 + random.randint(0, 3)):
            offset += 1
            key = ReplicaKey(node, f"AAAAAAAAAAAAAAAAAAAA{node % 10}w")
            voters = voters.plus(Voter(key, (VoterEndpoint("CONTROLLER", "127.0.0.1", node),)))
            log.write(voters_batch(offset, epoch, 1, [voters]))


def only_one_commits(plan: RebuildPlan, dirs: Iterable[Path]) -> None:
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


def check(plan: RebuildPlan, disks: Survivors, data: tuple[Path, ...], before: KnownPartitions) -> None:
    """``before``: what the chosen copy knew."""
    rebuilt = read_quorum_copy(Path(plan.target))
    present = dict(history_of(rebuilt).present())
    scan = scan_log_dirs([str(path) for path in data], "host", 0, ScanDepth("none"))
    replicas: dict[PartitionSubject, list[ScannedReplica]] = {}
    for replica in scanned_replicas(scan):
        replicas.setdefault(replica.subject, []).append(replica)

    assert rebuilt.voters.keys == (plan.key,)
    target = Path(plan.target)
    others = [path for path in disks.copies if path != target.parent]
    only_one_commits(plan, (*others, target))
    for path in others:
        # What the copies have beyond the chosen one is named, change by change.
        for change in changes_from(read_quorum_copy(path), plan.log_end):
            assert any(f"offset {change.offset}: {change.text}" in line for line in plan.losses)

    strays = {(one.topic_id, one.partition, one.broker) for one in plan.strays}
    for subject, now in present.items():
        assert set(now.isr) <= set(now.replicas), (subject, now)
    for subject, found in replicas.items():
        if subject not in present:
            assert before.is_deleted(subject.topic_id) or all((*subject, d.broker) in strays for d in found)
            continue
        now = present[subject]
        # Each folder has a place in the quorum, or is named as a stray.
        assert {d.broker for d in found} - set(now.replicas) == {
            d.broker for d in found if (*subject, d.broker) in strays
        }
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
