"""``quorum rebuild``: what is planned, and what is refused, on the directories that real Kafka 4.3.1 left."""

from __future__ import annotations

import json
import shutil
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backends.metadata_log.batch_writer import data_batch, leader_change_batch, voters_batch
from backends.metadata_log.quorum_copy import read_quorum_copy
from console.errors import InputError, NotDone
from console.jobs.quorum.lost_quorum_evidence import history_of, online_directories
from console.jobs.quorum.quorum_rebuild import (
    PlannedRebuild,
    RebuildRefused,
    apply_rebuild,
    make_rebuild,
    read_rebuild,
    save_rebuild,
    undo_rebuild,
)
from console.jobs.quorum.quorum_rebuild_report import (
    dead_lines,
    host_lines,
    next_line,
    rebuild_lines,
    rebuild_markdown,
)
from console.provenance import user
from recovery.membership.quorum_rebuild import GivenVoter, digest, from_json, parsed_voter, to_json
from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet
from recovery.metadata_log.log_changes import ConfigSubject, PartitionSubject
from recovery.metadata_log.record_codec import encode
from recovery.metadata_log.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    RegisterBrokerRecord,
    ResourceType,
    TopicRecord,
)
from tests.command_server import Ended
from tests.unit.cli.command_process import invoke
from tests.unit.membership.rebuilt_disks import (
    LOGS,
    METADATA,
    ORDERS,
    SEGMENT,
    UNKNOWN,
    VOTER,
    HeldLock,
    blank_controller,
    disks,
    made,
    orders_id,
    partition_folder,
    reasons,
    rebuilt_and_led,
    request,
    scan_file,
    silent,
)

__all__ = ["disks"]  # the fixture


def test_the_epoch_is_above_what_any_directory_knows(disks: Path) -> None:
    state = disks / "node-2" / METADATA / "quorum-state"
    state.write_text(state.read_text().replace('"leaderEpoch":1', '"leaderEpoch":700'))
    assert made(disks, compare=(disks / "node-2",)).epoch == 1_700


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

    epoch = copy.epoch + 1
    with (directory / METADATA / SEGMENT).open("ab") as log:
        # Voters in an epoch that nobody led would be those of a rebuild.
        log.write(leader_change_batch(copy.end, epoch, 5, 102, (100, 101, 102)))
        log.write(voters_batch(copy.end + 1, epoch, 5, [VoterSet((stays, added(103), added(104)))]))


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


def test_a_disk_that_a_later_rebuild_replaced_is_not_taken_without_naming_that_rebuild(disks: Path) -> None:
    """100 was made the only voter; whoever has 102's disk must hear of it before it goes on from there."""
    rebuilt = rebuilt_and_led(disks)
    old: dict[str, Any] = {
        "source": disks / "node-102",
        "voters": (GivenVoter(102, "", "127.0.0.1", 5),),
        "dead": (100, 101),
        "compare": (disks / "node-100",),
        "accept_loss_of": (1, 2),
    }
    text = reasons(disks, **old)
    named = (
        f"a later rebuild, in quorum epoch {rebuilt.epoch:,}, stands in another copy, not in the chosen one"
    )
    assert f"{named}: the quorum is {rebuilt.key} since. If its disk is left, start that" in text, text
    assert "the chosen disk, which must never start" in text, text
    # Whoever accepts the loss of a node's changes has not given up the quorum.
    nodes = old | {"accept_loss_of": (1, 2, 100)}
    assert f"--accept-loss-of-rebuild {rebuilt.epoch}" in reasons(disks, **nodes)
    assert named in reasons(disks, **nodes | {"accept_loss_of_rebuild": (rebuilt.epoch + 1,)})
    plan = made(disks, **nodes | {"accept_loss_of_rebuild": (rebuilt.epoch,)})
    assert plan.losses[0].startswith(named), plan.losses


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


def test_a_log_dir_that_was_not_given_is_named(disks: Path) -> None:
    """Broker 2 got a second log dir; that which was given is no ground to say that none was."""
    history = history_of(read_quorum_copy(disks / "node-100"))
    (first,) = online_directories(history, 2)
    second = "BBBBBBBBBBBBBBBBBBBBBg"
    registered = next(
        row.change
        for row in history.rows()
        if isinstance(row.change, RegisterBrokerRecord) and row.change.broker == 2
    )
    change = BrokerRegistrationChangeRecord(2, registered.broker_epoch, None, directories=(first, second))
    with (disks / "node-100" / METADATA / SEGMENT).open("ab") as log:
        log.write(data_batch(51, 1, 5, [encode(change, 2)]))
    text = reasons(disks)
    assert "broker 2 has 2 log dirs by the copy, and 1 of them was given" in text
    assert f"Not given: the one with directory.id {second} in meta.properties" in text
    assert "were not scanned" not in text
    told = invoke(disks, "ktriage", "quorum", "evidence", *(str(disks / f"node-{n}") for n in (100, 1, 2)))
    assert f"--data {disks / 'node-2'} --data LOG_DIR_2_OF_BROKER_2 --plan-out" in told.err, told


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
    accepted = made(disks, accept_strays=True)
    assert [(one.topic, one.topic_id, one.broker) for one in accepted.strays] == [("payments", UNKNOWN, 1)]
    assert from_json(to_json(accepted)) == accepted
    told = f"  payments-0 ({UNKNOWN}) on broker 1, log end 0 (no record): the copy does not know it"
    assert told in list(rebuild_lines(accepted, disks / "plan.json"))
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
    # With both what can be kept is kept.
    payments = disks / "node-1" / "payments-0"
    partition_folder(disks, "AAAAAAAAAAAAAAAAAAAA8w", 7, partition=5)
    (disks / "node-1" / f"{ORDERS}-5").rename(payments)
    plan = made(disks, keep_strays=True, accept_strays=True)
    assert [one.topic for one in plan.restored_topics] == ["payments"]
    assert [(one.topic, one.partition) for one in plan.strays] == [(ORDERS, 2)]
    apply_rebuild(plan, "a test", silent)
    history = history_of(read_quorum_copy(disks / "node-100"))
    assert history.topic_name("AAAAAAAAAAAAAAAAAAAA8w") == "payments" and not history.topic_name(UNKNOWN)


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
    for text in ("", "{}", "[]", '{"format": "ktriage.quorum-rebuild/7"}'):
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


def test_made_plans_are_values(disks: Path) -> None:
    found = make_rebuild(request(disks), silent)
    assert isinstance(found, PlannedRebuild)
    assert found.evidence.chosen.node == 100


# Nodes whose metadata goes on beyond the copy


def test_a_node_whose_metadata_goes_on_beyond_the_copy_is_named_with_what_is_moved_away(disks: Path) -> None:
    """Kafka keeps its snapshots when it cuts the log off, and starts from them. Broker 1 has one record more."""
    plan = made(disks)
    assert plan.ahead == (1,) and from_json(to_json(plan)) == plan
    away = f"(cd {disks}/node-1/__cluster_metadata-0 && away="
    assert any(away in line for line in host_lines(plan)), "where it was given"
    shown = "\n".join(rebuild_lines(plan, disks / "plan.json"))
    assert "NODE 1 must not start again with a snapshot above offset 51 in __cluster_metadata-0" in shown
    wanted = "On node 1, while it is stopped, move the snapshots above offset 51"
    steps = [line for line in host_lines(plan) if wanted in line]
    assert len(steps) == 1 and "$1+0 > 51" in steps[0]
    whole = made(disks, source=disks / "node-1", into=blank_controller(disks), dead=(100, 101, 102))
    assert whole.ahead == ()
    assert not any("move the snapshots" in line for line in host_lines(whole))


def test_a_partition_that_the_logs_decide_names_who_is_elected_by_itself(disks: Path) -> None:
    """A killed broker leaves ISR and ELR when it registers: only the last known leader is elected then."""
    partition_folder(disks, orders_id(disks), 9)
    (written,) = [one for one in made(disks).partitions if one.disk_epoch == 9]
    now = written.registration
    assert (now.leader, now.isr, now.last_known_elr) == (-1, (1,), (1,))
    assert any("lets a killed broker register only after" in step for step in host_lines(made(disks)))


def test_of_a_disk_that_was_not_read_it_is_taken_for_granted(disks: Path, tmp_path: Path) -> None:
    assert made(disks, data=(disks / "node-1",), unscanned=(2,)).ahead == (1, 2)
    data = tuple(scan_file(tmp_path, disks / f"node-{broker}") for broker in (1, 2))
    assert made(disks, data=data, accept_loss_of=(1,)).ahead == (1,)


# Nodes that are broker and controller


def test_a_dead_controller_that_is_a_broker_too_keeps_its_log_dir(disks: Path) -> None:
    """In its only log dir there may be the only replica of a partition."""
    combined = replace(made(disks), brokers=(1, 2, 101))
    shown = "\n".join([*rebuild_lines(combined, disks / "plan.json"), *host_lines(combined)])
    assert "wipe" not in shown.lower()
    assert (
        "Move __cluster_metadata-0 out of these log dirs where they still exist (keep all else there" in shown
    )
    assert "  controller 101, a broker too, directory id " in shown and "  controller 102, directory" in shown
    assert "Node 101 can come back as a broker, with its records. Stop it, move __cluster_metadata-0" in shown
    assert "set metadata.log.dir to a new directory, format with --no-initial-controllers" in shown
    # Nobody waits for it.
    assert "ktriage watch --broker-id 1 --broker-id 2 --bootstrap-server" in shown


# The host


def test_a_plan_that_fills_another_directory_names_both_of_which_its_host_needs_each(disks: Path) -> None:
    file = disks / "plan.json"
    blank = made(disks, source=disks / "node-1", into=blank_controller(disks), dead=(100, 101, 102))
    both = f"n the host that has both {blank.source}, which is read, and {blank.target}, which is written"
    rehearsal = next(line for line in rebuild_lines(blank, file) if line.startswith("NOT REHEARSED"))
    assert both in rehearsal and both in next_line(blank, file)
    plan = made(disks)
    assert next_line(plan, file).endswith(f"(on the host that has {plan.target})")


# The address of the new voter


@pytest.mark.parametrize(
    ("port", "told"),
    [(27644, ""), (27645, "controller 100 is registered at 127.0.0.1:27644 in the log, and is to listen at")],
)
def test_another_address_than_the_registered_one_is_told(disks: Path, port: int, told: str) -> None:
    plan = made(disks, voters=(GivenVoter(100, "", "127.0.0.1", port),))
    notes = [line for line in rebuild_lines(plan, disks / "plan.json") if "CHECK" in line]
    assert [told in note for note in notes] == ([True] if told else [])


def test_the_address_of_a_dead_voter_is_told(disks: Path) -> None:
    port = next(v for v in made(disks).old.voters if v.key.id == 101).endpoints[0].port
    shown = "\n".join(rebuild_lines(made(disks, voters=(VOTER._replace(port=port),)), disks / "plan.json"))
    assert (
        f"127.0.0.1:{port} is the address of voter 101, which is dead: does controller 100 listen there"
        in shown
    )


def test_a_host_that_does_not_resolve_is_told_by_the_command(disks: Path, tmp_path: Path) -> None:
    words = [
        "--from",
        str(disks / "node-100"),
        "--voter",
        "100@no-such-host.invalid:1",
        "--plan-out",
        "plan.json",
    ]
    words += ["--dead", "101", "--dead", "102", "--unscanned", "1", "--unscanned", "2"]
    planned = invoke(tmp_path, "ktriage", "quorum", "rebuild", *words)
    assert planned.status == 0, planned
    told = "CHECK: no-such-host.invalid, where the new voter listens, does not resolve on this host"
    assert told in planned.err
    applied = invoke(tmp_path, "ktriage", "quorum", "rebuild", "plan.json", "--yes", "--reason", "a test")
    assert applied.status == 0 and told in applied.err, applied


# The review


def test_a_second_person_reviews_the_plan_and_another_one_is_refused(disks: Path, tmp_path: Path) -> None:
    plan = made(disks, voters=(VOTER._replace(port=1),))
    save_rebuild(plan, tmp_path / "plan.json")
    reviewed = invoke(tmp_path, "ktriage", "review", "plan.json")
    assert reviewed.status == 0, reviewed
    assert (
        "controller 100 becomes the only voter" in reviewed.out and f"digest {digest(plan)}" in reviewed.out
    )
    assert "NOT REHEARSED" in reviewed.out
    document = json.loads(invoke(tmp_path, "ktriage", "review", "plan.json", "--output", "json").out)
    assert document["digest"] == digest(plan)
    channel = invoke(tmp_path, "ktriage", "review", "plan.json", "--output", "markdown").out.splitlines()
    assert len(channel) <= 40 and channel[0].startswith("## ") and digest(plan) in channel[-1]
    named = invoke(tmp_path, "ktriage", "review", "plan.json", "--simulate", "controller-disk-failure")
    assert named.status == 2 and "compared with directories" in named.err

    def apply(*words: str) -> Ended:
        return invoke(
            tmp_path, "ktriage", "quorum", "rebuild", "plan.json", "--yes", "--reason", "a test", *words
        )

    refused = apply("--reviewed-by", "ada", "--digest", "0" * 64)
    assert refused.status == 2 and "not the plan that was reviewed" in refused.err, refused
    assert apply("--reviewed-by", "ada").status == 2
    assert apply("--reviewed-by", user(), "--digest", digest(plan)).status == 2
    done = apply("--reviewed-by", "ada", "--digest", digest(plan).upper())
    assert done.status == 0, done
    journal = [json.loads(line) for line in (Path(plan.backup) / "journal.jsonl").read_text().splitlines()]
    assert [line["reviewed"] for line in journal] == [f"reviewed by ada, digest {digest(plan).upper()}"] * 2


def test_a_plan_of_lines_is_cut_for_a_channel_and_keeps_who_must_never_start(disks: Path) -> None:
    plan = replace(made(disks), losses=tuple(f"change {number}" for number in range(100)))
    lines = rebuild_markdown(plan, disks / "plan.json")
    assert len(lines) <= 40 and "more lines: ktriage review" in "\n".join(lines)
    assert any("must never start again" in line for line in lines) and digest(plan) in lines[-1]
