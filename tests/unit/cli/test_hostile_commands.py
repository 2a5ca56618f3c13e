"""Commands beside those of an incident, against every hostile text: check, watch, review, snapshot, quorum, disk
scan, restore, elect.
"""

# ruff: noqa: ARG002  # the signatures are the protocol's

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from backends.base.answers import Capabilities, ClusterInfo, Offered, Partitions
from backends.base.check_report import CheckReport, PermissionCheck, Reachability
from backends.base.membership import ClusterNode, EveryAddress, NodeProbe, NodeSettings, ProcessRole
from console.cli.base import quorum_run
from console.rescue_files.manifest import INDEX, MANIFEST
from recovery.membership.quorum import Quorum
from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet
from recovery.model import TopicPartition, Unknown, Why
from recovery.plan.write import to_json
from tests.command_server import Ended
from tests.hostile_text import HOSTILE, HostileBackend, drives_a_terminal, hostile_backend
from tests.unit.cli.command_process import Caller
from tests.unit.disk_scan.log_dirs import add_partition, log_dir
from tests.unit.log_segments.segments import batch
from tests.unit.membership.quorums import key, quorum
from tests.unit.plan.plans import story
from tests.unit.rescue.test_restore_refusals import CLUSTER_ID, saved

NAMES = pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text)[1:21])
OUTPUTS = pytest.mark.parametrize("output", ["table", "json"])
ANY = ("--bootstrap-server", "kafka:9092")
LONGEST_NAME = 200
"""Of a file, in characters, with room for a partition's number."""


def harmless(ended: Ended) -> str:
    assert not drives_a_terminal(ended.out + ended.err), ended
    assert "internal error" not in ended.err, ended
    return ended.out


def nothing_is_outside(home: Path) -> None:
    """Whatever a name says, what was written has a plain name and is in the home directory."""
    inside = home.resolve()
    for path in home.rglob("*"):
        assert path.resolve().is_relative_to(inside) and not drives_a_terminal(path.name), path


class Checked(HostileBackend):
    """Everything that ``check`` tells is the text."""

    async def check(self) -> CheckReport:
        failed = Unknown(Why.NOT_ANSWERED, self.text)
        reach = (
            Reachability(1, self.text, False, None, True, False, False),
            Reachability(2, self.text, True, failed, False, None, None),
        )
        right = PermissionCheck(self.text, self.text, self.text, False, (self.text,), 3)
        offered = Offered(self.text, (0, 1), self.text)
        calls = Capabilities((offered, offered._replace(versions=failed)), {self.text: 1}, self.text, failed)
        return CheckReport(await self.cluster(), reach, calls, (right,), (self.text,))


@NAMES
@OUTPUTS
def test_a_check_of_hostile_names_is_text(call: Caller, text: str, output: str) -> None:
    backend = Checked(hostile_backend(text).states, text=text)
    told = harmless(call.on(backend)("ktriage", "check", "--output", output, *ANY))
    assert told and (output == "table" or json.loads(told))


@dataclass
class Recovering(HostileBackend):
    """Its partitions have no leader at first, and have one the second time."""

    readings: int = 0

    async def partitions(self, topics: object = None) -> Partitions:
        self.readings += 1
        leader = -1 if self.readings == 1 else 1
        return Partitions(tuple(state._replace(leader=leader) for state in self.states.values()))

    async def quorum(self) -> Unknown:
        """Where no controller is known to lead, ``watch`` would wait on."""
        return Unknown(Why.NOT_OFFERED, self.text)


@NAMES
@OUTPUTS
def test_a_change_of_a_hostile_name_is_one_line(call: Caller, text: str, output: str) -> None:
    backend = Recovering({}, text=text)
    hostile = TopicPartition(text, 0)
    backend.states = {hostile: hostile_backend(text).states[hostile]}
    words = ("watch", "--until-online", "--interval-ms", "200", "--output", output)
    ended = call.on(backend)("ktriage", *words, *ANY)
    assert ended.status == 0 and len(harmless(ended).splitlines()) == 1, ended


def placed(document: object, text: str) -> object:
    """The document with the text in place of every string."""
    if isinstance(document, dict):
        return {name: placed(value, text) for name, value in document.items()}
    if isinstance(document, list):
        return [placed(value, text) for value in document]
    return text if isinstance(document, str) else document


@NAMES
@pytest.mark.parametrize("part", ["every text", "reason"])
def test_a_plan_of_somebody_else_is_reviewed_as_text_or_refused_in_one_line(
    call: Caller, part: str, text: str
) -> None:
    document = json.loads(to_json(story()))
    if part == "every text":
        document = placed(document, text)
    else:
        document["partitions"][0][part] = text
    (call.home / "plan.json").write_text(json.dumps(document))
    for words in ((), ("--output", "json"), ("--output", "markdown"), ANY):
        ended = call.on(hostile_backend(text))("ktriage", "review", "plan.json", *words)
        told = harmless(ended)
        assert (told != "" and ended.status == 0) or (ended.status, len(ended.err.splitlines())) == (2, 1)


@NAMES
def test_a_snapshot_of_a_hostile_cluster_stays_below_its_directory(call: Caller, text: str) -> None:
    lake = call.home / "lake"
    lake.mkdir()
    for words in (
        ("take",),
        ("take", "--output", "json"),
        ("list",),
        ("list", "--output", "json"),
        ("compact",),
    ):
        where = ANY if words[0] == "take" else ()
        ended = call.on(hostile_backend(text))("ktriage", "snapshot", *words, "--out", str(lake), *where)
        assert harmless(ended) or len(ended.err.splitlines()) == 1, ended
    nothing_is_outside(call.home)


class HostileQuorum:
    """A quorum whose names, addresses and settings are the text; the second voter does not answer."""

    title = "hostile"
    simulated = False
    asks_brokers = True

    def __init__(self, text: str) -> None:
        self.text = text
        self._keys = tuple(ReplicaKey(node, text) for node in (1, 2, 3))

    async def open(self) -> str:
        return self.text

    async def close(self) -> None:
        """Nothing is open."""

    async def describe(self) -> Quorum:
        endpoint = VoterEndpoint(self.text, self.text, 9093)
        voters = VoterSet(tuple(Voter(one, (endpoint,), (0, 1)) for one in self._keys))
        found = quorum(1, 2, 3, down=(2,), observers=(key(4, self.text), key(1, f"other {self.text}")))
        progress = tuple(one._replace(key=one.key._replace(directory_id=self.text)) for one in found.progress)
        return replace(
            found,
            cluster_id=self.text,
            leader=self._keys[0],
            voters=voters,
            progress=progress,
            default_listener=self.text,
        )

    async def every_address(self, _further: object = ()) -> EveryAddress:
        elsewhere = replace(await self.describe(), leader=key(9, self.text))
        return EveryAddress((), await self.nodes(), {self.text: elsewhere})

    async def controllers(self) -> Unknown:
        return Unknown(Why.NOT_ALLOWED, self.text)

    async def probe(self, host: str, port: int, node_id: int | None = None) -> NodeProbe | Unknown:
        return Unknown(Why.NOT_ANSWERED, self.text)

    async def nodes(self) -> tuple[ClusterNode, ...]:
        settings = NodeSettings((self.text,), (self.text,), None, self.text)
        answer = NodeProbe(self.text, self.text, 1, 1, (0, 1), 10, settings)
        silent = Unknown(Why.NOT_ANSWERED, self.text)
        return (
            ClusterNode(1, ProcessRole.CONTROLLER, self.text, answer),
            ClusterNode(2, ProcessRole.CONTROLLER, self.text, silent),
        )


@NAMES
@OUTPUTS
@pytest.mark.parametrize("verb", ["status", "replication"])
def test_a_quorum_of_hostile_names_is_text(
    call: Caller, monkeypatch: pytest.MonkeyPatch, verb: str, output: str, text: str
) -> None:
    cluster = SimpleNamespace(membership=HostileQuorum(text), close=HostileQuorum(text).close)
    monkeypatch.setattr(quorum_run, "with_quorum", lambda _target, _say: cluster)
    told = harmless(call("ktriage", "quorum", verb, "--output", output, *ANY))
    assert told and (output == "table" or json.loads(told))
    nothing_is_outside(call.home)


@NAMES
@OUTPUTS
def test_a_disk_of_hostile_names_is_shown_as_text(call: Caller, text: str, output: str) -> None:
    """A directory can have any name but for a slash and NUL; what stands in its files can be anything."""
    name = text.replace("/", "_").replace("\0", "_")[:LONGEST_NAME]
    disk = log_dir(call.home / "data")
    add_partition(disk, f"{name}-0", {0: batch(0, 10)}, topic_id=text)
    add_partition(disk, f"{name}-0.{name[:20]}-delete", {0: batch(0, 10)})
    (disk / name).mkdir()
    (disk / f"{name}-1").mkdir()
    (disk / f"{name}-1" / "leader-epoch-checkpoint").write_text(text)
    (disk / "replication-offset-checkpoint").write_text(f"0\n1\n{text} 0 10\n")
    (disk / "meta.properties").write_text(
        f"cluster.id={text}\ndirectory.id={text}\nnode.id=3\nversion=1\n", encoding="utf-8"
    )
    ended = call("ktriage", "disk", "scan", str(disk), "--output", output)
    told = harmless(ended)
    assert ended.status in (0, 1) and told, ended
    if output == "table":
        return
    (call.home / "scan.json").write_text(told)
    for words in (("replicas",), ("plan", "plan.json")):
        harmless(call.on(hostile_backend(text))("ktriage", *words, "--evidence", "scan.json", *ANY))


class RescuedFrom(HostileBackend):
    """The cluster of the rescue, whose other names are the text."""

    async def cluster(self) -> ClusterInfo:
        return replace(await super().cluster(), cluster_id=CLUSTER_ID)


@NAMES
@pytest.mark.parametrize("part", ["clusterId", "topic", "topicId", "problem"])
def test_a_rescue_of_hostile_names_is_refused_or_prepared_as_text(call: Caller, part: str, text: str) -> None:
    directory = saved(call.home)
    for path in (*directory.rglob(MANIFEST), directory / INDEX):
        document = json.loads(path.read_text())
        if part == "problem" and "whole" in document:
            document["whole"] = False
        path.write_text(json.dumps(named(document, part, text)))
    backend = RescuedFrom(hostile_backend(text).states, text=text)
    for words in (("--to-source",), ("--to-topic", text if part == "topicId" else "rescued")):
        ended = call.on(backend)("ktriage", "restore", "saved", *words, "--dry-run", *ANY)
        assert harmless(ended) or (ended.status == 2 and len(ended.err.splitlines()) == 1), ended
    nothing_is_outside(call.home)


def named(document: object, key: str, text: str) -> object:
    """The document with the text as the value of every ``key``."""
    if isinstance(document, dict):
        return {name: text if name == key else named(value, key, text) for name, value in document.items()}
    if isinstance(document, list):
        return [named(value, key, text) for value in document]
    return document


@NAMES
@pytest.mark.parametrize("topic", ["orders", "the text"])
def test_an_election_that_fails_with_a_hostile_message_is_told_as_text(
    call: Caller, topic: str, text: str
) -> None:
    backend = hostile_backend(text)
    backend.fails = dict.fromkeys(backend.states, text)
    row = {"topic": text if topic == "the text" else topic, "partition": 0, "designatedLeader": 1}
    (call.home / "leaders.json").write_text(json.dumps({"partitions": [row]}))
    words = (
        "--election-type",
        "designated",
        "--path-to-json-file",
        "leaders.json",
        "--yes",
        "--reason",
        text,
    )
    ended = call.on(backend)("ktriage", "elect", *words, *ANY)
    assert harmless(ended) or (ended.status == 2 and len(ended.err.splitlines()) == 1), ended
