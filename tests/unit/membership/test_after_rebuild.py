"""After a rebuild the console finds it in the metadata log, and says one next step after the other."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from backends.base.membership import NOTHING_READ, ClusterNode, EveryAddress, Membership, ProcessRole
from backends.live.metadata_log import LiveMetadataLog
from backends.metadata_log.batch_writer import data_batch, leader_change_batch, voters_batch
from backends.metadata_log.batches import BatchReader
from console.jobs.quorum.quorum_pane import QuorumPane, voter_changes
from console.jobs.quorum.quorum_report import sentences
from console.reading.quorum_state import ask_controllers
from recovery.cluster_health import ClusterHealth, quorum_finding
from recovery.controller.registration import Registration
from recovery.membership.after_rebuild import (
    AfterRebuild,
    AfterRebuildProgress,
    AfterRebuildStep,
    adding_refusal,
    old_disks,
    partitions_written,
    quorum_findings,
)
from recovery.membership.controllers_asked import (
    AskedController,
    ControllersAsked,
    QuorumProblem,
    RememberedQuorum,
    old_voters_stopped,
)
from recovery.membership.preflight import LivenessLimits
from recovery.membership.quorum import QuorumReplica
from recovery.membership.quorum_health import QuorumHealth, health
from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.rebuilt_log import RebuiltLog, RebuiltLogFinder
from recovery.metadata_log.record_codec import encode
from recovery.metadata_log.records import PartitionRecord, TopicRecord
from recovery.model import PartitionState, TopicPartition, Unknown, Why
from recovery.wording.after_rebuild_text import (
    after_rebuild,
    growth_line,
    now_line,
    partition_text,
    rebuilt_line,
    standing_lines,
    unconnected,
)
from recovery.wording.cluster_advice import cluster_advice, quorum_advice
from tests.unit.cli.command_process import Caller
from tests.unit.membership.quorums import CLUSTER, key, progress, quorum
from tests.unit.widgets.harness import Harness, text_of

TOPIC_ID, KEPT_ID = "AAAAAAAAAAAAAAAAAAAAbg", "AAAAAAAAAAAAAAAAAAAAcg"
OLD = Registration((1, 2, 3), (1,), 1, 2, 5)
NEW = OLD._replace(isr=(2, 3), leader=-1, leader_epoch=1_004, partition_epoch=1_005)
KEPT = Registration((2,), (2,), -1, 1_000)


def disk(node: int) -> ReplicaKey:
    return ReplicaKey(node, f"{'A' * 18}{node}w")


def voters(*nodes: int) -> VoterSet:
    return VoterSet(tuple(Voter(disk(node), (VoterEndpoint("C", f"c{node}", 9093),)) for node in nodes))


def log_pieces() -> list[bytes]:
    """A log of three voters that was rebuilt at offset 4; two pieces, as Fetch sends them."""
    topic = encode(TopicRecord("orders", TOPIC_ID)), encode(PartitionRecord(TOPIC_ID, 0, OLD), 0)
    written = [
        encode(PartitionRecord(TOPIC_ID, 0, NEW), 0),
        encode(TopicRecord("kept", KEPT_ID)),
        encode(PartitionRecord(KEPT_ID, 0, KEPT), 0),
    ]
    before = leader_change_batch(0, 1, 10, 100, (100, 101, 102))
    before += voters_batch(1, 1, 10, [voters(100, 101, 102)]) + data_batch(2, 1, 10, topic)
    rebuilt = voters_batch(4, 1_002, 20, [voters(100, 101), voters(100)])
    rebuilt += data_batch(6, 1_002, 20, written)
    after = leader_change_batch(9, 1_003, 30, 100, (100,))
    after += voters_batch(10, 1_003, 30, [voters(100, 103)]) + data_batch(11, 1_003, 30, topic[1:])
    return [before + rebuilt, rebuilt + after]


def read(pieces: list[bytes]) -> MetadataHistory:
    history, finder, seen = MetadataHistory(), RebuiltLogFinder(), 0
    for piece in pieces:
        batches = BatchReader(piece, rebuilt=finder)
        history.extend(record for record in batches.data_records() if record.offset >= seen)
        seen = batches.next_offset
    history.rebuilt = finder.found
    return history


def test_the_log_shows_the_rebuild_and_no_voters_that_a_leader_wrote() -> None:
    history = read(log_pieces())
    assert history.rebuilt == RebuiltLog(4, 9, 1_002, voters(101, 102).voters)
    assert read(log_pieces()[:1]).rebuilt == history.rebuilt
    begun_by_leader = leader_change_batch(0, 1, 10, 100, (100,)) + voters_batch(1, 1, 10, [voters(100)])
    after = leader_change_batch(2, 7, 20, 100, (100,)) + voters_batch(3, 7, 20, [voters(100, 101)])
    assert read([begun_by_leader + after]).rebuilt is None
    # Read from the middle on, nobody knows what came before.
    assert read([voters_batch(4, 1_002, 20, [voters(100)])]).rebuilt is None


def test_a_second_rebuild_does_not_forget_whom_the_first_one_replaced() -> None:
    second = voters_batch(12, 2_003, 40, [voters(103)])
    rebuilt = read([*log_pieces(), second]).rebuilt
    assert rebuilt is not None and rebuilt.offset == 12
    assert rebuilt.gone == voters(100, 101, 102).voters


def after(**changed: object) -> AfterRebuild:
    history = read(log_pieces()[:1])
    assert history.rebuilt is not None
    orders = PartitionState("orders", 0, TOPIC_ID, 2, 1_005, (1, 2, 3), (2, 3), (), (), ())
    found = AfterRebuild(
        history.rebuilt,
        partitions_written(history, history.rebuilt),
        {orders.tp: orders},
        health(quorum(100), LivenessLimits(), {100}),
        away=(),
        offline=0,
        unsurveyed=0,
        asked=ControllersAsked(),
    )
    return replace(found, **changed)  # type: ignore[arg-type]


def line(found: AfterRebuild) -> str:
    return now_line(found, lambda *words: shlex.join(("ktriage", *words)))


def test_one_step_comes_after_the_other_and_each_has_its_command() -> None:
    found = after(away=(2,), offline=3, unsurveyed=3)
    assert found.now is AfterRebuildStep.BROKERS
    assert found.steps[AfterRebuildStep.SETTINGS] is AfterRebuildProgress.NOT_SEEN
    assert line(found).startswith("After the rebuild, step 5 of 11: broker 2 is not back")
    assert line(found).endswith("ktriage watch --broker-id 2")
    found = after(offline=3, unsurveyed=3)
    assert found.now is AfterRebuildStep.SURVEY and "3 partitions without a leader" in line(found)
    found = after(offline=3)
    assert found.now is AfterRebuildStep.ELECT
    assert line(found).endswith("ktriage plan --all-offline-partitions plan.json")
    assert after().now is AfterRebuildStep.GROW
    assert "1 voter of 3: no failure is tolerated: kafka-storage.sh format --config" in line(after())
    joins = health(quorum(100, observers=(key(103),)), LivenessLimits(), {100, 103})
    assert line(after(health=joins)).endswith("can be added: ktriage quorum add 103")
    grown = health(quorum(100, 103, 104), LivenessLimits(), {100, 103, 104})
    assert after(health=grown, asked=None).now is AfterRebuildStep.CHECK
    assert after(health=grown).now is None
    assert line(after(health=grown)).endswith(
        f"no node must start again with a metadata log of {disk(101)} and {disk(102)}"
    )


def old_disks_of(found: AfterRebuild) -> list[str]:
    return [one.text for one in old_disks(found.health, found.asked, found.log)]


def test_an_old_voter_that_follows_with_its_disk_is_told_and_gets_no_vote() -> None:
    back = health(quorum(100, observers=(disk(101), key(103))), LivenessLimits(), {100, 101, 103})
    found = after(health=back)
    (told,) = old_disks_of(found)
    assert told.startswith(f"controller 101 runs with the disk ({disk(101).directory_id}) that it had before")
    assert found.findings == (told,) and found.joining == (103,)
    # It is to be stopped, and not to be given other settings first; 103 is to find the quorum.
    servers: dict[str, tuple[str, ...] | None] = {
        "controller 101": ("c101:9093",),
        "controller 103": ("c101:9093",),
    }
    asked = ControllersAsked((AskedController("host100:9093", 100),), servers)
    disks, settings = quorum_findings(back, asked, found.log)
    assert disks.text == told and settings.text.startswith("controller 103 will find no leader")
    changes = {change.name: change for change in voter_changes(back, found.log)}
    assert (
        not changes["add observer 101"].possible
        and "before the quorum was rebuilt" in changes["add observer 101"].why
    )
    assert "before the quorum was rebuilt" not in changes["add observer 103"].why
    assert adding_refusal(disk(101), found.log) and not adding_refusal(key(101), found.log)
    assert adding_refusal(disk(101), None) == ""


def test_a_node_that_goes_on_with_another_metadata_log_is_not_called_an_old_disk() -> None:
    """The broker's log dir keeps the old directory id; its ghost is listed for a while."""
    old, new = disk(101), key(101, "new")

    def fetched(*replicas: QuorumReplica) -> QuorumHealth:
        led = quorum(100)
        return health(replace(led, progress=(*led.progress, *replicas)), LivenessLimits(), {100, 101})

    swapped = fetched(progress(old, silent_ms=2_000), progress(new))
    found = after(health=swapped)
    assert old_disks_of(found) == [] and [one.id for one in found.old_logs] == [102]
    told = rebuilt_line(found.log, swapped)
    assert told.endswith(f"a metadata log of {disk(102)}, nor with the former one of {disk(101)}"), told
    # It crashes later: still it is not to be moved once more.
    crashed = fetched(progress(new, silent_ms=60_000))
    assert [one.id for one in after(health=crashed, away=(101,)).old_logs] == [102]
    # Its old disk comes back later than the new one was last seen.
    both_run = fetched(progress(old), progress(new, silent_ms=2_000))
    assert len(old_disks_of(after(health=both_run))) == 1


def test_who_is_to_be_stopped_gets_no_vote_in_the_same_breath() -> None:
    led = quorum(100, leader=key(100), observers=(disk(101),))
    back = health(led, LivenessLimits(), {100, 101})
    assert [one.action for one in quorum_advice(back)] == ["Give 101 a vote."]
    assert list(quorum_advice(back, (disk(101),))) == []
    # The quorum has grown: a vote for it would be no advice, and is not offered either.
    grown = quorum(100, 103, 104, leader=key(100), observers=(disk(101),))
    grown_health = health(grown, LivenessLimits(), {100, 101, 103, 104})
    assert any("without a vote: 101" in text for _, text in sentences(grown_health))
    told = sentences(grown_health, replaced=(disk(101),))
    assert not any("without a vote" in text for _, text in told)


def test_nothing_says_to_wipe_a_log_dir_which_may_be_a_brokers() -> None:
    found = after(health=health(quorum(100, observers=(disk(101),)), LivenessLimits(), {100, 101}))
    lines = [*standing_lines(found, unconnected), rebuilt_line(found.log, found.health), *old_disks_of(found)]
    lines += [step.text for step in after_rebuild(100, "c:9093", "c", loses=True)]
    lines += [old_voters_stopped(["101"]), adding_refusal(disk(101), found.log)]
    assert not [line for line in lines if "wipe" in line.lower()], lines
    assert sum("__cluster_metadata-0 out of" in line for line in lines) >= 5, lines


def test_an_old_voter_that_has_a_vote_again_is_told() -> None:
    again = replace(quorum(100), voters=VoterSet((*quorum(100).voters.voters, *voters(101).voters)))
    again = replace(again, progress=(*again.progress, progress(disk(101))))
    (told,) = old_disks_of(after(health=health(again, LivenessLimits(), {100, 101})))
    assert "and has a vote" in told


def test_a_controller_at_an_old_voters_address_that_does_not_follow_is_told() -> None:
    silent = Unknown(Why.NOT_ANSWERED, "connection refused")
    answers = AskedController("c101:9093", 101, CLUSTER, 101), AskedController("c102:9093", problem=silent)
    (told,) = old_disks_of(after(asked=ControllersAsked(answers)))
    assert told.startswith("a controller answers at c101:9093, where voter 101 was before")
    assert "and does not follow this quorum: with its old disk" in told
    # One that was formatted anew at that address fetches.
    formatted = health(quorum(100, observers=(key(101),)), LivenessLimits(), {100, 101})
    assert old_disks_of(after(health=formatted, asked=ControllersAsked(answers))) == []


def test_a_node_with_two_old_disks_is_told_once_with_both() -> None:
    log = after().log
    another = log.gone[0]._replace(key=key(101, "another"))
    answers = AskedController("c101:9093", 101, CLUSTER, 101)
    found = after(log=log._replace(gone=(*log.gone, another)), asked=ControllersAsked((answers,)))
    (told,) = old_disks_of(found)
    assert (
        f"an old disk of it ({disk(101).directory_id} or {another.key.directory_id}) it must not run" in told
    )


class OldVoterAlone:
    """A controller that has found no leader refuses to tell who it is: it has read no metadata (Kafka 4.4)."""

    asks_brokers = False

    async def every_address(self, further: Iterable[tuple[str, int]] = ()) -> EveryAddress:
        refuses = Unknown(Why.NOT_ANSWERED, f"c101:9093: {NOTHING_READ}, which needs a quorum with a leader")
        silent = Unknown(Why.NOT_ANSWERED, "connection refused")
        told = {("c101", 9093): refuses, ("c102", 9093): silent}
        nodes = (ClusterNode(-1, ProcessRole.CONTROLLER, f"{at[0]}:{at[1]}", told[at]) for at in further)
        return EveryAddress((), tuple(nodes), {})


async def test_an_old_voter_that_runs_and_finds_no_leader_is_told_with_what_to_do() -> None:
    rebuilt = after().log
    asked = await ask_controllers(cast("Membership", OldVoterAlone()), None, rebuilt)
    (told,) = quorum_findings(after().health, asked, rebuilt)
    assert told.problem is QuorumProblem.OLD_DISK
    assert told.text.startswith("a controller answers at c101:9093, where voter 101 was before"), told
    assert (
        "and follows nobody" in told.text
        and "Stop it, move __cluster_metadata-0 out of its log dirs" in told.text
    )
    assert "1 not reached (c102:9093: connection refused)" in asked.counts and "c101" not in asked.counts


@pytest.mark.parametrize(("nodes", "more"), [((100,), "two more voters"), ((100, 103), "a third voter")])
def test_a_rebuilt_quorum_with_too_few_voters_says_how_it_grows(nodes: tuple[int, ...], more: str) -> None:
    found = health(quorum(*nodes), LivenessLimits(), set(nodes))
    line = growth_line(after().log, found)
    assert line.startswith("the quorum was rebuilt at offset 4 and has ") and f"Add {more}: " in line
    assert growth_line(None, found) == ""
    assert growth_line(after().log, health(quorum(100, 103, 104), LivenessLimits(), {100})) == ""


def test_a_broker_that_would_not_find_the_quorum_comes_first() -> None:
    answers = (AskedController("host100:9093", 100),)
    asked = ControllersAsked(answers, {"broker 1": ("c101:9093",), "controller 100": ("host100:9093",)})
    found = after(asked=asked)
    assert found.now is AfterRebuildStep.SETTINGS
    assert "broker 1 will find no leader" in line(found)


def test_the_list_of_the_console_is_that_of_the_commands() -> None:
    lines = list(standing_lines(after(offline=1), lambda *words: shlex.join(("ktriage", *words))))
    steps = after_rebuild(
        100, "host-100:9093", quorum(100).cluster_id, loses=True, restored=("kept",), ahead_from=4
    )
    titles = [f"{number}. [" for number in range(1, len(steps) + 1)]
    shown = [line for line in lines if line.startswith(tuple(titles))]
    for step, text in zip(steps, shown, strict=True):
        assert step.step is AfterRebuildStep.SETTINGS or step.title in text
    assert (
        "orders-0: the copy ended before its last leader change; replicas 2 and 3 disagree with it:"
        in str(lines)
    )
    assert "epoch 4 there, 2 in the copy; led by 2 now" in str(lines)
    assert "kept-0: the copy did not know it; kept from the disks of 2; not there now" in str(lines)
    assert any(f"controller 101, directory id {disk(101).directory_id}" in line for line in lines)


async def pane_4(found: AfterRebuild) -> str:
    pane = QuorumPane()
    async with Harness(pane).run_test(size=(80, 24)) as pilot:
        pane.update(found.health, found, line(found))
        await pane.table.wait_settled()
        await pilot.pause()
        return text_of(pilot.app)


async def test_pane_4_says_the_step_above_the_voters() -> None:
    screen = await pane_4(after())
    assert "After the rebuild, step 10 of 11: 1 voter of 3" in screen and "(M: all steps)" in screen


async def test_old_voters_that_lead_stand_above_the_step_and_the_list() -> None:
    """A quorum beside the rebuilt one is more urgent than any step."""
    old = replace(quorum(101, 102), leader=key(101), leader_epoch=3)
    new = health(replace(quorum(100), leader=key(100), leader_epoch=1_003), LivenessLimits(), {100})
    answers = (AskedController("host101:9093", 101, led=old), AskedController("host100:9093", 100))
    servers = {"broker 1": ("c9:9093",)}
    found = after(health=new, asked=ControllersAsked(answers, servers))
    screen = await pane_4(found)
    assert screen.index("2 QUORUMS") < screen.index("After the rebuild, step 4 of 11")
    assert screen.count("will find no leader") == 1
    lines = list(standing_lines(found, lambda *words: shlex.join(("ktriage", *words))))
    at = next(number for number, text in enumerate(lines) if text.startswith("! 2 QUORUMS"))
    assert "stop controllers 101 and 102" in lines[at] and not any(text[:2] == "1." for text in lines[:at])


def test_the_controller_leads_before_a_broker_is_restarted_and_old_logs_move_before_a_format() -> None:
    """A broker that is restarted without a controller ends itself; a log dir that is formatted takes no format."""
    for loses in (False, True):
        order = [s.step for s in after_rebuild(100, "c:9093", "c", loses=loses, restored=("kept",))]
        assert order == sorted(order, key=list(AfterRebuildStep).index)
        assert order.index(AfterRebuildStep.START) < order.index(AfterRebuildStep.SETTINGS)
        assert order.index(AfterRebuildStep.OLD_LOGS) < order.index(AfterRebuildStep.GROW)
    assert list(after(away=(2,)).steps) == order


def test_the_snapshots_move_out_of_the_log_dir_also_where_it_is_given_with_a_slash(tmp_path: Path) -> None:
    """Kafka does not start with a directory in its log dir that is no partition."""
    (move,) = (
        step.commands[0]
        for step in after_rebuild(100, "c:9093", "c", loses=True, ahead=(1,), ahead_from=50)
        if step.step is AfterRebuildStep.MOVE
    )
    log_dir = tmp_path / "broker 1"
    log = log_dir / "__cluster_metadata-0"
    log.mkdir(parents=True)
    kept, moved = "00000000000000000050-0000000002.checkpoint", "00000000000000000051-0000000002.checkpoint"
    for name in (kept, moved, "00000000000000000000.log"):
        (log / name).touch()
    command = move.replace("LOG_DIR", shlex.quote(f"{log_dir}/"))
    subprocess.run(["/bin/sh", "-c", command], check=True)
    assert [path.name for path in log_dir.iterdir()] == [log.name]
    assert [path.name for path in (tmp_path / "broker 1.snapshots-before-rebuild").iterdir()] == [moved]
    assert sorted(path.name for path in log.iterdir()) == ["00000000000000000000.log", kept]


def test_nobody_waits_for_a_broker_that_is_a_dead_voter_and_it_is_told_how_it_comes_back() -> None:
    """A combined node: to wait for it would never end, and started as it is it may lead another quorum."""
    found = after(away=(101,))
    assert found.now is AfterRebuildStep.GROW
    lines = "\n".join(standing_lines(found, unconnected))
    assert (
        "--broker-id 101" not in lines and "broker 101 can come back with its records. Stop it, move" in lines
    )
    health_now = ClusterHealth(quorum_finding(found.health.quorum), brokers_down=(101, 5))
    seen = RememberedQuorum(7, "then", (), (disk(100),), (disk(101),))
    (first,) = cluster_advice(health_now, found.health, None, (), (), earlier=seen).first
    assert first.text.action.startswith(
        "Before broker 101 starts: move __cluster_metadata-0 out of its log dirs"
    )
    assert cluster_advice(health_now, found.health, None, (), ()).first == ()


def test_a_partition_waits_for_those_who_may_lead_it_now() -> None:
    (_, orders) = after().partitions
    offline = after().states[TopicPartition("orders", 0)]._replace(leader=-1, isr=(), elr=(2,))
    assert partition_text(orders, {offline.tp: offline}).endswith("no leader now: it waits for 2")


def test_partitions_are_named_as_they_are_now() -> None:
    (kept, orders) = after().partitions
    assert (kept.topic, kept.is_new, orders.known_epoch, orders.disk_epoch) == ("kept", True, 2, 4)
    assert after().restored_topics == ("kept",)
    assert TopicPartition("orders", 0) in after().states


def told_by_log(monkeypatch: pytest.MonkeyPatch, *gone: Voter) -> None:
    """The metadata log tells that the quorum was rebuilt, and that these voters were replaced."""
    read = LiveMetadataLog.read

    async def read_rebuilt(log: LiveMetadataLog, **how: Any) -> int:
        count = await read(log, **how)
        log.history.rebuilt = RebuiltLog(4, 9, 1, gone)
        return count

    monkeypatch.setattr(LiveMetadataLog, "read", read_rebuilt)
    monkeypatch.setattr("console.reading.quorum_state.EPOCH_MARGIN", 0)
    monkeypatch.setattr("console.reading.remembered_voters.EPOCH_MARGIN", 0)


@pytest.mark.parametrize("command", ["status", "check", "handover"])
def test_a_second_quorum_is_the_first_line_and_the_first_thing_to_do(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    call, growing = Caller(monkeypatch, tmp_path), ("--simulate", "quorum-growing-1-to-3")
    told_by_log(monkeypatch, Voter(ReplicaKey(107)))
    alone = call("ktriage", command, *growing).out
    monkeypatch.setattr(ControllersAsked, "second_quorum", lambda *_: ("107", "108"))
    beside = call("ktriage", command, *growing).out
    first = "Do first: Stop controllers 107 and 108: a rebuild replaced them"
    assert "2 QUORUMS" not in alone and "Do first: Stop" not in alone, alone
    if command == "handover":
        assert "ktriage quorum add 101 --simulate" in alone, alone
        assert "quorum add" not in beside.partition("NEXT COMMANDS")[2], beside
    assert beside.index("2 QUORUMS") < len(alone.partition("cluster")[0]) + 400, beside
    assert command == "check" or first in " ".join(beside.split()), beside


@pytest.mark.parametrize("command", ["status", "handover"])
def test_who_never_saw_the_rebuild_is_told_how_a_replaced_voters_node_starts(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Broker 3 is down, and was a voter before: the leader's own metadata log tells it."""
    call, gone = Caller(monkeypatch, tmp_path), ("--simulate", "broker-gone-for-good")
    members = json.loads(call("ktriage", "quorum", "replication", *gone, "--output", "json").out)["members"]
    told_by_log(monkeypatch, Voter(next(ReplicaKey(3, m["directoryId"]) for m in members if m["id"] == 3)))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user"))
    told = " ".join(call("ktriage", command, *gone).out.split())
    assert "Before broker 3 starts: move __cluster_metadata-0 out of its log dirs" in told, told


def test_quorum_status_check_and_add_know_an_old_disk_from_the_metadata_log(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    call, disk_failure = Caller(monkeypatch, tmp_path), ("--simulate", "controller-disk-failure")
    members = json.loads(call("ktriage", "quorum", "status", *disk_failure, "--output", "json").out)[
        "members"
    ]
    (new,) = (m for m in members if m["role"] == "observer")
    old = Voter(ReplicaKey(new["id"], new["directoryId"]))
    told_by_log(monkeypatch, old)
    told = f"controller {new['id']} runs with the disk ({new['directoryId']}) that it had before"
    status = call("ktriage", "quorum", "status", *disk_failure)
    assert status.status == 1 and told in status.out
    assert (
        f"rebuilt at offset 4, in quorum epoch 1: no node must start again with a metadata log of {old.key}"
        in status.out
    )
    document = json.loads(call("ktriage", "quorum", "status", *disk_failure, "--output", "json").out)
    assert document["rebuilt"]["replaced"][0]["directoryId"] == new["directoryId"]
    assert document["problems"][0]["problem"] == "old disk"
    assert told in call("ktriage", "check", *disk_failure).err
    status = call("ktriage", "status", *disk_failure)
    assert status.status == 1 and f"! {told}" in status.out, status
    page = " ".join(call("ktriage", "handover", *disk_failure).out.split())
    assert f"C{told[1:]}" in page, page
    added = call("ktriage", "quorum", "add", str(new["id"]), *disk_failure, "--yes", "--reason", "a test")
    assert added.status == 1 and "is the disk that voter" in added.err and "nothing was sent" in added.err
