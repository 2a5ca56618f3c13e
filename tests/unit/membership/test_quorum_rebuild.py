"""``quorum rebuild`` on the directories that real Kafka 4.3.1 left: 100 survives, 101 and 102 are gone for good."""

from __future__ import annotations

import ast
import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backends.disk_scan.scan_script import scan_script
from backends.metadata_log.batch_writer import data_batch, leader_change_batch, voters_batch
from backends.metadata_log.quorum_copy import read_quorum_copy
from console.errors import InputError, NotDone
from console.jobs.quorum.lost_quorum_evidence import history_of
from console.jobs.quorum.quorum_rebuild import (
    PlannedRebuild,
    RebuildRefused,
    RebuildRequest,
    apply_rebuild,
    make_rebuild,
    read_rebuild,
    save_rebuild,
    script_of,
    undo_rebuild,
)
from console.jobs.quorum.quorum_rebuild_report import dead_lines, rebuild_lines
from recovery.membership.quorum_rebuild import GivenVoter, RebuildPlan, from_json, parsed_voter, to_json
from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet
from recovery.metadata_log.log_changes import ConfigSubject, PartitionSubject
from recovery.metadata_log.record_codec import encode
from recovery.metadata_log.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    ResourceType,
    TopicRecord,
)
from tests.unit.cli.command_process import command_line, invoke, typing

LOGS = Path(__file__).parent / "lost_quorum"
SEGMENT = "00000000000000000000.log"
METADATA = "__cluster_metadata-0"
VOTER = GivenVoter(100, "", "127.0.0.1", 27644)
ORDERS = "orders"


def silent(_host: str, _port: int) -> bool:
    return False


@pytest.fixture
def disks(tmp_path: Path) -> Path:
    """The directories, to be changed."""
    shutil.copytree(LOGS, tmp_path / "disks")
    return tmp_path / "disks"


def request(disks: Path, **changed: Any) -> RebuildRequest:
    return replace(
        RebuildRequest(disks / "node-100", (VOTER,), (101, 102), data=(disks / "node-1", disks / "node-2")),
        **changed,
    )


def made(disks: Path, **changed: Any) -> RebuildPlan:
    return make_rebuild(request(disks, **changed), silent).plan


def reasons(disks: Path, answering: Callable[[str, int], bool] = silent, **changed: Any) -> str:
    with pytest.raises(RebuildRefused) as refused:
        make_rebuild(request(disks, **changed), answering)
    return "\n".join(refused.value.reasons)


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


# What is written


def test_the_survivor_becomes_the_only_voter_in_an_epoch_that_nobody_can_have_been_in(disks: Path) -> None:
    before = contents(disks / "node-100" / METADATA)
    plan = made(disks)
    assert contents(disks / "node-100" / METADATA) == before
    apply_rebuild(plan, "a test", silent)
    copy = read_quorum_copy(disks / "node-100")
    assert [voter.key for voter in copy.voters.voters] == [plan.key]
    assert (copy.end, copy.epoch) == (53, 1_001)
    # One voter fewer in each record, as KIP-853 has it.
    assert [[key.id for key in voters.keys] for voters in plan.steps] == [[100, 102], [100]]
    after = contents(disks / "node-100" / METADATA)
    assert after[SEGMENT].startswith(before[SEGMENT])
    assert {name: data for name, data in after.items() if name != SEGMENT} == {
        name: data for name, data in before.items() if name != SEGMENT
    }
    assert contents(Path(plan.backup) / METADATA) == before
    lines = (Path(plan.backup) / "journal.jsonl").read_text().splitlines()
    assert [json.loads(line)["what"] for line in lines] == ["applying", "applied"]


def test_a_torn_end_is_cut_off_and_named(disks: Path) -> None:
    log = disks / "node-100" / METADATA / SEGMENT
    whole = log.read_bytes()
    log.write_bytes(whole + data_batch(51, 1, 5, [b"half"])[:-3])
    plan = made(disks)
    assert (plan.whole_bytes, plan.cut_bytes) == (len(whole), len(data_batch(51, 1, 5, [b"half"])) - 3)
    apply_rebuild(plan, "a test", silent)
    copy = read_quorum_copy(disks / "node-100")
    assert (copy.defect, copy.end) == (None, 53)
    undo_rebuild(plan, "a test")
    assert log.read_bytes() == whole + data_batch(51, 1, 5, [b"half"])[:-3]


def test_the_epoch_is_above_what_any_directory_knows(disks: Path) -> None:
    state = disks / "node-2" / METADATA / "quorum-state"
    state.write_text(state.read_text().replace('"leaderEpoch":1', '"leaderEpoch":700'))
    assert made(disks, compare=(disks / "node-2",)).epoch == 1_700


def blank_controller(disks: Path, node: int = 100) -> Path:
    """As kafka-storage format --no-initial-controllers leaves it."""
    path = disks / "blank"
    path.mkdir()
    meta = (disks / "node-100" / "meta.properties").read_text().splitlines()
    changed = {"node.id": str(node), "directory.id": "BBBBBBBBBBBBBBBBBBBBBg"}
    lines = [
        f"{key}={changed.get(key, value)}" for key, _, value in (line.partition("=") for line in meta[2:])
    ]
    (path / "meta.properties").write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("node", [100, 103])
def test_a_blank_controller_gets_the_copy_of_a_broker(disks: Path, node: int) -> None:
    blank = blank_controller(disks, node)
    changed = {
        "source": disks / "node-1",
        "into": blank,
        "dead": (100, 101, 102),
        "voters": (GivenVoter(node, "", "127.0.0.1", 5),),
    }
    plan = made(disks, **changed)
    apply_rebuild(plan, "a test", silent)
    copy = read_quorum_copy(blank)
    assert [(v.key.id, v.key.directory_id) for v in copy.voters.voters] == [(node, "BBBBBBBBBBBBBBBBBBBBBg")]
    assert (copy.node, copy.end, copy.election) == (node, 52 + len(plan.steps), None)
    assert (
        (blank / METADATA / SEGMENT)
        .read_bytes()
        .startswith((disks / "node-1" / METADATA / SEGMENT).read_bytes())
    )
    undo_rebuild(plan, "a test")
    assert not (blank / METADATA).exists()
    assert not any(path.name.endswith(("part", "undone")) for path in blank.iterdir())


# What is refused


def test_every_old_voter_is_named_as_dead(disks: Path) -> None:
    assert "2 of 3 voters would be left, which is a majority (2). Nothing is lost then" in reasons(
        disks, dead=(101,)
    )
    assert "--dead 7: no voter" in reasons(disks, dead=(101, 102, 7))
    assert "it is the node that becomes the voter" in reasons(disks, dead=(100, 101, 102))


def test_a_voter_that_answers_is_not_dead(disks: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        text = reasons(disks, lambda _, asked: asked == 18650)
        assert "voter 102 is named with --dead, and something listens at 127.0.0.1:18650" in text
        # Over the network, where the new voter is to listen.
        with pytest.raises(RebuildRefused) as refused:
            make_rebuild(request(disks, voters=(GivenVoter(100, "", "127.0.0.1", port),)))
        assert "where controller 100 is to start" in "\n".join(refused.value.reasons)
    plan = made(disks)
    with pytest.raises(RebuildRefused):
        apply_rebuild(plan, "a test", lambda _, asked: asked == 18055)
    assert read_quorum_copy(disks / "node-100").end == 51


def newer_voters_in(directory: Path) -> None:
    """The voters of node 102's copy become 102, 103 and 104, at ports of their own."""
    copy = read_quorum_copy(directory)
    stays = next(voter for voter in copy.voters.voters if voter.key.id == 102)

    def added(node: int) -> Voter:
        key = ReplicaKey(node, f"AAAAAAAAAAAAAAAAAAAA{node - 100}w")
        return Voter(key, (VoterEndpoint("CONTROLLER", "127.0.0.1", node),))

    with (directory / METADATA / SEGMENT).open("ab") as log:
        log.write(voters_batch(copy.end, copy.epoch + 1, 5, [VoterSet((stays, added(103), added(104)))]))


def test_voters_that_only_a_newer_copy_knows_are_dead_too(disks: Path) -> None:
    """They may lead, whatever the chosen copy says: 103 and 104 alone have a majority."""
    newer_voters_in(disks / "node-102")
    old: dict[str, Any] = {"compare": (disks / "node-102",), "accept_loss_of": (102,)}
    text = reasons(disks, **old)
    assert "voters 103, 104 of a copy that goes on beyond the chosen one are not named with --dead" in text
    assert "which is a majority (2)" in text
    every = old | {"dead": (101, 102, 103, 104)}
    assert "voter 104 is named with --dead, and something listens at" in reasons(
        disks, lambda _, port: port == 104, **every
    )
    plan = made(disks, **every)
    with pytest.raises(RebuildRefused):
        apply_rebuild(plan, "a test", lambda _, port: port == 103)
    assert "controller 104, directory id AAAAAAAAAAAAAAAAAAAA4w" in "\n".join(dead_lines(plan))
    assert [key.id for key in plan.steps[-1].keys] == [100]
    assert from_json(to_json(plan)) == plan


def rebuilt_and_led(disks: Path) -> RebuildPlan:
    """100 was rebuilt to be the only voter, and leads."""
    plan = made(disks)
    apply_rebuild(plan, "a test", silent)
    with (disks / "node-100" / METADATA / SEGMENT).open("ab") as log:
        log.write(as_leader(plan))
    return plan


def test_voters_that_an_earlier_rebuild_replaced_are_dead_too(disks: Path) -> None:
    """101 and 102 are a majority of the set before it, and elect without asking anybody."""
    rebuilt_and_led(disks)
    second: dict[str, Any] = {
        "into": blank_controller(disks, 103),
        "voters": (GivenVoter(103, "", "127.0.0.1", 5),),
        "accept_loss_of": (1, 2),
    }
    text = reasons(disks, **second, dead=(100,))
    assert "voters 101, 102, which an earlier rebuild replaced, are not named with --dead" in text
    every = second | {"dead": (100, 101, 102)}
    assert "voter 101 is named with --dead, and something listens at" in reasons(
        disks, lambda _, port: port == 18055, **every
    )
    plan = made(disks, **every)
    assert {voter.key.id for voter in plan.replaced.voters} == {101, 102}
    with pytest.raises(RebuildRefused):
        apply_rebuild(plan, "a test", lambda _, port: port == 18650)
    assert "controller 102, directory id" in "\n".join(dead_lines(plan))
    assert from_json(to_json(plan)) == plan


def test_the_only_voter_of_a_whole_log_is_started(disks: Path) -> None:
    rebuilt_and_led(disks)
    alone: dict[str, Any] = {"dead": (), "unscanned": (1, 2), "data": ()}
    text = reasons(disks, **alone)
    assert text.endswith("controller 100 is the only voter already. Nothing is lost: start it"), text
    assert "\n" not in text
    # A disk knows more than the log does.
    partition_folder(disks, orders_id(disks), 9)
    assert "Nothing is lost" not in reasons(disks, dead=())


@pytest.mark.parametrize("verb", ["evidence", "rebuild"])
def test_a_directory_of_a_partition_is_no_metadata_log(disks: Path, tmp_path: Path, verb: str) -> None:
    partition_folder(disks, orders_id(disks), 0)
    shutil.copy(disks / "node-100" / METADATA / SEGMENT, disks / "node-1" / f"{ORDERS}-0")
    wrong = str(disks / "node-1" / f"{ORDERS}-0")
    making = ("--from", wrong, "--voter", "100@127.0.0.1:1", "--plan-out", "plan.json")
    ended = invoke(tmp_path, "ktriage", "quorum", verb, *(making if verb == "rebuild" else (wrong,)))
    assert ended.status == 2, ended
    assert f"{wrong}: is no directory {METADATA}, and has none in it" in ended.err
    assert not (tmp_path / "plan.json").exists()


def test_a_voter_that_comes_up_meanwhile_is_told(disks: Path) -> None:
    """101 is silent before the log is written, and answers afterwards."""
    plan, asked = made(disks), list[int]()

    def answering(_host: str, port: int) -> bool:
        asked.append(port)
        return port == 18055 and asked.count(port) == 2

    [line] = apply_rebuild(plan, "a test", answering).returned
    assert line.startswith("VOTER 101 ANSWERS NOW at 127.0.0.1:18055"), line
    assert read_quorum_copy(disks / "node-100").voters == plan.steps[-1]
    assert apply_rebuild(plan, "a test", silent).returned == ()


def test_a_node_that_runs_is_not_written(disks: Path) -> None:
    plan = made(disks)
    (disks / "node-100" / ".lock").touch()
    with HeldLock(disks / "node-100" / ".lock"):
        assert "node 100 runs" in reasons(disks)
        with pytest.raises(NotDone, match="its node runs"):
            apply_rebuild(plan, "a test", silent)
    apply_rebuild(plan, "a test", silent)


class HeldLock:
    """A process that holds the lock as Kafka does."""

    def __init__(self, path: Path) -> None:
        lock = "import fcntl,sys; f=open(sys.argv[1],'r+'); fcntl.lockf(f, fcntl.LOCK_EX); print(flush=True)"
        lock += "; input()"
        self._kafka = subprocess.Popen(
            [sys.executable, "-c", lock, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __enter__(self) -> None:
        assert self._kafka.stdout is not None
        self._kafka.stdout.readline()

    def __exit__(self, *_: object) -> None:
        self._kafka.kill()
        self._kafka.communicate()


def test_what_another_copy_has_is_lost_only_by_its_name(disks: Path) -> None:
    """102 alone has topic kept. Before that it has one idle record more, which counts for nothing."""
    assert made(disks, compare=(disks / "node-102",)).losses == ()
    with (disks / "node-102" / METADATA / SEGMENT).open("ab") as log:
        log.write(data_batch(52, 1, 5, [encode(TopicRecord("kept", "AAAAAAAAAAAAAAAAAAAA7w"))]))
    text = reasons(disks, compare=(disks / "node-102",))
    assert "node 102 has offsets 51 to 52 that the chosen copy lacks" in text
    plan = made(disks, compare=(disks / "node-102",), accept_loss_of=(102,))
    assert any("topic kept created" in line for line in plan.losses)


def test_brokers_disks_are_scanned_or_named(disks: Path) -> None:
    assert "the disks of broker 2 were not scanned" in reasons(disks, data=(disks / "node-1",))
    plan = made(disks, data=(disks / "node-1",), unscanned=(2,))
    assert any("broker 2" in line for line in plan.unchecked)


def test_the_copy_in_a_brokers_log_dir_is_compared_unasked(disks: Path) -> None:
    with (disks / "node-1" / METADATA / SEGMENT).open("ab") as log:
        log.write(data_batch(52, 1, 5, [encode(TopicRecord("kept", "AAAAAAAAAAAAAAAAAAAA7w"))]))
    assert "node 1 has offsets 51 to 52 that the chosen copy lacks" in reasons(disks)


def test_a_record_that_kafka_itself_refuses_is_no_ground(disks: Path) -> None:
    """Broker 1 is registered with another broker epoch."""
    unknown = BrokerRegistrationChangeRecord(1, 7, True)
    with (disks / "node-100" / METADATA / SEGMENT).open("ab") as log:
        log.write(data_batch(51, 1, 5, [encode(unknown)]))
    assert "no controller starts with it" in reasons(disks)


def partition_folder(disks: Path, topic_id: str, epoch: int, broker: int = 1, partition: int = 0) -> None:
    folder = disks / f"node-{broker}" / f"{ORDERS}-{partition}"
    folder.mkdir(exist_ok=True)
    (folder / SEGMENT).touch()
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    (folder / "leader-epoch-checkpoint").write_text(f"0\n1\n{epoch} 0\n")


UNKNOWN = "AAAAAAAAAAAAAAAAAAAA7w"


def orders_id(disks: Path) -> str:
    (topic_id,) = history_of(read_quorum_copy(disks / "node-100")).topic_ids(ORDERS)
    return topic_id


def test_a_partition_whose_leader_epoch_the_copy_does_not_know_is_written_above_all_epochs(
    disks: Path,
) -> None:
    topic_id = orders_id(disks)
    partition_folder(disks, topic_id, 0)
    assert made(disks).partitions == ()
    partition_folder(disks, topic_id, 9)
    plan = made(disks)
    (written,) = plan.partitions
    before = dict(history_of(read_quorum_copy(disks / "node-100")).present())[PartitionSubject(topic_id, 0)]
    assert (written.topic, written.known_epoch, written.disk_epoch) == (ORDERS, 0, 9)
    assert "epoch 1009, ISR 1," in "\n".join(rebuild_lines(plan, Path("plan.json")))
    apply_rebuild(plan, "a test", silent)
    copy = read_quorum_copy(disks / "node-100")
    assert (copy.end, copy.epoch, copy.defect) == (54, plan.epoch, None)
    after = dict(history_of(copy).present())[PartitionSubject(topic_id, 0)]
    assert (after.leader, after.leader_epoch, after.isr) == (-1, 1_009, (1,))
    assert (after.replicas, after.directories) == (before.replicas, before.directories)
    assert after.partition_epoch > before.partition_epoch
    # What the plan itself wrote is no change of the rebuilt quorum.
    undo_rebuild(plan, "a test")
    assert read_quorum_copy(disks / "node-100").end == 51


def test_a_broker_that_runs_keeps_growing_its_logs(disks: Path) -> None:
    partition_folder(disks, orders_id(disks), 9)
    (disks / "node-1" / ".lock").touch()
    with HeldLock(disks / "node-1" / ".lock"):
        assert "broker 1 run, and the copy lacks what they have applied" in reasons(disks)


def test_partitions_of_a_broker_that_was_not_scanned_get_an_epoch_that_a_margin_covers(disks: Path) -> None:
    plan = made(disks, data=(disks / "node-1",), unscanned=(2,))
    history = dict(history_of(read_quorum_copy(disks / "node-100")).present())
    on_2 = {subject for subject, now in history.items() if 2 in now.replicas}
    assert {(one.topic_id, one.partition) for one in plan.partitions} == on_2
    for one in plan.partitions:
        before = history[PartitionSubject(one.topic_id, one.partition)]
        assert one.registration == before._replace(
            leader_epoch=before.leader_epoch + 1_000, partition_epoch=before.partition_epoch + 1_000
        )
    assert f"its {len(on_2)} partitions get leader epochs 1,000 above" in "\n".join(plan.unchecked)


def test_topics_that_only_disks_know_are_kept_with_their_ids_or_named(disks: Path) -> None:
    payments = disks / "node-1" / "payments-0"
    partition_folder(disks, UNKNOWN, 7)
    (disks / "node-1" / f"{ORDERS}-0").rename(payments)
    assert f"topics whose ids the copy does not know: payments ({UNKNOWN})" in reasons(disks)
    assert made(disks, accept_strays=True).unchecked
    plan = made(disks, keep_strays=True)
    apply_rebuild(plan, "a test", silent)
    assert [(one.topic, one.known_from) for one in from_json(to_json(plan)).restored_topics] == [
        ("payments", None)
    ]
    history = history_of(read_quorum_copy(disks / "node-100"))
    assert history.topic_name(UNKNOWN) == "payments"
    retention = ConfigSubject(ResourceType.TOPIC, "payments", "retention.ms")
    assert [row.change for row in history.of(retention)] == [ConfigRecord(*retention, "-1")]
    after = dict(history.present())[PartitionSubject(UNKNOWN, 0)]
    assert (after.replicas, after.isr, after.leader, after.leader_epoch) == ((1,), (1,), -1, 1_007)


def test_a_topic_that_cannot_be_kept_whole_is_named(disks: Path) -> None:
    partition_folder(disks, UNKNOWN, 7, partition=2)
    text = reasons(disks, keep_strays=True)
    assert f"topic {ORDERS} ({UNKNOWN}) cannot be kept: the copy has a topic of that name" in text
    assert "no scanned disk has its partitions 0, 1" in text


def test_a_log_that_is_broken_before_its_end_is_not_used(disks: Path) -> None:
    log = disks / "node-100" / METADATA / SEGMENT
    data = bytearray(log.read_bytes())
    data[2000] ^= 1
    log.write_bytes(bytes(data))
    assert "the log is broken before its end" in reasons(disks)


def test_another_cluster_a_broker_and_several_voters_are_refused(disks: Path) -> None:
    blank = blank_controller(disks)
    meta = blank / "meta.properties"
    meta.write_text(meta.read_text().replace("cluster.id=", "cluster.id=x"))
    assert "its meta.properties names cluster x" in reasons(disks, into=blank)
    assert "node 1 is a broker, and no controller" in reasons(
        disks, source=disks / "node-1", voters=(GivenVoter(1, "", "h", 5),), dead=(100, 101, 102)
    )
    assert "the quorum begins with one voter" in reasons(disks, voters=(VOTER, GivenVoter(101, "", "h", 5)))
    assert "it holds a metadata log already" in reasons(disks, into=disks / "node-101")


def test_without_dynamic_voters_it_says_what_to_change(disks: Path) -> None:
    directory = disks / "node-100" / METADATA
    (directory / "00000000000000000000-0000000000.checkpoint").unlink()
    (directory / SEGMENT).write_bytes(leader_change_batch(0, 1, 5, 100, (100, 101, 102)))
    text = reasons(disks)
    assert "set controller.quorum.voters to the surviving controller alone" in text
    assert "no voter of the lost quorum" not in text


@pytest.mark.parametrize(
    "text", ["100", "x@h:1", "100@h", "100@h:0", "100@h:70000", "100@a b:1 ", "100@h:1:2"]
)
def test_a_voter_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ValueError, match="give NODE@HOST:PORT"):
        parsed_voter(text)


def test_voters_in_both_forms() -> None:
    assert parsed_voter("100@CONTROLLER://host-1:9093") == GivenVoter(100, "CONTROLLER", "host-1", 9093)
    assert parsed_voter("100@[::1]:9093") == GivenVoter(100, "", "::1", 9093)


# The plan's file


def test_a_plan_comes_back_from_its_file_and_an_edited_one_does_not(disks: Path, tmp_path: Path) -> None:
    plan = made(disks)
    file = tmp_path / "plan.json"
    save_rebuild(plan, file)
    assert read_rebuild(file) == plan
    with pytest.raises(InputError, match="never overwritten"):
        save_rebuild(plan, file)
    file.write_text(file.read_text().replace('"dead": [\n    101,', '"dead": [\n    100,'))
    with pytest.raises(InputError, match="it was edited"):
        read_rebuild(file)
    for text in ("", "{}", "[]", '{"format": "ktriage.quorum-rebuild/4"}'):
        file.write_text(text)
        with pytest.raises(InputError):
            read_rebuild(file)


def test_a_plan_holds_only_for_what_it_was_made_from(disks: Path) -> None:
    plan = made(disks)
    with (disks / "node-100" / METADATA / SEGMENT).open("ab") as log:
        log.write(data_batch(51, 1, 5, [b"x"]))
    with pytest.raises(NotDone, match="changed since the plan was made"):
        apply_rebuild(plan, "a test", silent)
    shutil.rmtree(disks / "node-100")
    shutil.copytree(LOGS / "node-101", disks / "node-100")
    with pytest.raises(NotDone, match="apply the plan on the host that has it"):
        apply_rebuild(plan, "a test", silent)


# Whole or not at all


def test_a_second_apply_writes_nothing(disks: Path) -> None:
    plan = made(disks)
    apply_rebuild(plan, "a test", silent)
    before = contents(disks / "node-100" / METADATA)
    assert apply_rebuild(plan, "a test", silent).files.already
    assert contents(disks / "node-100" / METADATA) == before


@pytest.mark.parametrize("into", [False, True])
def test_a_full_disk_leaves_the_log_as_it_was(
    disks: Path, monkeypatch: pytest.MonkeyPatch, into: bool
) -> None:
    changed: dict[str, Any] = {"into": blank_controller(disks), "dead": (100, 101, 102)} if into else {}
    plan = made(disks, **changed)
    target = Path(plan.target)
    before = contents(target) if target.exists() else None
    writes = iter(range(100))

    def full(descriptor: int) -> None:
        # The back-up fits, the new segment does not.
        if next(writes) >= (2 if into else 5):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(NotDone, match="No space left"):
            apply_rebuild(plan, "a test", silent)
    assert (contents(target) if target.exists() else None) == before
    apply_rebuild(plan, "a test", silent)
    assert read_quorum_copy(target).voters == plan.steps[-1]


def test_what_stands_after_a_failed_write_is_told_as_it_is(
    disks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last writes follow when the new log is in its place: then it is not as it was."""
    plan = made(disks)
    target = Path(plan.target)
    apply_rebuild(plan, "a test", silent)
    undo_rebuild(plan, "a test")  # the back-up stays, so that each run writes the same
    before = contents(target)
    told = []
    for last in range(40):
        writes = iter(range(100))

        def full(descriptor: int, last: int = last, writes: Iterator[int] = writes) -> None:
            if next(writes) >= last:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(NotDone, match="No space left") as failed:
                apply_rebuild(plan, "a test", silent)
        told.append("the log is as it was" in str(failed.value))
        assert told[-1] == (contents(target) == before), failed.value
        if not told[-1]:
            assert "the log is rebuilt" in str(failed.value)
            break
    assert set(told) == {True, False}
    assert apply_rebuild(plan, "a test", silent).files.already


def killed(work: Callable[[], object], left: int) -> bool:
    """Runs the work in a process of its own, which dies before its call number ``left`` that makes, renames or
    removes a file; whether it died.
    """
    child = os.fork()
    if not child:

        def dying(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal left
            writes = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)
            if writes or event in ("os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.chown"):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(dying)
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


@pytest.mark.parametrize("into", [False, True])
def test_a_run_that_is_killed_leaves_the_old_log_or_the_new_one(disks: Path, into: bool) -> None:
    """Killed at each of its steps, from the beginning each time; the next run finishes the work."""
    changed: dict[str, Any] = {"into": blank_controller(disks), "dead": (100, 101, 102)} if into else {}
    plan = made(disks, **changed)
    target, backup = Path(plan.target), Path(plan.backup)
    shutil.copytree(target.parent, disks / "before")

    def afresh(state: Path) -> None:
        shutil.rmtree(target.parent)
        shutil.copytree(state, target.parent)
        shutil.rmtree(backup, ignore_errors=True)

    def apply() -> None:
        apply_rebuild(plan, "a test", silent)

    left = 1
    while killed(apply, left):
        if target.exists():
            copy = read_quorum_copy(target)
            assert (copy.voters, copy.end) in ((plan.old, 51), (plan.steps[-1], 51 + len(plan.steps))), left
        apply()
        assert read_quorum_copy(target).voters == plan.steps[-1]
        undo_rebuild(plan, "a test")
        afresh(disks / "before")
        left += 1
    assert left > 10
    left, before = 1, contents(disks / "before" / METADATA) if not into else None
    while killed(lambda: undo_rebuild(plan, "a test"), left):
        undo_rebuild(plan, "a test")
        assert (contents(target) if target.exists() else None) == before
        assert not any("ktriage" in path.name for path in target.parent.iterdir()), left
        afresh(disks / "before")
        apply()
        left += 1
    assert left > 3


NO_OP = bytes((1, 20, 0, 0))


def as_leader(plan: RebuildPlan) -> bytes:
    """What a leader begins its epoch with; the segment may end there."""
    return leader_change_batch(plan.end, plan.epoch + 1, 6, plan.key.id, (plan.key.id,))


def as_idle(plan: RebuildPlan) -> bytes:
    return as_leader(plan) + data_batch(plan.end + 1, plan.epoch + 1, 6, [NO_OP])


def as_registered(plan: RebuildPlan) -> bytes:
    own = RegisterControllerRecord(100, UNKNOWN, ())
    return as_leader(plan) + data_batch(plan.end + 1, plan.epoch + 1, 6, [encode(own)])


def as_broker(plan: RebuildPlan) -> bytes:
    broker = RegisterBrokerRecord(1, 53, UNKNOWN, (), None, True, False, ())
    return as_leader(plan) + data_batch(plan.end + 1, plan.epoch + 1, 6, [encode(broker)])


def as_torn(plan: RebuildPlan) -> bytes:
    """A controller that was killed while it wrote."""
    return as_leader(plan)[:9]


def ways_back(plan: RebuildPlan, directory: Path) -> Iterator[Callable[[], str]]:
    """The command and the script: why each refuses; "": it put the old log back."""
    script = directory / "rebuild.py"
    script.write_text(script_of(plan, []))

    def command() -> str:
        try:
            undo_rebuild(plan, "a test")
        except NotDone as refused:
            return str(refused)
        return ""

    def scripted() -> str:
        argv = [sys.executable, "-I", "-S", str(script), "--undo", "--yes", "--reason", "a test"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode == 0) == (not done.stderr), done
        return done.stderr.strip()

    yield from (command, scripted)


@pytest.mark.parametrize("goes_on", [as_leader, as_idle, as_registered, as_broker, as_torn])
def test_there_is_no_way_back_once_the_rebuilt_quorum_has_led(
    disks: Path, tmp_path: Path, goes_on: Callable[[RebuildPlan], bytes]
) -> None:
    """Brokers that run follow it without registering again: a second apply would use its epoch twice."""
    plan = made(disks)
    apply_rebuild(plan, "a test", silent)
    with (disks / "node-100" / METADATA / SEGMENT).open("ab") as log:
        log.write(goes_on(plan))
    before = contents(disks / "node-100" / METADATA)
    for undo in ways_back(plan, tmp_path):
        refused = undo()
        assert "\n" not in refused
        assert "the rebuilt quorum has led in epoch 1002: brokers may have followed it" in refused
        assert contents(disks / "node-100" / METADATA) == before


def test_a_leader_that_had_not_written_its_first_record_has_led_too(disks: Path, tmp_path: Path) -> None:
    plan = made(disks)
    apply_rebuild(plan, "a test", silent)
    state = disks / "node-100" / METADATA / "quorum-state"
    state.write_text('{"leaderId":100,"leaderEpoch":1002,"votedId":100,"data_version":1}')
    for undo in ways_back(plan, tmp_path):
        assert "has led in epoch 1002" in undo()
    state.write_text('{"leaderId":-1,"leaderEpoch":1002,"votedId":100,"data_version":1}')
    for undo in ways_back(plan, tmp_path):
        assert not undo(), "nobody led"
        apply_rebuild(plan, "a test", silent)


@pytest.mark.parametrize("cleaned", [False, True])
def test_what_was_written_in_other_files_is_seen_too(disks: Path, tmp_path: Path, cleaned: bool) -> None:
    """The rebuilt log went on in a second segment; or its first one is in a snapshot, and is gone."""
    plan = made(disks)
    apply_rebuild(plan, "a test", silent)
    directory = disks / "node-100" / METADATA
    (directory / f"{plan.end:020}.log").write_bytes(as_leader(plan))
    if cleaned:
        (directory / SEGMENT).rename(directory / f"{plan.end:020}-{plan.epoch:010}.checkpoint")
    for undo in ways_back(plan, tmp_path):
        assert "There is no way back" in undo()


def test_an_old_log_that_went_on_after_the_way_back_is_kept(disks: Path, tmp_path: Path) -> None:
    plan = made(disks)
    apply_rebuild(plan, "a test", silent)
    undo_rebuild(plan, "a test")
    with (disks / "node-100" / METADATA / SEGMENT).open("ab") as log:
        log.write(data_batch(51, 1, 5, [NO_OP]))
    for undo in ways_back(plan, tmp_path):
        assert "There is no way back" in undo()


def test_there_is_nothing_to_undo_before(disks: Path) -> None:
    with pytest.raises(NotDone, match="nothing was applied"):
        undo_rebuild(made(disks), "a test")


# Scans of hosts where nothing can be installed


def scan_file(directory: Path, *log_dirs: Path) -> Path:
    """The output of the script of ``disk script``."""
    argv = [sys.executable, "-I", "-S", "-", *map(str, log_dirs)]
    done = subprocess.run(argv, input=scan_script(), capture_output=True, text=True, timeout=60, check=True)
    path = directory / f"{log_dirs[0].name}.json"
    path.write_text(done.stdout)
    return path


def test_the_scan_of_a_disk_does_instead_of_the_disk(disks: Path, tmp_path: Path) -> None:
    partition_folder(disks, orders_id(disks), 9)
    data = tuple(scan_file(tmp_path, disks / f"node-{broker}") for broker in (1, 2))
    # By content its last record is idle; a scan tells only that there is one more.
    plan = made(disks, data=data, accept_loss_of=(1,))
    assert plan.partitions == made(disks, accept_loss_of=(1,)).partitions and plan.partitions
    assert any("whether brokers have run since these scans" in line for line in plan.unchecked)
    assert "the disks of broker 2 were not scanned" in reasons(disks, data=data[:1])


def test_a_scan_whose_metadata_log_ends_beyond_the_copy_is_lost_only_by_its_name(
    disks: Path, tmp_path: Path
) -> None:
    with (disks / "node-1" / METADATA / SEGMENT).open("ab") as log:
        for offset in range(52, 60):
            log.write(data_batch(offset, 1, 5, [b"x"]))
    data = (scan_file(tmp_path, disks / "node-1"), disks / "node-2")
    assert "the metadata log of node 1 ends at offset 60 of epoch 1, and the chosen copy at 51" in reasons(
        disks, data=data
    )
    assert made(disks, data=data, accept_loss_of=(1,)).losses
    with pytest.raises(InputError, match="does not have the log itself"):
        made(disks, source=data[0])
    told = invoke(tmp_path, "ktriage", "quorum", "evidence", str(disks / "node-100"), str(data[0]))
    assert told.status == 0, told
    assert "node 1, scanned on" in told.out and "BEYOND this copy" in told.out, told


# The script for a host without ktriage


@pytest.mark.parametrize("into", [False, True])
def test_the_script_writes_the_same_bytes_and_puts_them_back(disks: Path, tmp_path: Path, into: bool) -> None:
    partition_folder(disks, orders_id(disks), 9)
    changed: dict[str, Any] = {"into": blank_controller(disks), "dead": (100, 101, 102)} if into else {}
    plan = made(disks, **changed)
    target = Path(plan.target)
    before = contents(target) if target.exists() else None
    apply_rebuild(plan, "a test", silent)
    expected = contents(target)
    undo_rebuild(plan, "a test")
    shutil.rmtree(plan.backup)
    script = tmp_path / "rebuild.py"
    script.write_text(script_of(plan, ["the plan in words"]))

    def run(*words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-I", "-S", str(script), *words]
        return subprocess.run(argv, input=typed, capture_output=True, text=True, timeout=60, check=False)

    refused = run(typed="101\n")
    assert refused.returncode == 1 and "not confirmed" in refused.stderr, refused
    assert (contents(target) if target.exists() else None) == before
    done = run(typed=" ".join(map(str, plan.dead)) + "\n")
    assert done.returncode == 0, done
    assert "the plan in words" in done.stdout
    assert contents(target) == expected
    again = run("--yes", "--reason", "a test")
    assert again.returncode == 0 and "nothing was written" in again.stdout, again
    undone = run("--undo", "--yes", "--reason", "a test")
    assert undone.returncode == 0, undone
    assert (contents(target) if target.exists() else None) == before
    lines = (Path(plan.backup) / "journal.jsonl").read_text().splitlines()
    assert [json.loads(line)["what"] for line in lines] == ["applying", "applied", "undone"]


def test_the_script_refuses_what_the_command_refuses(disks: Path) -> None:
    plan = made(disks)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        plan = made(disks, voters=(GivenVoter(100, "", "127.0.0.1", listening.getsockname()[1]),))
        script = script_of(plan, [])

        def run() -> str:
            argv = [sys.executable, "-I", "-S", "-", "--yes", "--reason", "a test"]
            done = subprocess.run(argv, input=script, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 1, done
            return done.stderr

        assert "(controller 100): stop it first" in run()
    (disks / "node-100" / ".lock").touch()
    with HeldLock(disks / "node-100" / ".lock"):
        assert "its node runs" in run()
    with (disks / "node-100" / METADATA / SEGMENT).open("ab") as log:
        log.write(b"x")
    assert "changed since the plan was made" in run()
    shutil.rmtree(disks / "node-100")
    shutil.copytree(LOGS / "node-101", disks / "node-100")
    assert "apply the plan on the host that has it" in run()


def test_the_script_is_python_3_8_and_imports_the_standard_library_only(disks: Path) -> None:
    tree = ast.parse(script_of(made(disks), []), feature_version=(3, 8))
    imported = {
        (node.module or "").partition(".")[0] if isinstance(node, ast.ImportFrom) else name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    assert imported <= sys.stdlib_module_names


# The command


def test_the_command_asks_for_each_dead_voter_and_says_every_reason(disks: Path, tmp_path: Path) -> None:
    def command(*words: str) -> Any:
        return invoke(tmp_path, "ktriage", "quorum", "rebuild", *words)

    making = ["--from", str(disks / "node-100"), "--voter", "100@127.0.0.1:1", "--plan-out", "plan.json"]
    ended = command(*making)
    assert ended.status == 1
    assert "voters 101, 102 are not named with --dead" in ended.err
    assert "the disks of brokers 1, 2 were not scanned" in ended.err
    named = ["--dead", "101", "--dead", "102", "--unscanned", "1", "--unscanned", "2"]
    planned = command(*making, *named)
    assert planned.status == 0, planned
    assert "next: ktriage quorum rebuild plan.json --rehearse" in planned.err
    assert "100,101,102 → 100,102 → 100" in planned.out
    assert command("plan.json").status == 2  # no terminal
    assert command("plan.json", "--dead", "101").status == 2
    applied = command("plan.json", "--yes", "--reason", "a test")
    assert applied.status == 0, applied
    assert "sha256" in applied.out
    assert "controller.quorum.bootstrap.servers must name 127.0.0.1:1" in applied.out
    assert "Wipe or rename the log dirs of the old voters" in applied.out
    undone = command("plan.json", "--undo", "--yes", "--reason", "a test", "--output", "json")
    assert undone.status == 0, undone


@pytest.mark.parametrize(
    ("answer", "status", "end"), [("101", 1, 51), ("yes", 1, 51), ("", 1, 51), ("101, 102", 0, 53)]
)
def test_at_a_terminal_each_dead_voter_is_typed(
    disks: Path, tmp_path: Path, answer: str, status: int, end: int
) -> None:
    save_rebuild(made(disks, voters=(GivenVoter(100, "", "127.0.0.1", 1),)), tmp_path / "plan.json")
    ended = typing(tmp_path, command_line("ktriage", "quorum", "rebuild", "plan.json"), answer)
    assert ended.status == status, ended
    assert "never start again with the disks that they had" in ended.err
    assert read_quorum_copy(disks / "node-100").end == end


def test_made_plans_are_values(disks: Path) -> None:
    found = make_rebuild(request(disks), silent)
    assert isinstance(found, PlannedRebuild)
    assert found.evidence.chosen.node == 100
