"""Java's own tools against the served simulator and against a real cluster in the same state: they print the same.

What differs from cluster to cluster whatever happens (addresses, ids, times, sizes) is blanked on both sides.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.live.client.addresses import parse_addresses
from backends.live.client.settings import ClientSettings
from backends.live.codec.apis import Api
from backends.live.connections.connection import BrokerConnection
from backends.simulator.network import NetworkRole
from backends.simulator.scenario.files import read
from backends.simulator.served.api_versions import hidden, offered
from backends.simulator.served.served_cluster import ServedClusterOptions
from backends.simulator.world import World
from recovery.model import TopicPartition
from testbed.kafka import KafkaCluster
from testbed.kafka.incidents import stale_long_tail
from testbed.kafka.java_tools import ToolResult, Tools
from testbed.kafka.log_files import read_log
from tests.live import designated_elections
from tests.live.started_cluster import emptied
from tests.unit.cli.command_process import command_line, environment
from tests.wire.cluster_thread import ClusterThread
from tests.wire.recovery_outcome import RECOVER, recover_stale_long_tail

pytestmark = pytest.mark.long

CLUSTER = designated_elections.CLUSTER
SCENARIO = Path(__file__).parent.parent / "wire" / "scenarios" / "three-at-peace.yaml"
CONTROLLERS = (100, 101, 102)

_BLANKS = (
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r'(?<=[ "=])[A-Za-z0-9_-]{22}(?=[\s",)\]]|$)'), "ID"),
    (re.compile(r'("size":)\d+'), r"\1N"),
    (re.compile(r'"logDir":"[^"]*"'), '"logDir":"DIR"'),
    (re.compile(r"/\S*/(\w+\.json)"), r"\1"),
    (
        re.compile(r"(HighWatermark|MaxFollowerLag|MaxFollowerLagTimeMs|LeaderEpoch|LeaderId):\s+\d+"),
        r"\1: N",
    ),
    (re.compile(r"\b\d{13}\b"), "TIME"),
    (re.compile(r"\b(Epoch:|Local controller) \d+"), r"\1 N"),
)
# Log lines of the tool and of the Java that runs it (which may not map its archive of classes on a busy machine).
_NOISE = re.compile(
    r"^(\d{4}-\d\d-\d\d[ T]|\tat |\s*$|Error while executing config command with args"
    r"|\[\d+\.\d+s\]\[warning\]\[cds)"
)


class Both:
    """The two clusters; what is done to one is done to the other."""

    def __init__(self, real: KafkaCluster, served: ClusterThread, directory: Path) -> None:
        self.real = real
        self.served = served
        self.directory = directory
        self.served_tools = Tools(real.tools.runner, served.bootstrap, None, real.spec.version)

    def run(self, name: str, *args: str) -> tuple[ToolResult, ToolResult]:
        return self.real.tools(name, *args, check=False), self.served_tools(name, *args, check=False)

    def same(self, name: str, *args: str) -> str:
        """Run the tool on both; what it printed, which is the same."""
        real, served = (blanked(result) for result in self.run(name, *args))
        assert served == real, f"{name} {' '.join(args)}"
        return real

    def file(self, name: str, text: str) -> str:
        path = self.directory / name
        path.write_text(text)
        return str(path)

    def kill(self, broker: int) -> None:
        self.real.node(broker).kill()
        self.served.change(lambda world: world.kill_broker(broker))
        self.real.metadata.wait_fenced(broker)
        self.served.until(lambda world: world.image.brokers[broker].fenced, f"{broker} to be fenced")

    def start(self, broker: int) -> None:
        self.real.node(broker).start()
        self.served.change(lambda world: world.start_broker(broker))
        self.real.metadata.wait_live([broker])
        self.served.until(lambda world: not world.image.brokers[broker].fenced, f"{broker} to be back")

    def leaders(self) -> tuple[int, int]:
        """Who leads the quorum in each."""
        status = self.real.tools("kafka-metadata-quorum", "describe", "--status").stdout
        leader = re.search(r"LeaderId:\s+(\d+)", status)
        assert leader is not None
        served = self.served.do(lambda cluster: cluster.world.quorum.leader)
        assert served is not None
        return int(leader[1]), served.id

    def wait_isr(self, member: int, *partitions: tuple[str, int]) -> None:
        """Until it is in the ISR of each of them."""
        for tp in (TopicPartition(*named) for named in partitions):
            what = f"{member} in the ISR of {tp}"
            self.real.metadata.wait_partition(*tp, lambda state: member in state.isr, what)

            def joined(world: World, tp: TopicPartition = tp) -> bool:
                return member in world.image.partitions[tp].isr

            self.served.until(joined, what)


def blanked(result: ToolResult) -> str:
    """Status, output and errors without what is each cluster's own; tables and lists in a settled order."""
    errors = [line for line in result.stderr.splitlines() if not _NOISE.match(line)]
    text = "\n".join([f"status {result.status}", *result.stdout.splitlines(), *errors])
    for pattern, blank in _BLANKS:
        text = pattern.sub(blank, text)
    return "\n".join(_settled(line) for line in text.splitlines())


def _settled(line: str) -> str:
    line = re.sub(
        r"\[(ReplicaKey[^\]]*)\]", lambda found: str(sorted(re.findall(r"\(.*?\)", found[1]))), line
    )
    if line.startswith(("CurrentObservers:", "CurrentVoters:")):
        return " ".join(sorted(re.findall(r'"id": \d+', line)))
    words = line.split()
    if words[-1:] == ["Observer"] or words[-1:] == ["Follower"] or words[-1:] == ["Leader"]:
        return f"{len(words)} columns: {words[-1]}"
    return line.rstrip()


@pytest.fixture(scope="module")
def both(cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with ClusterThread(read(str(SCENARIO)), ServedClusterOptions()) as served:
        found = Both(emptied(cluster), served, tmp_path_factory.mktemp("java"))
        found.served_tools("kafka-topics", "--delete", "--topic", "first")
        yield found


OF_GROUPS = {Api.OffsetCommit, Api.OffsetFetch}


@pytest.mark.parametrize("role", [NetworkRole.BROKER, NetworkRole.CONTROLLER])
def test_the_calls_are_a_real_nodes_in_the_same_versions(both: Both, role: NetworkRole) -> None:
    """Of the calls that are served: neither a version less nor one more, but for the two that no release has, and
    those of groups, of which docs/serving.md names the versions.
    """
    real, served = both.real.bootstrap(), both.served.bootstrap
    if role is NetworkRole.CONTROLLER:
        real, served = both.real.bootstrap_controllers, both.served.cluster.bootstrap_controllers
    today = dict(offered(role, hidden("GetReplicaLogInfo,ElectLeaders:3")))
    kafka = {key: versions for key, versions in asked(real).items() if key in today}
    for key in OF_GROUPS & today.keys():
        (lowest, highest), (first, last) = kafka.pop(key), today.pop(key)
        assert lowest <= first <= last <= highest
    assert kafka == today
    assert asked(served) == offered(role)


def asked(bootstrap: str) -> dict[int, tuple[int, int]]:
    """What ApiVersions tells of the first node."""
    address = parse_addresses(bootstrap)[0]

    async def ask() -> dict[int, tuple[int, int]]:
        conn = await BrokerConnection.open(address, ClientSettings((address,)))
        try:
            return dict(conn.api_keys)
        finally:
            conn.close()

    return asyncio.run(ask())


# One incident, told in the order in which it happens: each test goes on from where the last one left both clusters.


def test_topics_are_made_listed_and_refused(both: Both) -> None:
    made = both.same(
        *("kafka-topics", "--create", "--topic", "t", "--replica-assignment", "1:2:3,2:3:1,3:1:2"),
        *("--config", "min.insync.replicas=2"),
    )
    assert "Created topic t." in made
    both.same("kafka-topics", "--create", "--topic", "u", "--replica-assignment", "2:3,3:1,1:2")
    both.same("kafka-topics", "--create", "--topic", "t", "--partitions", "1")
    both.same("kafka-topics", "--create", "--topic", "many", "--partitions", "1", "--replication-factor", "4")
    both.same("kafka-topics", "--create", "--topic", "odd", "--config", "nonsense=1")
    both.same("kafka-topics", "--create", "--topic", "odd", "--config", "segment.bytes=1")
    both.same("kafka-topics", "--create", "--topic", "odd name", "--partitions", "1")
    both.same("kafka-topics", "--create", "--topic", "odd", "--replica-assignment", "1:9")
    both.real.metadata.wait_topic("t", 3, each=lambda state: state.leader >= 0)
    assert "Elr:" in both.same("kafka-topics", "--describe", "--topic", "t")
    both.same("kafka-topics", "--list")


def test_configurations_are_told_with_their_synonyms_and_altered(both: Both) -> None:
    topic = ("--entity-type", "topics", "--entity-name", "t")
    assert "synonyms=" in both.same("kafka-configs", "--describe", *topic)
    both.same("kafka-configs", "--describe", *topic, "--all")
    both.same("kafka-configs", "--alter", *topic, "--add-config", "retention.ms=1000")
    assert "retention.ms=1000" in both.same("kafka-topics", "--describe", "--topic", "t")
    for wrong in ("retention.ms=soon", "min.insync.replicas=0", "cleanup.policy=banana", "nonsense=1"):
        both.same("kafka-configs", "--alter", *topic, "--add-config", wrong)
    both.same("kafka-configs", "--alter", *topic, "--delete-config", "never.set")
    both.same("kafka-configs", "--alter", *topic, "--delete-config", "retention.ms")
    both.same("kafka-configs", "--describe", *topic)
    both.same("kafka-configs", "--describe", "--entity-type", "brokers", "--entity-name", "1")


def test_the_quorum_is_told_as_it_is(both: Both) -> None:
    assert '"id": 100 "id": 101 "id": 102' in both.same("kafka-metadata-quorum", "describe", "--status")
    both.same("kafka-metadata-quorum", "describe", "--replication")


def test_features_are_told_and_refused(both: Both) -> None:
    both.same("kafka-features", "describe")
    for feature in ("kraft.version=1", "metadata.version=31", "metadata.version=29", "nope=1"):
        both.same("kafka-features", "upgrade", "--feature", feature)


def test_offsets_and_log_dirs(both: Both) -> None:
    both.same("kafka-get-offsets", "--topic", "t")
    both.real.client.produce("t", 0, 10, acks="all")
    produce(both.served.bootstrap, "t", 0, 10)
    assert "t:0:10" in both.same("kafka-get-offsets", "--topic", "t")
    both.same("kafka-get-offsets", "--topic", "t", "--time", "-2")
    both.same("kafka-get-offsets", "--topic", "u", "--time", "-3")
    both.same("kafka-log-dirs", "--describe", "--topic-list", "t", "--broker-list", "2")


def produce(bootstrap: str, topic: str, partition: int, count: int) -> None:
    from confluent_kafka import Producer

    errors: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for number in range(count):
        producer.produce(
            topic, f"{number}", partition=partition, on_delivery=lambda error, _: errors.append(error)
        )
    assert producer.flush(30) == 0
    assert errors == [None] * count


def test_a_finished_reassignment_is_verified(both: Both) -> None:
    plan = both.file(
        "reassignment.json",
        '{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2, 3]}]}',
    )
    assert "completed" in both.same("kafka-reassign-partitions", "--verify", "--reassignment-json-file", plan)


def test_elections_that_are_not_needed_or_not_possible(both: Both) -> None:
    plan = both.file("plan.json", '{"partitions": [{"topic": "t", "partition": 0}]}')
    both.same("kafka-leader-election", "--election-type", "preferred", "--all-topic-partitions")
    both.same("kafka-leader-election", "--election-type", "unclean", "--path-to-json-file", plan)
    both.same("kafka-leader-election", "--election-type", "preferred", "--topic", "no", "--partition", "0")
    both.same("kafka-leader-election", "--election-type", "unclean", "--topic", "t", "--partition", "9")


def test_a_dead_broker_is_seen_and_cannot_be_preferred(both: Both) -> None:
    both.kill(1)
    both.same("kafka-topics", "--describe", "--under-replicated-partitions")
    both.same("kafka-leader-election", "--election-type", "preferred", "--topic", "t", "--partition", "0")


def test_below_min_isr_the_elr_is_shown(both: Both) -> None:
    both.kill(2)
    assert "Elr: 2" in both.same("kafka-topics", "--describe", "--under-min-isr-partitions")
    both.same("kafka-topics", "--describe", "--at-min-isr-partitions")
    assert "Leader: none" in both.same("kafka-topics", "--describe", "--unavailable-partitions")
    both.same("kafka-log-dirs", "--describe", "--topic-list", "t")


def test_an_unclean_election_from_a_plan_file(both: Both) -> None:
    both.start(1)
    both.wait_isr(1, ("t", 0), ("t", 1), ("t", 2), ("u", 1))
    both.kill(3)
    assert "Leader: none" in both.same("kafka-topics", "--describe", "--unavailable-partitions")
    both.same("kafka-leader-election", "--election-type", "preferred", "--topic", "u", "--partition", "2")
    plan = both.file("plan.json", '{"partitions": [{"topic": "u", "partition": 2}]}')
    elected = both.same("kafka-leader-election", "--election-type", "unclean", "--path-to-json-file", plan)
    assert "Successfully completed leader election" in elected
    both.same("kafka-topics", "--describe", "--topic", "u")


def test_the_preferred_leader_leads_again_when_it_is_back(both: Both) -> None:
    both.start(3)
    both.wait_isr(3, ("t", 2), ("u", 1))
    plan = both.file("plan.json", '{"partitions": [{"topic": "t", "partition": 2, "designatedLeader": 1}]}')
    prefer = ("kafka-leader-election", "--election-type", "preferred")
    elected = both.same(*prefer, "--path-to-json-file", plan)
    assert "Successfully completed leader election (PREFERRED) for partitions t-2" in elected
    assert "partitions u-1" in both.same(*prefer, "--topic", "u", "--partition", "1")
    both.same(*prefer, "--all-topic-partitions")


def lasting(tools: Tools, *words: str) -> ToolResult:
    """Asked again as long as the answer is one that passes: a leader so new, or busy, that it refuses at once."""
    result = tools(*words, check=False)
    for _ in range(10):
        if "TimeoutException" not in result.stdout + result.stderr:
            break
        result = tools(*words, check=False)
    return result


def test_a_controller_is_removed_and_added_again(both: Both) -> None:
    both.start(2)
    follower = next(number for number in CONTROLLERS if number not in both.leaders())
    keys = both.served.do(lambda cluster: cluster.world.quorum.disks[follower].key)
    ids = (both.real.node(follower).directory_id, keys.directory_id)
    assert ids[0] is not None
    remove = ("kafka-metadata-quorum", "remove-controller", "--controller-id", str(follower))
    for _ in ("it is a voter", "it is none any more"):
        real = lasting(both.real.tools, *remove, "--controller-directory-id", ids[0])
        served = lasting(both.served_tools, *remove, "--controller-directory-id", ids[1])
        assert blanked(served) == blanked(real)
    both.same("kafka-metadata-quorum", "describe", "--status")
    port = both.served.do(
        lambda cluster: next(port for node, port in cluster.ports.items() if node.id == follower)
    )
    host = both.directory / "controller"
    host.mkdir()
    (host / "meta.properties").write_text(
        f"version=1\ncluster.id={both.served.cluster.cluster_id}\nnode.id={follower}\ndirectory.id={ids[1]}\n"
    )
    config = both.file(
        "controller.properties",
        f"process.roles=controller\nnode.id={follower}\nlog.dirs={host}\ncontroller.listener.names=CONTROLLER\n"
        f"listeners=CONTROLLER://127.0.0.1:{port}\nadvertised.listeners=CONTROLLER://127.0.0.1:{port}\n"
        f"controller.quorum.bootstrap.servers={both.served.cluster.bootstrap_controllers}\n",
    )
    served = lasting(both.served_tools, *_at(both, "served", config))
    real = lasting(both.real.tools, *_at(both, "real", str(both.real.node(follower).properties_file)))
    assert blanked(served) == blanked(real)
    both.same("kafka-metadata-quorum", "describe", "--status")


def _at(both: Both, which: str, config: str) -> tuple[str, ...]:
    bootstrap = both.served.bootstrap if which == "served" else both.real.bootstrap()
    return (
        "kafka-metadata-quorum",
        *("--bootstrap-server", bootstrap, "--command-config", config, "add-controller"),
    )


def test_topics_are_deleted(both: Both) -> None:
    both.same("kafka-topics", "--delete", "--topic", "u")
    both.same("kafka-topics", "--delete", "--topic", "never-made")
    both.same("kafka-topics", "--list")


def test_the_same_incident_recovered_by_the_same_command_ends_the_same(both: Both) -> None:
    """The stale long tail on real Kafka, and natively on the wire: the same leader, the same logs on all disks."""
    real = both.real
    real.bring_all_up()
    real.client.create_topic("payments", [[1, 2, 3]])
    incident = stale_long_tail(real, "payments")
    argv = command_line("kafka-unclean-recovery", *RECOVER, "--bootstrap-server", real.bootstrap())
    home = environment(both.directory / "home")
    done = subprocess.run(argv, env=home, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    real.bring_all_up()
    real.metadata.wait_isr("payments", 0, [1, 2, 3])
    end = recover_stale_long_tail("", both.directory / "served")
    assert real.metadata.wait_caught_up().partition("payments", 0).leader == end.leader
    for broker in (1, 2, 3):
        kept = read_log(real.node(broker), incident.topic, 0)
        assert kept.spans == end.logs[broker]
