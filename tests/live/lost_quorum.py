"""Incidents in which a quorum is lost for good, described as data, and the rebuild as an operator does it.

What an incident must come to is the same for all: everything that was acknowledged is read again, topic ids,
configurations and ACLs are those of before, and Kafka's own tools agree with what was written and who leads.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from confluent_kafka import TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the package does not list what it exports
    AlterConfigOpType,
    ConfigEntry,
)
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType

from backends.metadata_log.directory import DIRECTORY
from recovery.wording.quantity_text import both
from testbed.kafka import ClusterSpec, KafkaCluster, ToolFailed, wait_until
from testbed.kafka.jars import cache_directory
from tests.command_server import Ended
from tests.live.command_runner import CommandRunner
from tests.live.quorum_replacement import QuorumWatcher, wait_listening
from tests.unit.cli.command_process import command_line, environment

YES = ("--yes", "--reason", "a test")
ORDERS = "orders"
RECORDS = 100
"""In each partition of each topic."""
ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:broker",
}
SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": "2000"}
KEEPS_LITTLE = {"internal.metadata.log.segment.bytes": "16384", "metadata.max.retention.bytes": "1024"}
"""Kafka then deletes what is before a snapshot, a minute later at the latest."""

Left = Literal["leader", "follower", "broker"]
Step = tuple[Literal["kill", "changes", "topic", "acl", "known", "trimmed", "replaced", "moved"], int | str]
"""``kill``: a node dies, and stays down. ``changes``: so many changes of a configuration. ``topic``: one is made,
and written to; ``acl``: one is made for that topic. ``known``: what the chosen copy will know of configurations and
ACLs is what there is now. ``trimmed``: until every controller's log begins with a snapshot. ``replaced``: a spare
controller takes the place of the voter that died. ``moved``: broker 3 takes the place of one replica in each
partition of that topic, which is written to then."""


def spec(
    version: str = "4.3.1",
    *,
    controllers: int = 3,
    brokers: int = 2,
    quorum: Literal["dynamic", "static"] = "dynamic",
    combined: bool = False,
    controller_tls: bool = False,
    versions: dict[int, str] | None = None,
    settings: dict[str, str] | None = None,
    spares: int = 0,
) -> ClusterSpec:
    """A cluster with ACLs and these ``settings`` on every node."""
    everywhere = ACLS | (settings or {})
    return ClusterSpec(
        version,
        controllers,
        brokers,
        spares,
        quorum=quorum,
        combined=combined,
        controller_tls=controller_tls,
        broker_config=everywhere,
        controller_config=everywhere,
        node_versions=versions or {},
    )


@dataclass(frozen=True, slots=True)
class LostQuorum:
    """``left``: whose copy is chosen: that of the controller that led, or followed, at the end, or of the node
    ``node`` (a broker: no controller's disk is left). Every other controller's disk is gone. ``refused``: what the
    first plan is refused for; ``accepts``: the options that the operator gives then. ``stops``: the brokers are
    stopped before. ``starts``: nodes that died before, and run again afterwards.
    """

    name: str
    spec: ClusterSpec
    left: Left
    node: int = 0
    before: tuple[Step, ...] = ()
    refused: tuple[str, ...] = ()
    accepts: tuple[str, ...] = ()
    stops: bool = False
    unnamed: tuple[int, ...] = ()
    """Whom the first plan does not name as dead."""
    starts_at: Literal["anywhere", "zero", "snapshot"] = "anywhere"
    """Where the chosen log begins; ``zero``: and has a snapshot in its middle."""
    ahead: tuple[int, ...] = ()
    """Whose metadata the plan says must be moved away before the start."""
    forgotten: tuple[str, ...] = ()
    """Topics that no copy knows, because the brokers' own are gone: only their records are on disk."""
    moved: tuple[str, ...] = ()
    """Topics of which the plan makes broker 3 a replica, which the copy does not have there."""
    new_voter: int = 0
    """The controller that gets a broker's copy; 0: the first of the old ones, with a new disk."""


class ClusterFacts(NamedTuple):
    """Topic ids by name, the configurations that were set, and ACLs, as an administrator reads them."""

    topic_ids: dict[str, str]
    configs: dict[str, dict[str, str]]
    acls: str

    @classmethod
    def of(cls, cluster: KafkaCluster) -> ClusterFacts:
        admin = cluster.admin
        names = sorted(name for name in admin.list_topics(timeout=30).topics if not name.startswith("__"))
        topics = admin.describe_topics(TopicCollection(names))
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        configs = {r.name: answer.result(30) for r, answer in admin.describe_configs(resources).items()}
        return cls(
            {name: str(answer.result(30).topic_id) for name, answer in topics.items()},
            {
                name: {entry.name: str(entry.value) for entry in entries.values() if entry.source == _SET}
                for name, entries in configs.items()
            },
            cluster.tools("kafka-acls", "--list").stdout,
        )


_SET = 1
"""ConfigSource DYNAMIC_TOPIC_CONFIG."""


class Rebuilt(NamedTuple):
    """What one incident came to."""

    log_end: int
    epoch: int
    records: int
    topics: int


class RebuiltQuorum:
    """Carries one incident out on a running ``cluster``; ``home`` gets the plan and the tool's own files. Each
    method is one step of the runbook, and fails where it does not go as it must.
    """

    def __init__(self, incident: LostQuorum, cluster: KafkaCluster, home: Path) -> None:
        self.incident = incident
        self.cluster = cluster
        self.console = CommandRunner(home, cluster.bootstrap())
        self.plan_file = home / "rebuild.json"
        self.acknowledged: list[str] = []
        self._topics: list[str] = []
        self._went_on = 0
        self._known: ClusterFacts | None = None
        self.voter = 0

    def whole(self) -> Rebuilt:
        """From the first record to the last check."""
        self.prepare()
        self.lose()
        if self.incident.spec.quorum == "static":
            self.name_static_voter()
        else:
            self.make_plan()
            self.rehearse()
            self.apply()
        self.start()
        return self.check()

    # Before

    def prepare(self) -> None:
        """Topics, records, ACLs, and whatever the incident begins with."""
        acl = ("--allow-principal", "User:ana", "--operation", "Read", "--topic", ORDERS)
        self.cluster.tools("kafka-acls", "--add", *acl)
        self.make_topic(ORDERS)
        verbs: dict[str, Callable[[int | str], None]] = {
            "kill": self._kill,
            "changes": self.change,
            "topic": self.make_topic,
            "acl": self._make_acl,
            "known": self._know,
            "trimmed": self._trim,
            "replaced": self._replace,
            "moved": self._move,
        }
        for verb, what in self.incident.before:
            verbs[verb](what)
        self.before = self.facts()
        assert "User:ana" in self.before.acls

    def facts(self) -> ClusterFacts:
        """Once every broker has applied all that was changed."""
        self.cluster.metadata.wait_caught_up()
        return ClusterFacts.of(self.cluster)

    def _know(self, _what: object) -> None:
        self._known = self.facts()

    def _replace(self, spare: int | str) -> None:
        watched, new = QuorumWatcher(self.cluster), int(spare)
        formatted = (node for node in self.cluster.controllers.values() if node.directory_id)
        dead = next(node.id for node in formatted if not node.is_running)
        self.cluster.format_again(new)
        self.cluster.node(new).start()
        wait_listening(self.cluster, new)
        watched.joined(new)
        for words in (("add", str(new)), ("remove", str(dead), "--not-rebuilt")):
            done = self.console("quorum", *words, *YES)
            assert done.status == 0, done
        assert new in watched.voters() and dead not in watched.voters()

    def _move(self, topic: int | str) -> None:
        """The leader of partition 0 changes; that of partition 1 stays."""
        wanted = {0: [3, 2], 1: [2, 3]}
        moves = [{"topic": topic, "partition": n, "replicas": replicas} for n, replicas in wanted.items()]
        file = self.plan_file.with_name("moves.json")
        file.write_text(json.dumps({"version": 1, "partitions": moves}))
        self.cluster.tools("kafka-reassign-partitions", "--reassignment-json-file", str(file), "--execute")
        for number, replicas in wanted.items():
            self.cluster.metadata.wait_isr(str(topic), number, set(replicas), 60)
            assert set(self.cluster.metadata.partition(str(topic), number).replicas) == set(replicas)
        self.produce(str(topic), "moved")

    def _make_acl(self, topic: int | str) -> None:
        who = ("--allow-principal", "User:bob", "--operation", "Write", "--topic", str(topic))
        self.cluster.tools("kafka-acls", "--add", *who)

    def _trim(self, _what: object) -> None:
        def trimmed() -> bool:
            self.change(20)
            logs = (node.log_dirs[0] / DIRECTORY for node in self.cluster.controllers.values())
            return all(_begins(log) > 0 for log in logs)

        # Kafka looks once a minute.
        wait_until(trimmed, "the controllers' logs to begin with a snapshot", 180, interval=2.0)

    def _kill(self, node: int | str) -> None:
        self.cluster.metadata.wait_caught_up()
        self.cluster.node(int(node)).kill()
        if int(node) in self.cluster.brokers:
            # An administrator's client may still ask one that is not fenced yet.
            self.cluster.metadata.wait_fenced(int(node))

    def make_topic(self, name: int | str) -> None:
        """With two partitions, and records in both."""
        replicas = sorted(node for node, broker in self.cluster.brokers.items() if broker.is_running)
        assignment = [replicas[:2], replicas[:2][::-1]]
        settings = {"min.insync.replicas": "1", "retention.ms": "86400000"}
        self.cluster.client.create_topic(str(name), assignment, settings)
        self._topics.append(str(name))
        self.produce(str(name))

    def produce(self, topic: str, prefix: str = "record", count: int = RECORDS) -> None:
        """Writes to both partitions."""
        for partition in (0, 1):
            sent = self.cluster.client.produce(
                topic, partition, count, prefix=f"{topic}-{partition}-{prefix}"
            )
            assert len(sent.acknowledged) == count, sent.errors
            self.acknowledged += sent.acknowledged

    def leave_behind(self, node: int) -> None:
        """The node dies, whose copy is to be chosen: it lacks all that comes after."""
        self._know(0)
        self._kill(node)

    def change(self, count: int | str) -> None:
        """So many changes of the metadata."""
        admin = self.cluster.admin
        for number in range(1, int(count) + 1):
            entry = ConfigEntry(
                "retention.ms", str(86400000 + number), incremental_operation=AlterConfigOpType.SET
            )
            resource = ConfigResource(ResourceType.TOPIC, ORDERS, incremental_configs=[entry])
            for answer in admin.incremental_alter_configs([resource]).values():
                answer.result(30)

    # The loss

    def described_quorum(self) -> dict[str, str]:
        """What Kafka's own ``kafka-metadata-quorum describe --status`` says, line by line."""
        said = self.cluster.tools("kafka-metadata-quorum", "describe", "--status").stdout
        return {name: value.strip() for name, _, value in (line.partition(":") for line in said.splitlines())}

    def lose(self) -> None:
        """All controllers die, and with them the disks of all but the one that is left, if any."""
        leader = int(self.described_quorum()["LeaderId"])
        controllers = self.cluster.controllers
        if self.incident.left == "broker":
            self.voter = self.incident.new_voter or min(controllers)
        elif self.incident.node:
            self.voter = self.incident.node
        else:
            self.voter = (
                leader if self.incident.left == "leader" else next(n for n in controllers if n != leader)
            )
        others = [node for node in controllers if node != self.voter]
        for node in (*others, self.voter):
            self.cluster.node(node).kill()
        for node in others:
            self._lose_disk(node)
        if not self.incident.spec.combined and not self.incident.stops:
            # Partitions whose ISR is alive go on without a controller.
            self.produce(ORDERS, "without-a-controller", 20)
        if self.incident.left == "broker":
            self.cluster.format_again(self.voter)
        if self.incident.starts_at != "anywhere":
            self._check_start()

    def _lose_disk(self, node: int) -> None:
        """Of a node of both roles only the metadata is lost: its records are what the incident is not about."""
        if self.incident.spec.combined:
            shutil.rmtree(self.cluster.node(node).log_dirs[0] / DIRECTORY)
        else:
            self.cluster.node(node).wipe_log_dir()

    def _check_start(self) -> None:
        snapshots = [int(path.name[:20]) for path in self.source.glob("*.checkpoint")]
        assert max(snapshots) > 0, snapshots
        assert (_begins(self.source) == 0) == (self.incident.starts_at == "zero")

    @property
    def target(self) -> Path:
        """The log dir of the controller that becomes the voter."""
        return self.cluster.node(self.voter).log_dirs[0]

    @property
    def source(self) -> Path:
        """The directory that is chosen."""
        chosen = self.incident.node if self.incident.left == "broker" else self.voter
        return self.cluster.node(chosen).log_dirs[0] / DIRECTORY

    # The rebuild

    @property
    def dead(self) -> tuple[int, ...]:
        """The old voters that never start again with the disks that they had."""
        formatted = [node.id for node in self.cluster.controllers.values() if node.directory_id]
        goes_on = self.incident.left != "broker" or self.incident.new_voter
        return tuple(node for node in formatted if node != self.voter or not goes_on)

    def words(self, without: Collection[int] = ()) -> list[str]:
        """The options of a plan that accepts no loss; the voters ``without`` are not named."""
        brokers = [str(node.log_dirs[0]) for node in self.cluster.brokers.values()]
        words = ["--from", str(self.source.parent)]
        if self.incident.left == "broker":
            words += ["--into", str(self.target)]
        words += ["--voter", f"{self.voter}@{self.cluster.controller_address(self.voter)}"]
        for node in (node for node in self.dead if node not in without):
            words += ["--dead", str(node)]
        for path in brokers:
            words += ["--data", path]
        return [*words, "--plan-out", str(self.plan_file)]

    def rebuild(self, *words: str) -> Ended:
        """The command; it asks no cluster."""
        return self.console.without_cluster("quorum", "rebuild", *words)

    def make_plan(self) -> dict[str, Any]:
        """Refused first where the incident says so; nothing is written then."""
        if self.incident.refused:
            refused = self.rebuild(*self.words(without=self.incident.unnamed))
            assert refused.status == 1, refused
            for reason in self.incident.refused:
                assert reason in refused.err, refused
            assert not self.plan_file.exists()
        if self.incident.stops:
            for broker in self.cluster.brokers.values():
                broker.kill()
                if self.incident.forgotten:
                    shutil.rmtree(broker.log_dirs[0] / DIRECTORY)
        planned = self.rebuild(*self.words(), *self.incident.accepts)
        assert planned.status == 0, planned
        plan = self.plan()
        assert set(plan["ahead"]) >= set(self.incident.ahead), planned
        for one in plan["partitions"]:
            assert tuple(one["added"]) == ((3,) if one["topic"] in self.incident.moved else ()), planned
            assert set(one["isr"]) <= set(one["replicas"]), planned
        return plan

    def name_static_voter(self) -> None:
        """With static voters the plan is refused, and what the refusal says is done."""
        refused = self.rebuild(*self.words())
        assert refused.status == 1, refused
        assert "kraft.version is 0" in refused.err and "set controller.quorum.voters to the" in refused.err, (
            refused
        )
        assert not self.plan_file.exists()
        voters = f"{self.voter}@{self.cluster.controller_address(self.voter)}"
        for node in (self.cluster.node(self.voter), *self.cluster.brokers.values()):
            node.change_properties({"controller.quorum.voters": voters})
            node.kill()

    def plan(self) -> dict[str, Any]:
        """The members of the plan's file."""
        members: dict[str, Any] = json.loads(self.plan_file.read_text())
        return members

    def rehearse(self) -> None:
        """With the Kafka that the controllers run."""
        spec = self.incident.spec
        version = spec.node_versions.get(self.voter, spec.version)
        done = self.rebuild(str(self.plan_file), "--rehearse", "--kafka-dir", str(cache_directory(version)))
        assert done.status == 0, done
        assert "a controller led after" in done.out, done

    def apply(self) -> None:
        """Carries the plan out; ``kafka-dump-log`` then reads what was written."""
        done = self.rebuild(str(self.plan_file), *YES)
        assert done.status == 0, done
        self.check_dump()

    def check_dump(self) -> None:
        """Kafka reads every batch, and at the end the new voter, in the planned epoch and with its directory id."""
        plan, log = self.plan(), self.target / DIRECTORY
        segments = sorted(log.glob("*.log"))
        dumped = self.cluster.tools(
            "kafka-dump-log", "--cluster-metadata-decoder", "--files", ",".join(map(str, segments))
        ).stdout
        assert "isvalid: false" not in dumped
        ends = [int(end) for end in re.findall(r"^baseOffset: \d+ lastOffset: (\d+) ", dumped, re.MULTILINE)]
        assert ends[-1] >= plan["logEndOffset"] + len(plan["steps"]) - 1, (ends[-1], plan["logEndOffset"])
        appended = [line for line in dumped.splitlines() if f"partitionLeaderEpoch: {plan['epoch']} " in line]
        assert appended[0].startswith(f"baseOffset: {plan['logEndOffset']} "), appended
        voters = [json.loads(found) for found in re.findall(r"KRaftVoters (\{.*\})$", dumped, re.MULTILINE)]
        assert [(v["voterId"], v["voterDirectoryId"]) for v in voters[-1]["voters"]] == [
            (self.voter, plan["directoryId"])
        ]

    # Afterwards

    def start(self) -> None:
        """The controller, then the brokers that do not run, or cannot find it; what the plan says is moved away."""
        plan: dict[str, Any] = self.plan() if self.plan_file.exists() else {"ahead": ()}
        for node in plan["ahead"]:
            self.cluster.node(node).kill()
            for snapshot in (self.cluster.node(node).log_dirs[0] / DIRECTORY).glob("*.checkpoint"):
                if int(snapshot.name[:20]) > plan["aheadFrom"]:
                    snapshot.unlink()
        self.cluster.node(self.voter).start()
        for broker in self.cluster.brokers.values():
            if self.incident.new_voter:
                servers = self.cluster.controller_address(self.voter)
                broker.change_properties({"controller.quorum.bootstrap.servers": servers})
                broker.kill()
            broker.start()
        self.wait_registered(plan["ahead"] if self.incident.new_voter else ())

    def wait_registered(self, cut_off: Collection[int]) -> None:
        """Of brokers whose metadata log was ``cut_off`` behind the copy, one may not learn a voter that was not in
        it: it cannot register, ends itself, and finds the voter when it is started again.
        """
        brokers = self.cluster.brokers

        def settled() -> bool:
            live = self.cluster.metadata.live
            return all(node in live or not brokers[node].is_running for node in cut_off)

        if cut_off:
            wait_until(settled, f"brokers {both(sorted(cut_off))} to register, or to end", 180)
            for node in cut_off:
                if not brokers[node].is_running:
                    brokers[node].start()
        self.cluster.metadata.wait_live(self.incident.spec.broker_ids, 180)

    def check(self) -> Rebuilt:
        """Records, ids, configurations, ACLs; who leads, by Kafka's own tool and by ours; and that it goes on."""
        told = self.check_leader()
        found = self.facts()
        assert found.topic_ids == self.before.topic_ids
        known = self._known or self.before
        # A topic that the chosen copy lacks is kept with the configuration that another copy has; where none has
        # it, with one that deletes nothing.
        nothing_deleted = {"retention.ms": "-1", "retention.bytes": "-1"}
        kept = dict.fromkeys(self.incident.forgotten, nothing_deleted)
        assert found.configs == self.before.configs | known.configs | kept
        assert found.acls == known.acls
        self._restore_acls()
        for topic in self._topics:
            for partition in (0, 1):
                self.cluster.metadata.wait_partition(
                    topic, partition, lambda p: p.leader >= 0, "to be led", 60
                )
        self.check_goes_on()
        return Rebuilt(
            self.plan()["logEndOffset"] if self.plan_file.exists() else -1,
            int(told["LeaderEpoch"]),
            len(self.acknowledged),
            len(self._topics),
        )

    def _restore_acls(self) -> None:
        """The commands that the plan prints make the ACLs of kept topics again."""
        plan = self.plan() if self.plan_file.exists() else {"restoredTopics": []}
        for command in (acl for topic in plan["restoredTopics"] for acl in topic["acls"]):
            tool, *words = shlex.split(command)
            assert tool == "kafka-acls.sh" and words[-2:] == ["--bootstrap-server", "HOST:PORT"]
            self.cluster.tools("kafka-acls", *words[:-2])
        if plan["restoredTopics"] and not self.incident.forgotten:
            assert self.facts().acls == self.before.acls

    def check_goes_on(self) -> None:
        """A topic can be made, and everything that was acknowledged is read."""
        self._went_on += 1
        self.make_topic(f"afterwards-{self._went_on}")
        self.produce(ORDERS, f"afterwards-{self._went_on}", 20)
        self.check_records()

    def check_records(self) -> None:
        """An ordinary consumer reads what was acknowledged, each record once, and nothing else."""
        consume = self.cluster.client.consume
        read = [record.value for topic in self._topics for p in (0, 1) for record in consume(topic, p)]
        assert sorted(read) == sorted(self.acknowledged), (len(read), len(self.acknowledged))

    def check_leader(self) -> dict[str, str]:
        """Kafka's tool and ``quorum status`` name the same leader, epoch and voters: the one that was planned."""

        def led() -> dict[str, str] | None:
            try:
                said = self.described_quorum()
            except ToolFailed:
                return None
            return said if said.get("LeaderId") == str(self.voter) else None

        told = wait_until(led, f"{self.voter} to lead", 90)
        status, said = self.console.json("quorum", "status")
        assert (said["leader"], said["leaderEpoch"]) == (self.voter, int(told["LeaderEpoch"])), said
        voters = [(m["id"], m["directoryId"]) for m in said["members"] if m["role"] in ("leader", "voter")]
        assert voter_ids(told["CurrentVoters"]) == [node for node, _ in voters] == [self.voter], (
            status,
            told,
        )
        if self.incident.spec.quorum == "dynamic":
            assert int(told["LeaderEpoch"]) > self.plan()["epoch"]
        return told


def begun_rebuild(quorum: RebuiltQuorum, home: Path) -> subprocess.Popen[bytes]:
    """``quorum rebuild PLAN`` in a process of its own, once it has begun to write, or has ended."""
    # Behind everybody else, so that who waits for its first file is not late.
    line = ["nice", "-n", "19", *command_line("ktriage", "quorum", "rebuild", str(quorum.plan_file), *YES)]
    process = subprocess.Popen(
        line, env=environment(home), cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    backup = Path(quorum.plan()["backup"])
    while not backup.exists() and process.poll() is None:
        time.sleep(0.0005)  # what follows takes milliseconds
    return process


def holds_plan(quorum: RebuiltQuorum) -> bool:
    """Whether the new log is there."""
    plan = quorum.plan()
    segment: Path = quorum.target / DIRECTORY / plan["segment"]
    return segment.exists() and segment.stat().st_size > int(plan["wholeBytes"])


def voter_ids(text: str) -> list[int]:
    """Of a line of ``kafka-metadata-quorum``: objects since 3.9, bare numbers before."""
    found = json.loads(text)
    return [voter["id"] if isinstance(voter, dict) else voter for voter in found]


def _begins(log: Path) -> int:
    return min(int(path.stem) for path in log.glob("*.log"))


_UNEQUAL: tuple[Step, ...] = (
    ("changes", 20),
    ("kill", 3),
    ("changes", 40),
    ("topic", "second"),
    ("kill", 2),
    ("topic", "third"),
)
_STALE: tuple[Step, ...] = (
    ("known", 0),
    ("kill", 102),
    ("changes", 200),
    ("topic", "later"),
    ("acl", "later"),
)
DELETES_SOON = {
    "log.retention.ms": "1000",
    "log.retention.check.interval.ms": "1000",
    "log.initial.task.delay.ms": "1000",
    "log.segment.bytes": "1048576",
}
"""What the brokers do with a topic that has no configuration of its own."""
_LACKS = ("node 1 has offsets", "node 2 has offsets", "topics whose ids the copy does not know: later")
ACCEPTED = ("--accept-loss-of", "1", "--accept-loss-of", "2", "--keep-strays")


def _of_release(version: str) -> tuple[LostQuorum, ...]:
    """What was tried on both releases."""
    return (
        LostQuorum(f"the leader's disk, {version}", spec(version), "leader"),
        LostQuorum(
            f"a follower's disk, a snapshot in the middle of its log, {version}",
            spec(version, settings=SNAPSHOTS),
            "follower",
            before=(("changes", 60), ("topic", "second")),
            starts_at="zero",
        ),
        LostQuorum(
            f"the leader's disk, its log begins with a snapshot, {version}",
            spec(version, settings=SNAPSHOTS | KEEPS_LITTLE),
            "leader",
            before=(("topic", "second"), ("trimmed", 0)),
            starts_at="snapshot",
        ),
        LostQuorum(
            f"no controller's disk, the longest of three brokers' copies, {version}",
            spec(version, controllers=1, brokers=3),
            "broker",
            1,
            before=_UNEQUAL,
        ),
        LostQuorum(
            f"an old copy: it lacks a topic and 200 changes, {version}",
            spec(version),
            "follower",
            102,
            before=_STALE,
            refused=_LACKS,
            accepts=ACCEPTED,
            stops=True,
        ),
        LostQuorum(
            f"an old copy, and brokers with snapshots of what it lacks, {version}",
            spec(version, settings=SNAPSHOTS),
            "follower",
            102,
            before=_STALE,
            refused=_LACKS,
            accepts=ACCEPTED,
            stops=True,
            ahead=(1, 2),
        ),
        LostQuorum(
            f"an old broker's copy, and a new voter at a new address, {version}",
            spec(version, controllers=1, brokers=3, spares=1),
            "broker",
            3,
            before=(("known", 0), ("kill", 3), ("changes", 40), ("topic", "later")),
            refused=_LACKS,
            accepts=ACCEPTED,
            stops=True,
            new_voter=101,
        ),
        LostQuorum(
            f"partitions were moved after the copy, {version}",
            spec(version, brokers=3),
            "follower",
            102,
            before=(("topic", "moving"), ("known", 0), ("kill", 102), ("moved", "moving")),
            refused=(*_LACKS[:2], "node 3 has offsets"),
            accepts=("--accept-loss-of", "3", *ACCEPTED),
            stops=True,
            moved=("moving",),
        ),
        LostQuorum(
            f"a topic that no copy knows, on brokers that delete soon, {version}",
            spec(version, settings=DELETES_SOON),
            "follower",
            102,
            before=(("known", 0), ("kill", 102), ("topic", "later")),
            refused=("topics whose ids the copy does not know: later",),
            accepts=("--keep-strays",),
            stops=True,
            forgotten=("later",),
        ),
        LostQuorum(
            f"an old voter's disk: its copy does not know who took its place, {version}",
            spec(version, spares=1),
            "follower",
            102,
            before=(("known", 0), ("kill", 102), ("replaced", 103), ("changes", 20)),
            refused=("voters 103 of a copy that goes on beyond the chosen one are not named", *_LACKS[:2]),
            unnamed=(103,),
            accepts=ACCEPTED[:4],
            stops=True,
        ),
        LostQuorum(f"nodes of both roles, {version}", spec(version, combined=True, brokers=3), "follower"),
        LostQuorum(f"TLS between controllers, {version}", spec(version, controller_tls=True), "leader"),
    )


INCIDENTS = (
    *_of_release("4.3.1"),
    *_of_release("4.4.0"),
    LostQuorum(
        "controllers 4.4.0, brokers 4.3.1",
        spec(versions=dict.fromkeys((100, 101, 102), "4.4.0")),
        "follower",
        before=(("changes", 20),),
    ),
    LostQuorum("static voters, 3.9.1", spec("3.9.1", quorum="static"), "leader"),
    LostQuorum("static voters, 4.3.1", spec("4.3.1", quorum="static"), "follower"),
    LostQuorum(
        "a follower's disk, 3.9.1",
        spec("3.9.1", settings=SNAPSHOTS),
        "follower",
        before=(("changes", 60), ("topic", "second")),
        starts_at="zero",
    ),
)
"""Every way to lose a quorum that was tried on a real Kafka; ``make soak`` runs them all."""
