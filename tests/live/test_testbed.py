"""The testbed itself: what it says happened has happened to a real cluster."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from recovery.model import EpochSpan
from testbed.kafka import ClusterSpec, KafkaCluster, NodeDied, TimedOut, wait_until
from testbed.kafka.incidents import failed_disk, stale_long_tail
from testbed.kafka.log_files import read_log
from testbed.kafka.work_directory import WorkDirectory
from tests.live.resident_java import ResidentJavas
from tests.live.started_cluster import started_cluster

pytestmark = pytest.mark.long

TOOLS_ARE_PROCESSES = True
CLUSTER = ClusterSpec(log_dirs=2, racks={1: "a", 2: "b", 3: "c"})
CAUGHT_UP = "The broker has caught up"
MIN_ISR_2 = {"min.insync.replicas": "2"}


def test_all_nodes_come_up_with_the_elr_feature(whole_cluster: KafkaCluster) -> None:
    assert whole_cluster.metadata.live_brokers() == {1, 2, 3}
    quorum = whole_cluster.tools("kafka-metadata-quorum", "describe", "--status").stdout
    for controller in whole_cluster.controllers.values():
        assert f'"id": {controller.id}, "directoryId": "{controller.directory_id}"' in quorum
    features = whole_cluster.tools("kafka-features", "describe").stdout
    elr = next(line for line in features.splitlines() if "eligible.leader.replicas.version" in line)
    assert "FinalizedVersionLevel: 1" in elr


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("kafka-topics", ("--list",)),
        ("kafka-topics", ("--describe", "--topic", "nowhere")),
        ("kafka-topics", ("--help",)),  # ends in the middle of a block that catches everything
        ("kafka-configs", ("--describe", "--entity-type", "moons")),
        ("kafka-dump-log", ("--files", "/nowhere/00000000000000000000.log")),
    ],
)
def test_a_tool_in_the_resident_java_ends_as_its_own_process_does(
    whole_cluster: KafkaCluster, resident_javas: ResidentJavas, tool: str, words: tuple[str, ...]
) -> None:
    resident = replace(whole_cluster.tools, runner=resident_javas.runner(whole_cluster.tools.runner))
    own, here = (tools(tool, *words, check=False) for tools in (whole_cluster.tools, resident))
    assert (here.status, here.stdout) == (own.status, own.stdout)
    assert without_log(here.stderr) == without_log(own.stderr)


def without_log(errors: str) -> list[str]:
    """What a tool complains of, without log lines and frames."""
    return [line for line in errors.splitlines() if line and not line.startswith(("\tat ", "20"))]


def test_a_killed_broker_is_fenced_and_comes_back_into_the_isr(whole_cluster: KafkaCluster) -> None:
    metadata = whole_cluster.metadata
    whole_cluster.client.create_topic("orders", [[1, 2, 3]], MIN_ISR_2)
    whole_cluster.node(1).kill()
    assert not whole_cluster.node(1).is_running
    metadata.wait_fenced(1)
    assert metadata.wait_caught_up().partition("orders", 0).leader != 1
    sent = whole_cluster.client.produce("orders", 0, 50)
    whole_cluster.node(1).start()
    metadata.wait_isr("orders", 0, [1, 2, 3])
    assert tuple(record.value for record in whole_cluster.client.consume("orders", 0)) == sent.acknowledged


def test_a_broker_restarted_before_it_was_missed_is_live_only_when_it_is_back(
    whole_cluster: KafkaCluster,
) -> None:
    broker = whole_cluster.node(2)
    runs = broker.log_file.read_text().count(CAUGHT_UP)
    broker.restart(clean=False)
    whole_cluster.metadata.wait_live([2])
    assert broker.log_file.read_text().count(CAUGHT_UP) == runs + 1


def test_a_paused_broker_hangs_and_goes_on(whole_cluster: KafkaCluster) -> None:
    broker = whole_cluster.node(2)
    broker.pause()
    whole_cluster.metadata.wait_fenced(2)
    assert broker.is_running
    broker.resume()
    whole_cluster.metadata.wait_live([2])


def test_the_stale_long_tail_ends_as_its_story_says(whole_cluster: KafkaCluster) -> None:
    whole_cluster.client.create_topic("tail", [[1, 2, 3]], MIN_ISR_2)
    told: list[str] = []
    incident = stale_long_tail(whole_cluster, "tail", narrate=told.append)
    assert (incident.alive, incident.dead) == ((1, 2), (3,))
    assert (len(incident.acks_all), len(incident.acks_one)) == (1300, 500)
    assert "tail-0 is offline" in told[-1]
    stale, newer = (read_log(whole_cluster.node(broker), "tail", 0) for broker in (1, 2))
    assert stale.spans == (EpochSpan(0, 0, 1500),)
    assert newer.spans == (EpochSpan(0, 0, 1000), EpochSpan(2, 1000, 1300))
    described = whole_cluster.tools("kafka-topics", "--describe", "--topic", "tail").stdout
    assert "Leader: none" in described
    assert "Elr: 3\tLastKnownElr: 3" in described


def test_a_removed_log_dir_is_offline_and_the_broker_lives_on(whole_cluster: KafkaCluster) -> None:
    metadata = whole_cluster.metadata
    whole_cluster.client.create_topic("disks", [[3, 1]] * 8)
    held = failed_disk(whole_cluster, 3)
    lost = {int(name.removeprefix("disks-")) for name in held if name.startswith("disks-")}
    assert lost

    def offline() -> set[int]:
        return {number for number, state in metadata.partitions("disks").items() if 3 in state.offline}

    wait_until(
        lambda: offline() == lost,
        f"replicas {sorted(lost)} of disks to be offline",
        30.0,
        describe_state=offline,
    )
    assert whole_cluster.node(3).is_running
    assert "KafkaStorageException" in whole_cluster.tools("kafka-log-dirs", "--describe").stdout
    whole_cluster.bring_all_up()
    metadata.wait_topic("disks", 8, each=lambda state: len(state.isr) == 2, what="fully replicated")


def test_a_node_that_does_not_come_up_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    broken = KafkaCluster(
        ClusterSpec(controllers=1, brokers=1, jvm=("-XX:NoSuchFlag",)), directory=tmp_path / "broken"
    )
    with pytest.raises(NodeDied, match="ended with status 1") as caught:
        broken.start()
    assert "Unrecognized VM option" in str(caught.value)
    assert not any(node.is_running for node in (*broken.brokers.values(), *broken.controllers.values()))
    broken.stop()


def test_a_broker_that_could_not_register_in_time_is_started_again_and_told() -> None:
    told: list[str] = []
    impatient = {"initial.broker.registration.timeout.ms": "1"}

    def mended(line: str) -> None:
        if line.startswith("started again"):
            told.append(line)
            cluster.node(1).change_properties({"initial.broker.registration.timeout.ms": "60000"})

    cluster = KafkaCluster(ClusterSpec(controllers=1, brokers=1, node_config={1: impatient}), say=mended)
    with cluster:
        assert cluster.node(1).is_running
    assert "unable to register with the controller quorum" in told[0]


def test_a_controller_that_ended_at_its_first_start_is_started_again_and_told() -> None:
    told: list[str] = []

    def mended(line: str) -> None:
        if line.startswith("started again"):
            told.append(line)
            cluster.node(100).change_properties({"metric.reporters": ""})

    broken = {100: {"metric.reporters": "no.such.Reporter"}}
    cluster = KafkaCluster(ClusterSpec(controllers=1, brokers=1, node_config=broken), say=mended)
    with cluster:
        assert all(node.is_running for node in (*cluster.controllers.values(), *cluster.brokers.values()))
    assert "controller 100 ended with status 1" in told[0]
    assert "no.such.Reporter" in told[0]


def test_a_cluster_that_does_not_come_up_is_replaced_once_and_every_log_is_told() -> None:
    told: list[str] = []
    fault = {"metric.reporters": "no.such.Reporter"}

    def machine_recovers(line: str) -> None:
        told.append(line)
        fault.clear()

    with started_cluster(ClusterSpec(brokers=1, node_config={100: fault}), machine_recovers) as cluster:
        assert cluster.metadata.live_brokers() == {1}
        assert str(cluster.directory) not in told[0], "it has a directory, ports and an id of its own"
    assert "no.such.Reporter" in told[0]
    assert "controller 100: warnings of" in told[0]
    assert "broker 1: warnings of" in told[0]


def test_a_cluster_that_does_not_come_up_twice_is_an_error() -> None:
    told: list[str] = []
    spec = ClusterSpec(brokers=1, jvm=("-XX:NoSuchFlag",))
    with pytest.raises(NodeDied, match="Unrecognized VM option"), started_cluster(spec, told.append):
        pass
    assert len(told) == 1


PARENT = """
import sys
from testbed.kafka import ClusterSpec, KafkaCluster
cluster = KafkaCluster(ClusterSpec(controllers=1, brokers=0))
cluster.start()
print(cluster.node(100).pid, cluster.directory, flush=True)
sys.stdin.read()
"""


def test_a_killed_test_run_leaves_no_kafka_behind(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid, directory = parent.stdout.readline().split()
        parent.send_signal(signal.SIGKILL)
    wait_until(lambda: not _exists(int(pid)), f"the orphaned controller {pid} to be gone", 10.0)
    assert Path(directory).is_dir()
    WorkDirectory(tmp_path).release()
    assert not Path(directory).exists()


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        # Gone, and only not yet reaped by whoever inherited it, counts as gone.
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_a_wait_that_fails_says_what_was_seen() -> None:
    with pytest.raises(TimedOut, match=r"waited 0 s for a miracle; the state is: 3"):
        wait_until(lambda: None, "a miracle", 0.0, describe_state=lambda: 3)
