"""``quorum evidence`` on what real Kafka 4.3.1 left: three controllers and two brokers, killed at once. 102
led, and had one record that the other controllers had not fetched; broker 2 had been dead before topic late was
made.
"""

from __future__ import annotations

import json
import shlex
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from backends.metadata_log.batch_writer import data_batch, leader_change_batch, voters_batch
from backends.metadata_log.quorum_copy import read_quorum_copy
from console.jobs.quorum.lost_quorum_evidence import gather_evidence
from console.jobs.quorum.lost_quorum_report import evidence_lines, next_plan_lines
from console.jobs.quorum.quorum_rebuild import apply_rebuild
from console.reading.remembered_voters import remembered_quorum
from recovery.membership.lost_quorum import (
    CopyRelation,
    QuorumCopy,
    RunningNode,
    committed_to,
    compared,
    voter_path,
)
from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet, majorities_overlap
from recovery.metadata_log.record_codec import encode
from recovery.metadata_log.records import ConfigRecord, TopicRecord
from tests.command_server import Ended
from tests.unit.cli.command_process import invoke
from tests.unit.membership.rebuilt_disks import LOGS, VOTER, disks, made, silent

__all__ = ["disks"]  # the fixture

SEGMENT = "__cluster_metadata-0/00000000000000000000.log"
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAA7w"


def evidence(home: Path, *dirs: Path) -> tuple[int, dict[str, Any]]:
    ended = shown(home, *dirs, "--output", "json")
    assert ended.out, ended.err
    return ended.status, json.loads(ended.out)


def shown(home: Path, *words: Path | str) -> Ended:
    ended = invoke(home, "ktriage", "quorum", "evidence", *map(str, words))
    assert "Traceback" not in ended.err and "internal error" not in ended.err, ended.err
    return ended


def append(disk: Path, *batches: bytes) -> None:
    with (disk / SEGMENT).open("ab") as log:
        log.writelines(batches)


def topic_batch(offset: int, epoch: int, name: str = "kept-nowhere-else") -> bytes:
    return data_batch(offset, epoch, 1_800_000_000_000, [encode(TopicRecord(name, TOPIC_ID))])


def test_every_directory_tells_whose_it_is_who_votes_and_where_it_ends(tmp_path: Path) -> None:
    dirs = [LOGS / f"node-{node}" for node in (100, 101, 102, 1, 2)]
    status, told = evidence(tmp_path, *dirs)
    assert status == 0
    rows = {row["node"]: row for row in told["copies"]}
    assert [row["node"] for row in told["copies"]] == [102, 1, 100, 101, 2]
    assert {node: (row["role"], row["epoch"], row["logEndOffset"]) for node, row in rows.items()} == {
        102: ("voter", 1, 52),
        1: ("observer", 1, 52),
        100: ("voter", 1, 51),
        101: ("voter", 1, 51),
        2: ("observer", 1, 33),
    }
    assert [voter["id"] for voter in told["voters"]] == [100, 101, 102]
    assert told["voters"][0]["directoryId"] == rows[100]["directoryId"]
    assert {row["kraftVersion"] for row in told["copies"]} == {1}
    assert rows[100]["leader"] == {"id": 102, "epoch": 1, "voted": 102}
    assert {row["compared"] for row in told["copies"]} == {"the same", "same prefix"}
    # 100 and 101 are a majority of the voters, and end there.
    assert told["committedTo"] == 51
    assert (told["lacks"], told["uncertain"], told["unread"]) == ([], [], [])


def test_what_another_copy_has_beyond_the_best_is_told_with_its_time(tmp_path: Path, disks: Path) -> None:
    """101 became leader in epoch 2 without the record that 102 alone had, and without topic kept-nowhere-else."""
    append(disks / "node-102", topic_batch(52, 1))
    append(disks / "node-101", leader_change_batch(51, 2, 1_800_000_000_000, 101, (100, 101, 102)))
    status, told = evidence(tmp_path, disks / "node-101", disks / "node-102")
    assert status == 0
    assert told["best"] == str(disks / "node-101" / "__cluster_metadata-0")
    assert [row["compared"] for row in told["copies"]] == ["the same", "diverges"]
    assert told["copies"][1]["agreesTo"] == 51
    assert [(change["offset"], change["text"], change["timeMs"]) for change in told["lacks"]] == [
        (52, "topic kept-nowhere-else created", 1_800_000_000_000)
    ]
    text = shown(tmp_path, disks / "node-101", disks / "node-102").out
    assert "it LACKS offsets 51 to 52 of node 102" in text
    assert "topic kept-nowhere-else created" in text


def test_changes_that_may_not_be_committed_are_told_apart(tmp_path: Path, disks: Path) -> None:
    append(disks / "node-102", topic_batch(52, 1))
    _, told = evidence(tmp_path, *(disks / f"node-{node}" for node in (100, 101, 102)))
    assert told["committedTo"] == 51
    assert [change["text"] for change in told["uncertain"]] == ["topic kept-nowhere-else created"]


def test_an_old_disk_and_its_copy_are_not_two_voters(tmp_path: Path, disks: Path) -> None:
    shutil.copytree(disks / "node-100", disks / "copy-of-100")
    _, told = evidence(tmp_path, disks / "node-100", disks / "copy-of-100")
    assert told["committedTo"] == 0


def test_controllers_that_were_each_formatted_standalone_share_nothing(tmp_path: Path, disks: Path) -> None:
    """One cluster id, and no batch in common: offsets and epochs alone would say "the same"."""
    alone = disks / "node-101"
    log = bytearray((alone / SEGMENT).read_bytes())
    (alone / SEGMENT).unlink()
    voters = VoterSet((Voter(ReplicaKey(101, "Y91TSWtkny1q_FzCl8wGpw")),))
    (alone / SEGMENT).write_bytes(
        leader_change_batch(0, 1, 5, 101, (101,))
        + voters_batch(1, 1, 5, [voters])
        + b"".join(topic_batch(offset, 1, f"topic-{offset}") for offset in range(2, 51))
    )
    assert len(log) == 4409
    _, told = evidence(tmp_path, disks / "node-100", alone)
    assert [row["compared"] for row in told["copies"]] == ["the same", "nothing shared"]
    assert told["committedTo"] == 0
    assert "another cluster with the same id" in shown(tmp_path, disks / "node-100", alone).out


def test_another_cluster_is_not_compared(tmp_path: Path, disks: Path) -> None:
    meta = disks / "node-2" / "meta.properties"
    meta.write_text(meta.read_text().replace("cluster.id=", "cluster.id=x"))
    _, told = evidence(tmp_path, disks / "node-100", disks / "node-2")
    assert told["copies"][1]["compared"] == "another cluster"


@pytest.mark.parametrize(("cut", "torn"), [(7, True), (0, None)])
def test_a_torn_end_is_no_part_of_the_log(disks: Path, cut: int, torn: bool | None) -> None:
    path = disks / "node-102" / SEGMENT
    path.write_bytes(path.read_bytes()[: -cut or None])
    copy = read_quorum_copy(disks / "node-102")
    assert copy.end == (51 if torn else 52)
    assert (copy.defect.torn if copy.defect else None) is torn


def test_a_log_that_is_broken_before_its_end_says_so(tmp_path: Path, disks: Path) -> None:
    path = disks / "node-102" / SEGMENT
    data = bytearray(path.read_bytes())
    data[2000] ^= 1
    path.write_bytes(bytes(data))
    copy = read_quorum_copy(disks / "node-102")
    assert copy.defect is not None and not copy.defect.torn
    assert "BROKEN BEFORE ITS END" in shown(tmp_path, disks / "node-102").out


def test_the_voter_set_of_a_later_snapshot_counts(disks: Path) -> None:
    """The log goes on behind the snapshot, and the segment that held the record is gone."""
    directory = disks / "node-100" / "__cluster_metadata-0"
    bootstrap = directory / "00000000000000000000-0000000000.checkpoint"
    bootstrap.rename(directory / "00000000000000000051-0000000001.checkpoint")
    (directory / "00000000000000000000.log").unlink()
    (directory / "00000000000000000051.log").write_bytes(topic_batch(51, 1))
    copy = read_quorum_copy(disks / "node-100")
    assert (copy.snapshot, copy.start, copy.end, copy.voters_offset) == ((51, 1), 51, 52, 50)
    assert [voter.key.id for voter in copy.voters.voters] == [100, 101, 102]


def test_what_is_no_metadata_log_is_named_and_the_rest_is_shown(tmp_path: Path, disks: Path) -> None:
    (disks / "empty").mkdir()
    (disks / "a-file").write_text("no directory")
    (disks / "a-link").symlink_to(disks / "not-there")
    foreign = disks / "foreign" / "__cluster_metadata-0"
    foreign.mkdir(parents=True)
    (foreign / "00000000000000000000.log").write_bytes(b"a text of somebody else" * 10)
    (disks / "node-101" / "__cluster_metadata-0" / "quorum-state").write_text("{")
    others = [disks / name for name in ("empty", "a-file", "a-link", "node-101")]
    status, told = evidence(tmp_path, disks / "node-100", *others, disks / "foreign")
    assert status == 1
    assert [row["path"] for row in told["unread"]] == [str(other) for other in others]
    assert {row["node"] for row in told["copies"]} == {100, -1}
    assert shown(tmp_path, disks / "empty").status == 2


def test_a_node_that_holds_its_lock_runs(disks: Path) -> None:
    import subprocess
    import sys

    (disks / "node-100" / ".lock").touch()
    assert read_quorum_copy(disks / "node-100").running is RunningNode.STOPPED
    lock = "import fcntl,sys; f=open(sys.argv[1],'r+'); fcntl.lockf(f, fcntl.LOCK_EX); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", lock, str(disks / "node-100" / ".lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as kafka:
        assert kafka.stdout is not None and kafka.stdin is not None
        kafka.stdout.readline()
        assert read_quorum_copy(disks / "node-100").running is RunningNode.RUNS
        kafka.stdin.close()


def _voters(*keys: str) -> VoterSet:
    return VoterSet(tuple(Voter(ReplicaKey(int(key[:3]), key)) for key in keys))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (("100a", "101a", "102a"), ("100a",)),
        (("100a", "101a", "102a"), ("100b",)),
        (("100a", "101a", "102a", "103a", "104a"), ("105a",)),
        (("100a",), ("101a",)),
        (("100a",), ("100a",)),
        (("100a", "101a", "102a"), ("100a", "103a")),
    ],
)
def test_each_voter_set_shares_a_majority_with_the_one_before(
    old: tuple[str, ...], new: tuple[str, ...]
) -> None:
    """KIP-853: one voter at a time, so that any two majorities of neighbouring sets have a voter in common."""
    steps = voter_path(_voters(*old), _voters(*new))
    assert steps[-1] == _voters(*new)
    for before, after in zip((_voters(*old), *steps), steps, strict=False):
        assert after.voters
        assert majorities_overlap(before, after)
        assert len(set(before.keys) ^ set(after.keys)) <= 1


def test_a_snapshot_is_committed_and_a_newer_epoch_undoes_a_majority() -> None:
    copies = [read_quorum_copy(LOGS / f"node-{node}") for node in (100, 101)]
    best = copies[0]

    def mark(*changed: QuorumCopy) -> int:
        return committed_to(best, [compared(best, copy, (None, 30)) for copy in changed])[0]

    assert mark(*copies) == 51
    assert mark(copies[0], copies[1]._replace(election=copies[1].election._replace(epoch=2))) == 0  # type: ignore[union-attr]
    assert mark(copies[0]._replace(snapshot=(40, 1))) == 40
    assert compared(best, copies[1], (None, 0)).relation is CopyRelation.NOT_COMPARED


def test_an_acl_and_a_configuration_of_the_lost_part_are_decoded(tmp_path: Path, disks: Path) -> None:
    from recovery.metadata_log.field_writer import FieldWriter

    writer = FieldWriter()
    for number in (1, 18, 0):
        writer.varint(number)
    writer.uuid(TOPIC_ID)
    writer.int8(2)
    writer.string("orders")
    writer.int8(3)
    writer.string("User:alice")
    writer.string("*")
    writer.int8(3)
    writer.int8(3)
    writer.tags([])
    config = encode(ConfigRecord(2, "orders", "retention.ms", "7"))
    append(disks / "node-102", data_batch(52, 1, 1_800_000_000_000, [writer.data(), config]))
    append(disks / "node-101", leader_change_batch(51, 2, 1_800_000_000_000, 101, (100, 101, 102)))
    _, told = evidence(tmp_path, disks / "node-101", disks / "node-102")
    assert [change["text"] for change in told["lacks"]] == [
        f"ACL {TOPIC_ID}: User:alice from host * is allowed READ on topic orders",
        "retention.ms set to 7 for topic orders",
    ]


@pytest.mark.parametrize("left", [(102, 1, 2), (1, 2)])
def test_the_next_command_makes_a_plan_from_the_best_copy(
    disks: Path, tmp_path: Path, left: tuple[int, ...]
) -> None:
    ended = shown(tmp_path, *(disks / f"node-{node}" for node in left))
    line = next(line for line in ended.err.splitlines() if line.startswith("next, only where the disks"))
    command = line[line.index("ktriage quorum rebuild") : line.index(" (with --data")]
    if 102 not in left:
        assert "--into NEW_LOG_DIR --voter NODE@HOST:PORT --dead 100 --dead 101 --dead 102" in command
        blank = tmp_path / "blank"
        blank.mkdir()
        properties = (disks / "node-102" / "meta.properties").read_text()
        properties = properties.replace("node.id=102", "node.id=103").replace(
            "directory.id=", "directory.id=B"
        )
        (blank / "meta.properties").write_text(properties)
        command = command.replace("NEW_LOG_DIR", str(blank)).replace("NODE@HOST:PORT", "103@127.0.0.1:1")
    planned = invoke(tmp_path, *shlex.split(command))
    assert planned.status == 0, planned
    assert "next: ktriage quorum rebuild rebuild.json --rehearse" in planned.err


def test_whoever_reads_a_copy_of_a_rebuilt_log_knows_of_the_rebuild_from_then_on(
    disks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who never saw the rebuilt quorum: its voter is down, and old voters may lead."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    plan = made(disks, voters=(VOTER._replace(port=1),))
    assert "REBUILT" not in shown(tmp_path, disks / "node-100").out
    assert remembered_quorum(plan.cluster_id) is None
    apply_rebuild(plan, "a test", silent)
    ended = shown(tmp_path, disks / "node-100", disks / "node-101")
    told = ended.out
    order = [ended.err.index(word) for word in ("next: stop controllers 101-", "then start controller 100-")]
    assert order == sorted(order) and "quorum rebuild --from" not in ended.err, ended
    assert "the log of node 101 does NOT hold this rebuild" in told
    assert (
        f"REBUILT in quorum epoch {plan.epoch:,}: no node must start again with a metadata log of 101-"
        in told
    )
    known = remembered_quorum(plan.cluster_id)
    assert known is not None and (known.epoch, known.has_led) == (plan.epoch, False)
    assert known.at == datetime.fromtimestamp(plan.time_ms // 1000, UTC).isoformat(), "not when it was read"
    assert [key.id for key in known.replaced] == [101, 102] and known.addresses == ("127.0.0.1:1",)
    append(disks / "node-100", leader_change_batch(plan.end, plan.epoch + 1, 5, 100, (100,)))
    (disks / "node-1" / SEGMENT).write_bytes((disks / "node-100" / SEGMENT).read_bytes())
    ended = shown(tmp_path, disks / "node-1")
    known = remembered_quorum(plan.cluster_id)
    assert known is not None and (known.epoch, known.has_led) == (plan.epoch + 1, True)
    # Of brokers' disks too another rebuild comes only where the rebuilt voter's disk is gone.
    order = [
        ended.err.index(word)
        for word in ("then start controller 100-", "only where the disk of controller 100 is gone for good")
    ]
    assert order == sorted(order), ended


def test_the_logs_of_voters_alone_do_not_show_that_nobody_rebuilt_the_quorum(tmp_path: Path) -> None:
    """Old voters that lead again: theirs never learn of it. A broker that followed the rebuilt quorum has it."""
    nothing, proof = (
        "no rebuild of the quorum is in this log",
        "a voter that a rebuild replaced never hears of it",
    )
    of_voters = shown(tmp_path, *(LOGS / f"node-{node}" for node in (101, 102))).out
    assert nothing in of_voters and f"{proof}. Read the logs of brokers too" in of_voters
    with_broker = shown(tmp_path, *(LOGS / f"node-{node}" for node in (101, 102, 1))).out
    assert nothing in with_broker and proof not in with_broker


def test_where_the_voters_are_a_setting_the_next_step_is_that_setting_and_no_log_tells_of_a_rebuild() -> None:
    read = gather_evidence((LOGS / "node-1",))
    static = read.chosen._replace(kraft_version=0, voters=VoterSet(()))
    found = read._replace(chosen=static)
    (told,) = next_plan_lines(found)
    assert "set controller.quorum.voters to the surviving controller alone" in told, told
    assert "No controller must start again with the former setting" in told, told
    shown = "\n".join(evidence_lines(found))
    assert "kraft.version 0: the voters are in no record" in shown and "nobody rebuilt" not in shown, shown


def test_a_metadata_log_dir_without_partitions_is_no_log_dir_of_the_next_command(
    disks: Path, tmp_path: Path
) -> None:
    """A node of both roles whose metadata.log.dir is none of its log.dirs: its copy is compared, and no more."""
    properties = disks / "node-2" / "meta.properties"
    lines = properties.read_text().splitlines()
    lines = [
        "directory.id=AAAAAAAAAAAAAAAAAAAAAw" if line.startswith("directory.id=") else line for line in lines
    ]
    properties.write_text("\n".join(lines) + "\n")
    ended = shown(tmp_path, *(disks / f"node-{node}" for node in (102, 1, 2)))
    line = next(line for line in ended.err.splitlines() if line.startswith("next, only where the disks"))
    assert f"--compare {disks / 'node-2'} --data {disks / 'node-1'} --data LOG_DIR_OF_BROKER_2" in line, line


def test_the_next_command_names_the_voters_that_an_earlier_rebuild_replaced(
    disks: Path, tmp_path: Path
) -> None:
    """The quorum of 100 alone was rebuilt, got 103, and is lost again: 101 and 102 could still come back."""
    plan = made(disks, voters=(VOTER._replace(port=1),))
    apply_rebuild(plan, "a test", silent)
    copy = read_quorum_copy(disks / "node-100")
    added = Voter(ReplicaKey(103, "AAAAAAAAAAAAAAAAAAAAAw"), (VoterEndpoint("CONTROLLER", "127.0.0.1", 3),))
    append(disks / "node-100", leader_change_batch(copy.end, copy.epoch + 1, 5, 100, (100,)))
    both = VoterSet((*copy.voters.voters, added))
    append(disks / "node-100", voters_batch(copy.end + 1, copy.epoch + 1, 5, [both]))
    ended = shown(tmp_path, *(disks / f"node-{node}" for node in (100, 2)))
    line = next(line for line in ended.err.splitlines() if line.startswith("next, only where the disks"))
    command = line[line.index("ktriage quorum rebuild") : line.index(" (with --data")]
    assert "--dead 101 --dead 102 --dead 103" in command
    assert command.count("--data") == 2
    # Broker 1 has a record of its own, which another decision is about.
    command = command.replace("--data LOG_DIR_OF_BROKER_1", "--unscanned 1")
    planned = invoke(tmp_path, *shlex.split(command))
    assert planned.status == 0, planned
