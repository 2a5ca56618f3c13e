"""A broker is gone for good: its partitions get new replicas under load, by Kafka's own tool and by ours.

Broker 3 dies first and is healed by the file for kafka-reassign-partitions; broker 4 then dies and is healed by
ktriage, which is killed once, stopped once and taken back once on the way, and last from the keyboard.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from console.target import resolve
from testbed.kafka import ClusterSpec, KafkaCluster, wait_until
from tests.console.robot import console as open_console
from tests.console.robot import records
from tests.live import incident_steps
from tests.live.command_runner import CommandRunner
from tests.unit.cli.command_process import command_line, environment
from widgets.dialogs.confirmation import Confirmation

CLUSTER = ClusterSpec(controllers=1, brokers=5, racks={1: "a", 2: "b", 3: "c", 4: "c", 5: "c"})
TOPIC = "orders"
ASSIGNMENT = [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 2, 4], [4, 2, 1], [2, 1, 4]]
FIRST = 200
AGREED = ("--yes", "--reason", "a test")
THROTTLES = ("throttled.rate", "throttled.replicas")


class Load:
    """A producer with acks=all to every partition: what it was told is written has to be there afterwards."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self._cluster = cluster
        self.acknowledged: dict[int, set[str]] = {number: set() for number in range(len(ASSIGNMENT))}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        turn = 0
        while not self._stop.is_set():
            for partition, values in self.acknowledged.items():
                sent = self._cluster.client.produce(TOPIC, partition, 20, prefix=f"load-{turn}", size=1000)
                values.update(sent.acknowledged)
            turn += 1

    @contextmanager
    def running(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join()

    def lost(self) -> dict[int, int]:
        """By partition, the acknowledged records that a consumer does not find."""
        found = {}
        for partition, values in self.acknowledged.items():
            read = {record.value for record in self._cluster.client.consume(TOPIC, partition)}
            assert len(read) >= FIRST
            found[partition] = len(values - read)
        return found


@pytest.fixture(scope="module")
def console(cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> CommandRunner:
    cluster.client.create_topic(TOPIC, ASSIGNMENT, {"min.insync.replicas": "2"})
    for topic in ("waits", "shrinks"):  # without a replica on 3 or 4
        cluster.client.create_topic(topic, [[1, 2, 5]])
        cluster.client.produce(topic, 0, 50, prefix=topic)
    for partition in range(len(ASSIGNMENT)):
        cluster.client.produce(TOPIC, partition, FIRST, prefix="first", size=20_000)
    bootstrap = ",".join(cluster.bootstrap().split(",")[:2])
    return CommandRunner(tmp_path_factory.mktemp("home"), bootstrap, cluster.metadata.wait_caught_up)


def gone(broker: int) -> tuple[str, ...]:
    return ("--broker-id", str(broker), "--gone-for-good")


def kill(cluster: KafkaCluster, broker: int) -> None:
    """Returns when all its other replicas are in sync: the partitions with the fewest in sync are healed first."""
    incident_steps.kill(cluster, broker)

    def all_others_in_sync() -> bool:
        states = cluster.metadata.partitions(TOPIC).values()
        return all(set(state.isr) == set(state.replicas) - {broker} for state in states)

    wait_until(all_others_in_sync, f"all but {broker} in sync", 60.0)


def with_replica_on(cluster: KafkaCluster, broker: int) -> set[int]:
    states = cluster.metadata.partitions(TOPIC)
    return {number for number, state in states.items() if broker in state.replicas}


def throttles(cluster: KafkaCluster) -> str:
    """Every throttle that Kafka's own tool finds."""
    told = []
    for kind, names in (("brokers", [str(b) for b in cluster.metadata.live_brokers()]), ("topics", [TOPIC])):
        for name in names:
            words = ("--describe", "--entity-type", kind, "--entity-name", name)
            told.append(cluster.tools("kafka-configs", *words).stdout)
    return "\n".join(line for text in told for line in text.splitlines() if any(t in line for t in THROTTLES))


def full_strength(cluster: KafkaCluster) -> bool:
    states = cluster.metadata.partitions(TOPIC).values()
    return all(set(state.isr) == set(state.replicas) and len(state.replicas) == 3 for state in states)


def test_a_broker_that_is_up_is_not_healed(console: CommandRunner) -> None:
    ended = console("heal", *gone(3))
    assert ended.status == 2
    assert "is up (not fenced), so it is not gone" in ended.err


def cordon(cluster: KafkaCluster, broker: int, value: str) -> None:
    change = (
        ("--add-config", f"cordoned.log.dirs={value}") if value else ("--delete-config", "cordoned.log.dirs")
    )
    named = ("--entity-type", "brokers", "--entity-name", str(broker))
    cluster.tools("kafka-configs", "--alter", *named, *change)


def test_no_replica_is_put_on_a_broker_whose_every_log_dir_is_cordoned(
    cluster: KafkaCluster, console: CommandRunner
) -> None:
    kill(cluster, 3)
    cordon(cluster, 5, "*")

    def cordoned() -> list[bool]:
        return [one["cordoned"] for one in console.json("log-dirs")[1]["dirs"] if one["broker"] == 5]

    wait_until(lambda: cordoned() == [True], "broker 5 to tell that its log dir is cordoned")
    assert "healthy, cordoned" in console("log-dirs").out
    ended = console("heal", *gone(3))
    assert (
        "broker 5 takes no replica: all its log dirs are cordoned (cordoned.log.dirs)"
        in ended.err + ended.out
    )
    told = console.json("heal", *gone(3))[1]
    assert {broker for move in told["moves"] for broker in move["added"]} == {4}
    cordon(cluster, 5, "")
    wait_until(lambda: cordoned() == [False], "broker 5 to take replicas again")


def test_kafkas_own_tool_carries_out_the_file_under_load_and_nothing_is_lost(
    cluster: KafkaCluster, console: CommandRunner
) -> None:
    status, told = console.json("heal", *gone(3), "--export", "heal.json", "--batch-size", "2")
    assert status == 0, told
    names = [Path(file).name for file in told["files"]]
    assert names == ["heal-1.json", "heal-2.json"]
    assert sorted(move["partition"] for move in told["moves"]) == [0, 1, 2], (
        "the largest first: sizes differ a little"
    )
    added = {broker for move in told["moves"] for broker in move["added"]}
    assert added <= {4, 5}, "rack c has no replica of them left"
    load = Load(cluster)
    with load.running():
        for name in names:
            words = ("--reassignment-json-file", str(console.home / name))
            cluster.tools("kafka-reassign-partitions", *words, "--execute")
            wanted = len(json.loads((console.home / name).read_text())["partitions"])
            wait_until(
                lambda words=words, wanted=wanted: (  # type: ignore[misc]  # bound now
                    cluster.tools("kafka-reassign-partitions", *words, "--verify").stdout.count("is complete")
                    == wanted
                ),
                f"{name} to be carried out",
            )
    assert with_replica_on(cluster, 3) == set()
    wait_until(lambda: full_strength(cluster), "every replica in sync")
    assert sum(map(len, load.acknowledged.values())) > 0
    assert set(load.lost().values()) == {0}
    assert throttles(cluster) == ""


def test_the_last_step_unregisters_it_and_not_a_broker_that_is_used(
    cluster: KafkaCluster, console: CommandRunner
) -> None:
    ended = console("heal", "unregister", *gone(4), *AGREED)
    assert ended.status == 2
    assert "is up (not fenced)" in ended.err
    status, told = console.json("heal", "unregister", *gone(3), *AGREED)
    assert (status, told["sent"], told["problem"]) == (0, True, None)
    assert 3 not in {broker["broker"] for broker in console.json("check")[1]["brokers"]}
    status, told = console.json("heal", "unregister", *gone(3), *AGREED)
    assert (status, told["registered"], told["sent"]) == (0, False, False)


def test_a_run_that_was_killed_leaves_no_throttle_after_resume(
    cluster: KafkaCluster, console: CommandRunner
) -> None:
    kill(cluster, 4)
    ended = console("heal", "unregister", *gone(4), *AGREED)
    assert ended.status != 0
    assert "broker 4 still has replicas of 3 partitions" in ended.err
    words = ("heal", "apply", *gone(4), "--throttle", "200KB", "--batch-size", "1", *AGREED)
    running = start(console, *words)
    wait_until(lambda: copying(cluster) == 1, "the first copy", 120)
    running.kill()
    running.communicate()
    assert "follower.replication.throttled.rate=200000" in throttles(cluster)
    refused = console(*words)
    assert refused.status != 0
    assert "an earlier run is unfinished" in refused.err
    ended = console("resume")
    assert "1 partition moved, 2 not moved" in ended.err, str(ended)
    assert throttles(cluster) == ""
    assert len(with_replica_on(cluster, 4)) == 2


def test_ctrl_c_cancels_what_is_copied_and_removes_the_throttle(
    cluster: KafkaCluster, console: CommandRunner
) -> None:
    before = {number: state.replicas for number, state in cluster.metadata.partitions(TOPIC).items()}
    running = start(console, "heal", "apply", *gone(4), "--throttle", "100KB", "--batch-size", "1", *AGREED)
    wait_until(lambda: copying(cluster) == 1, "a copy", 120)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert "cancelled" in out, err
    assert "the throttle is removed" in out
    assert throttles(cluster) == ""
    assert copying(cluster) == 0
    now = {number: state.replicas for number, state in cluster.metadata.partitions(TOPIC).items()}
    assert now == before, "in the same order, too: the first one is the preferred leader"


def test_healed_under_load_nothing_is_lost(cluster: KafkaCluster, console: CommandRunner) -> None:
    load = Load(cluster)
    with load.running():
        status, told = console.json(
            "heal", "apply", *gone(4), "--throttle", "5MB", "--batch-size", "1", *AGREED
        )
    assert status == 0, told
    assert [move["end"] for move in told["moves"]] == ["moved", "moved"]
    assert with_replica_on(cluster, 4) == set()
    wait_until(lambda: full_strength(cluster), "every replica in sync")
    assert throttles(cluster) == ""
    assert sum(map(len, load.acknowledged.values())) > 0
    assert set(load.lost().values()) == {0}


def test_it_is_taken_back_once_the_broker_is_there_after_all(
    cluster: KafkaCluster, console: CommandRunner
) -> None:
    ended = console("heal", "undo", *AGREED)
    assert "broker 4 is not up, so it cannot take its replica back" in ended.out
    incident_steps.start(cluster, 4)
    status, told = console.json("heal", "undo", *AGREED)
    assert status == 0, told
    assert len(with_replica_on(cluster, 4)) == 2
    wait_until(lambda: full_strength(cluster), "every replica in sync")
    assert throttles(cluster) == ""


async def test_a_broker_that_is_gone_for_good_is_healed_from_the_keyboard(
    cluster: KafkaCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """``N`` in pane 8. The last one here: broker 4 stays dead."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    partitions = range(len(ASSIGNMENT))
    sent = [cluster.client.produce(TOPIC, number, 100, prefix="before").acknowledged for number in partitions]
    await asyncio.to_thread(kill, cluster, 4)
    async with open_console(resolve(cluster.bootstrap(), None, None, None), size=(120, 40)) as robot:
        await robot.looked()
        await robot.opens("8")
        await robot.puts_the_cursor_on(1)
        await robot.arms()
        await robot.press("N")
        await robot.idle()
        await robot.hears("broker 1 is up")
        await robot.puts_the_cursor_on(4)
        await robot.press("N")
        await robot.asked(Confirmation)
        await robot.sees("New replicas for 2 partitions in place of broker 4?", "[ Move ]")
        await robot.confirms("2", "its host burned down")
        await robot.idle()
        await robot.hears("2 partitions: 2 moved")
    assert with_replica_on(cluster, 4) == set()
    await asyncio.to_thread(wait_until, lambda: full_strength(cluster), "every replica in sync")
    (lines,) = [run for run in records(tmp_path) if any(line.get("kind") == "before" for line in run)]
    assert lines[0]["reason"] == "its host burned down"
    for number, values in enumerate(sent):
        read = {record.value for record in cluster.client.consume(TOPIC, number)}
        assert read.issuperset(values), "nothing is lost"


def test_a_reassignment_that_waits_for_a_dead_broker_is_cancelled(
    cluster: KafkaCluster, console: CommandRunner
) -> None:
    """It can never end, and neither can the broker's registration be removed before."""
    if 4 in cluster.metadata.live_brokers():
        kill(cluster, 4)
    incident_steps.assign(cluster, 1, "waits", 0, (4, 1, 2))
    incident_steps.assign(cluster, 1, "shrinks", 0, (4, 1))
    status, shown = console.json("heal", *gone(4))
    assert status == 1
    assert [one["topic"] for one in shown["cancelled"]] == ["shrinks", "waits"], shown
    status, healed = console.json("heal", "apply", *gone(4), *AGREED)
    ends = {one["topic"]: one["end"] for one in healed["moves"]}
    assert (ends["waits"], ends["shrinks"]) == ("cancelled", "cancelled"), healed
    whys = [one["reason"] for one in healed["moves"] if one["end"] == "cancelled"]
    assert all("which stood first before the reassignment" in why for why in whys), healed
    for topic in ends.keys() - {TOPIC}:
        assert set(cluster.metadata.partition(topic, 0).replicas) == {1, 2, 5}, topic
    status, again = console.json("heal", *gone(4))
    assert (status, again["cancelled"], again["moves"]) == (0, [], []), again
    unregister = "heal unregister --broker-id 4 --gone-for-good"
    assert unregister in console("handover").out
    assert unregister in console("heal", *gone(4)).err
    unregistered = console("heal", "unregister", *gone(4), *AGREED)
    assert unregistered.status == 0, unregistered
    assert len({record.value for record in cluster.client.consume("waits", 0)}) == 50


def test_a_partition_without_any_replica_left_begins_empty(
    cluster: KafkaCluster, console: CommandRunner
) -> None:
    """Its records were on one broker alone, which does not come back: nothing is sent before that is said."""
    cluster.client.create_topic("archive", [[5], [5]])
    for number in (0, 1):
        cluster.client.produce("archive", number, 30, prefix="old")
    kill(cluster, 5)
    incident_steps.wait_offline(cluster, ["archive"])
    status, shown = console.json("heal", *gone(5))
    named = [{"topic": "archive", "partition": number} for number in (0, 1)]
    assert status == 1 and [{k: one[k] for k in named[0]} for one in shown["empty"]] == named, shown
    looked = console("heal", "begin-empty", *gone(5), "--dry-run")
    assert "EVERY record of archive-0, archive-1 is lost" in looked.out, looked
    assert cluster.metadata.partition("archive", 0).replicas == (5,), "nothing was sent"
    refused = console("heal", "begin-empty", *gone(5), "--yes")
    assert refused.status == 2 and "--yes needs --reason" in refused.err, refused
    begun = console("heal", "begin-empty", *gone(5), *AGREED)
    assert begun.status in (0, 1) and "2 moved" in begun.out, begun
    for number in (0, 1):
        assert not cluster.client.consume("archive", number), "empty"
        cluster.client.produce("archive", number, 5, prefix="new")
        assert len(cluster.client.consume("archive", number)) == 5
        state = cluster.metadata.wait_caught_up().partition("archive", number)
        assert 5 not in state.replicas and state.leader in state.replicas
    assert "reason: a test" in console("journal").out
    again = console("heal", "begin-empty", *gone(5), "--dry-run")
    assert "0 partitions without any replica left" in again.out, again
    assert "archive" not in console("heal", "undo", "--dry-run").out, "there is no undo"


def test_a_partition_whose_two_replicas_are_gone_begins_empty_with_two(
    cluster: KafkaCluster, console: CommandRunner
) -> None:
    both = ("--broker-id", "4", *gone(5))
    incident_steps.start(cluster, 4, 5)
    cluster.client.create_topic("pairs", [[4, 5], [5, 4]])
    for number in (0, 1):
        cluster.client.produce("pairs", number, 30, prefix="old")
    kill(cluster, 4)
    kill(cluster, 5)
    incident_steps.wait_offline(cluster, ["pairs"])
    one = console("heal", "begin-empty", *gone(5), "--dry-run")
    assert "0 partitions without any replica left" in one.out, one
    begun = console("heal", "begin-empty", *both, *AGREED)
    assert "EVERY record of pairs-0, pairs-1 is lost" in begun.out and "2 moved" in begun.out, begun
    for number in (0, 1):
        cluster.metadata.wait_isr("pairs", number, [1, 2])
        assert not cluster.client.consume("pairs", number), "empty"
        cluster.client.produce("pairs", number, 5, prefix="new")
        assert len(cluster.client.consume("pairs", number)) == 5


def start(console: CommandRunner, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*command_line("ktriage", *words), *console.connection],
        env=environment(console.home),
        cwd=console.home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def copying(cluster: KafkaCluster) -> int:
    """Partitions that are being reassigned: they have the old replicas and the new ones. No process is started for
    it: on a busy machine a copy of some seconds would be over before the process had asked.
    """
    return sum(len(state.replicas) > 3 for state in cluster.metadata.partitions(TOPIC).values())
