"""What is written down about an incident, against every hostile text: journal, reports, hand-over, groups and
transactions, crash files, notifications.
"""

# ruff: noqa: ARG002  # the signatures are the protocol's

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

from backends.base.answers import ClusterInfo
from backends.base.consumer_groups import Commits, GroupListing
from backends.base.transactions import CoordinatorAnswers
from console.crash import describe, write_crash
from console.notifications import Notifications
from console.rescue_files.manifest import (
    INDEX,
    MANIFEST,
    BranchManifest,
    RescueHeader,
    RescueIndex,
    SegmentEntry,
    branch_directory,
    index_json,
    manifest_json,
)
from recovery.groups.group_values import (
    CommittedOffset,
    ConsumerGroup,
    GroupKind,
    GroupMember,
    GroupMembers,
)
from recovery.metadata_log.records import ConfigRecord, ResourceType
from recovery.model import EpochSpan, TopicPartition, Unknown, Why
from recovery.rescue_branches import BranchPart, RescueBranch, UnreadReplica
from recovery.transactions.transaction_values import (
    CoordinatedTransaction,
    OpenTransaction,
    PartitionTransactions,
    TransactionState,
)
from tests.command_server import Ended
from tests.hostile_metadata_log import write_hostile_log, write_log
from tests.hostile_text import HOSTILE, HostileBackend, drives_a_terminal, hostile_backend
from tests.unit.cli.command_process import Caller

NAMES = pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text)[1:21])
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ANY = ("--bootstrap-server", "kafka:9092")
PRODUCER = 7


class HostileGroups:
    """Two groups; the name, the state, the members and the metadata of one are the text."""

    def __init__(self, text: str, partitions: Iterable[TopicPartition]) -> None:
        self.text = text
        self.partitions = tuple(partitions)
        self.groups = tuple(
            ConsumerGroup(name, 1, GroupKind.CLASSIC, text, text) for name in (text, f"group of {text}")
        )

    async def listed(self) -> GroupListing:
        return GroupListing(self.groups, (Unknown(Why.NOT_ALLOWED, self.text),))

    async def committed(
        self, groups: Sequence[ConsumerGroup], partitions: Iterable[TopicPartition] | None
    ) -> Mapping[str, Commits | Unknown]:
        first, *others = groups
        commits = dict.fromkeys(self.partitions, CommittedOffset(95, 2, self.text))
        return {
            first.name: commits,
            **{one.name: Unknown(Why.NOT_ALLOWED, self.text) for one in others},
        }

    async def members(self, groups: Sequence[ConsumerGroup]) -> Mapping[str, GroupMembers | Unknown]:
        return {one.name: GroupMembers((GroupMember(self.text, self.text),), self.text) for one in groups}


class HostileTransactions:
    """One open transaction in every partition, of a transactional id that is the text."""

    def __init__(self, text: str) -> None:
        self.text = text

    async def open_in(
        self, leaders: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, PartitionTransactions | Unknown]:
        return {
            tp: PartitionTransactions(leader, (OpenTransaction(tp, PRODUCER, 0, 10, 0, -1),), 10, 20)
            for tp, leader in leaders.items()
        }

    async def coordinated(self, producers: Sequence[int]) -> CoordinatorAnswers:
        state = TransactionState.COMPLETE_COMMIT
        known = {PRODUCER: CoordinatedTransaction(self.text, state, PRODUCER, 1, -1, frozenset())}
        return CoordinatorAnswers(known, (Unknown(Why.NOT_ANSWERED, self.text),))


class Client(HostileBackend):
    """Every partition has a leader, and clients whose names are the text."""

    async def cluster(self) -> ClusterInfo:
        found = await super().cluster()
        brokers = tuple(broker._replace(fenced=broker.id == 3) for broker in found.brokers)
        return replace(found, brokers=brokers)

    async def quorum(self) -> Unknown:
        return Unknown(Why.NOT_ALLOWED, self.text)

    def consumer_groups(self) -> HostileGroups:
        return HostileGroups(self.text, self.states)

    def transactions(self) -> HostileTransactions:
        return HostileTransactions(self.text)


def with_clients(text: str) -> Client:
    found = hostile_backend(text)
    states = {tp: state._replace(leader=1, isr=(1, 2)) for tp, state in found.states.items()}
    return Client(states, logs=found.logs, text=text)


SHOWN = (("groups", "show", "--all"), ("transactions", "show"), ("heal", "show", "--broker-id", "3"))


def harmless(ended: Ended) -> str:
    assert not drives_a_terminal(ended.out + ended.err), ended
    assert "internal error" not in ended.err, ended
    return ended.out


class Page(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}


@NAMES
def test_an_incident_of_hostile_names_is_told_as_text(call: Caller, text: str) -> None:
    backend = hostile_backend(text)
    backend.fails = {TopicPartition("orders", 1): text}
    call.on(backend)
    asked = ("--strategy", "aggressive", "--ranking", "specification")
    planned = call("ktriage", "plan", "plan.json", "--topic", "orders", *asked, *ANY)
    assert harmless(planned) and (call.home / "plan.json").exists(), planned
    harmless(call("ktriage", "apply", "plan.json", "--yes", "--reason", text, *ANY))
    for words in (("journal",), ("handover",), ("report",), ("resume",), ("verify", "plan.json")):
        told = harmless(call("ktriage", *words, *ANY))
        if words == ("report",):
            assert "<script>" not in told.replace("\\<script\\>", "")
            cells = [line.replace("\\|", "").count("|") for line in told.splitlines() if line[:1] == "|"]
            assert len(set(cells)) <= 3, "every row of its three tables has its columns"
    if text.isprintable():  # a plan file with any other text is refused, and nobody elected
        assert "1 elected, 1 failed" in call("ktriage", "report", *ANY).out
    for words in (("journal",), ("report",)):
        json.loads(harmless(call("ktriage", *words, "--output", "json", *ANY)))
    page = Page()
    page.feed(harmless(call("ktriage", "report", "--output", "html", *ANY)))
    assert not {"script", "a", "img", "iframe", "base", "form"} & page.elements
    assert not {"src", "href", "onload", "action", "onerror"} & page.attributes
    inside = call.home.resolve()
    assert all(path.resolve().is_relative_to(inside) for path in call.home.rglob("*"))
    assert all(path.name.isascii() and path.name.isprintable() for path in call.home.rglob("*"))


@NAMES
@pytest.mark.parametrize("words", SHOWN, ids=" ".join)
def test_what_clients_call_themselves_is_shown_as_text(
    call: Caller, words: tuple[str, ...], text: str
) -> None:
    call.on(with_clients(text))
    harmless(call("ktriage", *words, *ANY))
    ended = call("ktriage", *words, "--output", "json", *ANY)
    assert harmless(ended) == "" or json.loads(ended.out)
    assert ended.out or ended.status in (2, 3), ended


@NAMES
def test_a_crash_file_is_text_in_its_directory(text: str, tmp_path: Path) -> None:
    path = write_crash(ValueError(text), ["ktriage", "plan", text, "\udcff"], tmp_path, NOW)
    assert path.parent == tmp_path and path.name.isascii()
    assert not drives_a_terminal(path.read_text())
    command = next(line for line in path.read_text().splitlines() if line.startswith("command: "))
    assert len(command) > len("command: ktriage plan")


HIDDEN = "hunter2-Xk9"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--password", HIDDEN],
        [f"--ssl-key-password={HIDDEN}"],
        ["--webhook", f"https://chat.example/{HIDDEN}"],
        ["--bootstrap-server", f"sasl://ann:{HIDDEN}@broker:9092"],
    ],
    ids=lambda words: words[0].split("=")[0],
)
def test_a_crash_file_holds_no_secret(arguments: list[str]) -> None:
    error = ValueError(f"sasl.jaas.config=PlainLoginModule required password='{HIDDEN}'; and {HIDDEN}")
    told = describe(error, ["ktriage", *arguments], NOW)
    assert HIDDEN not in told
    assert arguments[0].split("=")[0] in told


@NAMES
def test_who_waits_for_a_message_gets_it_whatever_it_names(text: str, tmp_path: Path) -> None:
    program = "import os, sys; open(sys.argv[1], 'w').write(os.environ['KTRIAGE_MESSAGE'] + sys.stdin.read())"
    told = tmp_path / "told"
    notifications = Notifications((sys.executable, "-c", program, str(told)))
    assert asyncio.run(notifications.send({"text": f"offline: {text}"})) == ()
    message = told.read_text()
    assert message.startswith("offline: ") and not drives_a_terminal(message)


@NAMES
def test_a_rescue_directory_of_hostile_names_is_shown_as_text(call: Caller, text: str) -> None:
    """As somebody else may have made it: nothing outside it is opened either."""
    span = (EpochSpan(0, 0, 10),)
    branch = RescueBranch(TopicPartition(text, 0), text, 1, 2, BranchPart.TAIL, span)
    header = RescueHeader(text, text, text, text, text, text)
    unread = UnreadReplica(TopicPartition(text, 1), 3, text)
    directory = call.home / "saved"
    place = directory / branch_directory(branch)
    place.mkdir(parents=True)
    (directory / INDEX).write_text(index_json(RescueIndex(header, (branch,), (unread,))))
    segment = SegmentEntry("../../../etc/passwd", 0, 10, 1, 10, text)
    (place / MANIFEST).write_text(
        manifest_json(BranchManifest(header, branch, True, text, (segment,), text)), encoding="utf-8"
    )
    for words in (("show",), ("verify",), ("show", "--records", "1"), ("show", "--output", "json")):
        ended = call("ktriage", "rescue", words[0], "saved", *words[1:])
        harmless(ended)
        assert "root:" not in ended.out
        assert ended.status != 0, "a segment outside the directory is no segment"


@NAMES
def test_a_profile_of_a_hostile_name_is_one_line(call: Caller, text: str) -> None:
    config = call.home / "config" / "ktriage"
    config.mkdir(parents=True)
    for settings in ({"bootstrap": text, "colour": text}, {"bootstrap": "kafka:9092", text: text}):
        (config / "clusters.yaml").write_text(yaml.safe_dump({"clusters": {text: settings}}))
        for name in (text, "another"):
            ended = call("ktriage", "status", "--cluster", name)
            assert harmless(ended) == "" and ended.status == 2
            assert len(ended.err.splitlines()) == 1, ended


@NAMES
def test_a_timeline_of_hostile_names_is_one_line_an_event(call: Caller, text: str) -> None:
    hostile, plain = (
        (
            "ktriage",
            "timeline",
            "--last",
            "0",
            "--metadata-dir",
            str(write_hostile_log(call.home / name, word)),
        )
        for name, word in (("hostile", text), ("plain", "plain"))
    )
    told, expected = call(*hostile), call(*plain)
    assert (told.status, expected.status) == (0, 0), told
    assert len(harmless(told).splitlines()) == len(expected.out.splitlines()) > 10
    document = json.loads(harmless(call(*hostile, "--output", "json")))
    assert any(text in event["text"] for event in document["events"]), "a program gets the name as it is"
    markdown = harmless(call(*hostile, "--output", "markdown"))
    assert len(markdown.splitlines()) == len(call(*plain, "--output", "markdown").out.splitlines())
    assert "<script>" not in markdown
    one = call(*hostile, "--topic", text)
    assert harmless(one) and one.status == 0
    missing = call(*hostile, "--topic", f"no {text}")
    assert "this metadata log knows no topic" in harmless(missing) + missing.err


@pytest.mark.parametrize("output", ["table", "json", "markdown"])
def test_a_timeline_shows_no_password_that_was_set_dynamically(call: Caller, output: str) -> None:
    """The controllers keep them in plain text in the metadata log."""
    secret = (
        "listener.name.internal.plain.sasl.jaas.config",
        "ssl.key.password",
        "ssl.keystore.key",
        "ssl.truststore.password",
        "sasl.oauthbearer.client.credentials.client.secret",
    )
    settings = {**dict.fromkeys(secret, HIDDEN), "log.retention.ms": "4711"}
    records = [ConfigRecord(ResourceType.BROKER, "1", key, value) for key, value in settings.items()]
    directory = write_log(call.home / "metadata", records)
    told = harmless(call("ktriage", "timeline", "--metadata-dir", str(directory), "--output", output))
    assert HIDDEN not in told and "4711" in told
    assert all(key in told for key in settings)
