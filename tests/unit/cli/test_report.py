"""The report of an incident, and the hand-over page, as whoever reads them later gets them."""

from __future__ import annotations

import json
import os
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest

from console.change.change import open_journal
from console.journal.change_kinds import COMMIT_OFFSETS, HEAL, UNREGISTER, WRITE_MARKERS
from console.output.screen import Screen
from console.program import Program
from console.signals import Supervisor
from tests.unit.cli.command_process import Caller
from tests.unit.cli.memory_backend import CLUSTER_ID, cluster_of
from tests.unit.cli.planned_orders import ANY, planned, tp
from tests.unit.metadata_log.incident_log import INCIDENT

TAIL = ("--simulate", "stale-long-tail", "--seed", "2")
HOSTILE = "<script>alert(1)</script>\x1b[2J | `x` \u202e"
AGREED = ("--yes", "--reason", HOSTILE)
BY_ID = ("--cluster-id", CLUSTER_ID)


@pytest.fixture
def recovered(call: Caller) -> Caller:
    """The stale long tail, recovered with what an election cuts off read first."""
    for words in (
        ("plan", "--all-offline-partitions", "--strategy", "aggressive", "tail.json", *TAIL),
        ("apply", "tail.json", "--rescue", "tail", *AGREED, *TAIL),
    ):
        ended = call("ktriage", *words)
        assert ended.status == 0, str(ended)
    return call


class _Page(HTMLParser):
    """The elements of a page, its text, and every attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: dict[str, set[str]] = {}
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value or "")

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_report_says_who_elected_whom_why_and_what_that_lost(recovered: Caller) -> None:
    told = recovered("ktriage", "report", *TAIL).out
    assert "payments-0 | no leader -\\> 2 (elected, epoch " in told
    assert "500 or more" in told
    assert "last record's epoch 2, log end 1,300" in told
    assert "1 of 1 branches whole" in told
    assert "broker 1    =====================xxx" in told


def test_a_page_stands_alone_and_nothing_in_it_becomes_markup(recovered: Caller) -> None:
    written = recovered("ktriage", "report", "--output", "html", *TAIL).out
    page = _Page()
    page.feed(written)
    assert "script" not in page.elements
    assert page.elements.count("svg") == 1
    assert not {"src", "href", "onload", "action"} & page.attributes.keys()
    assert "alert(1)" in page.text
    assert all(character.isprintable() or character == "\n" for character in written)


def test_json_holds_outages_elections_rescues_and_what_is_open(recovered: Caller) -> None:
    told = json.loads(recovered("ktriage", "report", "--output", "json", *TAIL).out)
    (election,) = told["elections"]
    assert (election["leader"], election["outcome"], election["lossAtLeast"]) == (2, "elected", 500)
    assert [(one["leaderBefore"], one["leaderAfter"], one["unclean"]) for one in told["outages"]] == [
        (1, 2, True),
        (3, 2, True),
    ]
    assert [rescue["offsets"] for rescue in told["rescues"]] == [500]
    assert any("fenced since" in line for line in told["open"])


def test_what_could_not_be_read_is_named_and_the_rest_is_told(call: Caller) -> None:
    """No cluster, and the plan is gone: the journal alone says what was elected."""
    backend = cluster_of(2)
    plan = planned(call, backend)
    backend.fails = {tp(1): "NOT_CONTROLLER"}
    call("ktriage", "apply", *ANY, plan, "--yes", "--reason", "a test")
    (call.home / plan).unlink()
    ended = call("ktriage", "report", *BY_ID)
    assert ended.status == 0, str(ended)
    assert "1 elected, 1 failed" in ended.out
    assert "Evidence and drawings are missing" in ended.out
    assert "metadata log was not read" in ended.out
    assert "orders-1 was to be led by 1: failed" in ended.out


def test_a_plan_that_was_edited_since_is_no_evidence(call: Caller) -> None:
    plan = planned(call, cluster_of(1))
    assert call("ktriage", "apply", *ANY, plan, "--yes", "--reason", "a test").status == 0
    path = call.home / plan
    path.write_text(path.read_text().replace('"designatedLeader": 1', '"designatedLeader": 2'))
    assert "not in the plan file as it is now" in call("ktriage", "report", *BY_ID).out


def test_a_metadata_directory_gives_the_outages_without_a_cluster(call: Caller) -> None:
    plan = planned(call, cluster_of(1))
    call("ktriage", "apply", *ANY, plan, "--yes", "--reason", "a test")
    words = ("--metadata-dir", str(INCIDENT), "--since", "2026-11-22T21:00", *BY_ID)
    told = json.loads(call("ktriage", "report", "--output", "json", *words).out)
    assert told["outages"]
    assert all(one["leaderBefore"] in (1, 2, 3) for one in told["outages"])


def test_bad_input_is_one_line(call: Caller) -> None:
    for words, said in (
        (("--since", "yesterday", *BY_ID), "--since 'yesterday'"),
        (("--plan", "none.json", *BY_ID), "none.json: no such file"),
        ((), "which cluster?"),
    ):
        ended = call("ktriage", "report", *words)
        assert (ended.status, ended.out) == (2, ""), str(ended)
        assert said in ended.err
        assert len(ended.err.splitlines()) <= 2, ended.err


def test_the_next_on_call_sees_what_is_open_and_the_next_command(recovered: Caller) -> None:
    told = recovered("ktriage", "handover", *TAIL).out
    assert "OPEN, THE WORST FIRST" in told
    assert "Broker 3 is fenced since" in told
    assert "ktriage verify tail.json --simulate stale-long-tail --seed 2" in told
    assert "was not restored" in told


def test_the_journal_tells_partition_leaders_loss_and_the_plans_file(recovered: Caller) -> None:
    told = recovered("ktriage", "journal", *TAIL).out
    assert "elections of 1 partition by tail.json (plan " in told
    assert "payments-0: no leader -> 2 (elected, epoch " in told
    assert "acknowledged lost: 500+ committed" in told


def test_the_journal_tells_who_led_before_a_preferred_election(recovered: Caller) -> None:
    words = ("elect", "--election-type", "preferred", "--all-topic-partitions", *TAIL)
    assert recovered("ktriage", *words).status == 0
    assert "payments-0: 2 -> 1 (elected, epoch " in recovered("ktriage", "journal", *TAIL).out


def test_a_named_pipe_in_the_place_of_a_plan_does_not_hang_the_report(call: Caller) -> None:

    plan = planned(call, cluster_of(1))
    call("ktriage", "apply", *ANY, plan, "--yes", "--reason", "a test")
    (call.home / plan).unlink()
    os.mkfifo(call.home / plan)
    assert "a pipe, not a plan file" in call("ktriage", "report", *BY_ID).out


def test_what_was_put_right_is_named_with_the_result(call: Caller) -> None:
    program = Program("ktriage", ("ktriage",), Screen(time.monotonic), Supervisor(lambda _signum: ""))
    with open_journal(program, CLUSTER_ID, "INC-7") as journal:
        offsets = [
            {
                "group": "billing",
                "topic": "orders",
                "partition": number,
                "before": {"offset": 1450},
                "after": {"offset": 1000},
            }
            for number in (0, 1)
        ]
        entry = journal.before(COMMIT_OFFSETS, {"offsets": offsets})
        refused = {"group": "billing", "partition": "orders-1", "why": "is active"}
        journal.after(entry, {"notCommitted": [refused]})
        marker = {"topic": "orders", "partition": 0, "producerId": 7, "producerEpoch": 2, "result": "COMMIT"}
        journal.before(WRITE_MARKERS, {"leader": 1, "markers": [marker]})
        moves = [{"topic": "orders", "partition": 2, "before": [3, 1], "after": [4, 1]}]
        entry = journal.before(HEAL, {"moves": moves, "gone": [3]})
        journal.after(entry, {"ended": [{"partition": "orders-2", "end": "moved", "why": ""}]})
        entry = journal.before(UNREGISTER, {"broker": 3})
        journal.after(entry, {"problem": ""})
    told = call("ktriage", "report", *BY_ID).out
    assert "| billing | orders-0 | 1450 | 1000 | set |" in told
    assert "| billing | orders-1 | 1450 | 1000 | not set: is active |" in told
    assert "| 7, epoch 2 | orders-0 | COMMIT | the result is not known |" in told
    assert "| orders-2 | 3,1 | 4,1 | moved |" in told
    assert "| 3 | done |" in told


GROUPS = ("--simulate", "groups-on-the-stale-tail")


def test_who_was_affected_and_who_was_put_right(call: Caller) -> None:
    """By the plan, before the elections; by the journal, afterwards."""
    assert call("ktriage", "plan", "--strategy", "aggressive", "tail.json", *GROUPS).status == 0
    assert not json.loads(call("ktriage", "report", "--output", "json", *GROUPS).out)["affectedGroups"]
    assert call("ktriage", "apply", "tail.json", *AGREED, *GROUPS).status == 0
    before = json.loads(call("ktriage", "report", "--output", "json", *GROUPS).out)
    names = {row["group"] for row in before["affectedGroups"]}
    assert names and not any(row["putRight"] for row in before["affectedGroups"])
    assert any("not put right with ktriage" in line for line in before["open"])
    assert any("groups fix" in line and "--dry-run" in line for line in before["next"])
    call("ktriage", "groups", "fix", "tail.json", "--uncertain", *AGREED, *GROUPS)
    rows = json.loads(call("ktriage", "report", "--output", "json", *GROUPS).out)["affectedGroups"]
    right = {row["group"] for row in rows if row["putRight"]}
    assert right and {row["group"] for row in rows} == names
    told = call("ktriage", "report", *GROUPS).out
    assert f"{len(names)}; {len(right)} of them put right with ktriage" in told
    assert "## Consumer groups that these elections affected" in told
    call("ktriage", "groups", "fix", "--undo", *AGREED, *GROUPS)
    rows = json.loads(call("ktriage", "report", "--output", "json", *GROUPS).out)["affectedGroups"]
    assert not any(row["putRight"] for row in rows), "it was taken back"


EMPTY_DISK = """\
title: a broker that came back with an empty disk
about: 3 had the only copy, and is elected with an empty disk.
cluster:
  brokers: {count: 3}
  min_isr: 1
  config: {broker.session.timeout.ms: 3000, broker.heartbeat.interval.ms: 500}
topics:
  - {name: orders, replicas: [[3, 1]], records: 500}
faults:
  - {at: 3, do: commit, group: billing, partition: orders-0, offset: 480}
  - {at: 5, do: kill, nodes: [broker-1]}
  - {at: 16, do: kill, nodes: [broker-3]}
  - {at: 22, do: start, nodes: [broker-1]}
  - {at: 27, do: replace-disk, node: broker-3}
  - {at: 30, do: start, nodes: [broker-3]}
operator: {at: 50}
expect: {offline: 0}
"""


def test_a_broker_that_was_elected_with_an_empty_disk_leaves_groups_to_be_looked_at(call: Caller) -> None:
    Path("redisk.yaml").write_text(EMPTY_DISK)
    cluster = ("--simulate", "redisk.yaml")
    told = call("ktriage", "handover", *cluster).out
    assert "1 partition had an unclean election that is in no plan here: orders-0" in told
    assert "ktriage groups show --topic orders --simulate redisk.yaml" in told
    assert "ktriage transactions show --topic orders --simulate redisk.yaml" in told
    groups = call("ktriage", "groups", "show", "--topic", "orders", *cluster)
    assert groups.status == 1 and "go back to 0, or before it" in groups.out
    heal = call("ktriage", "heal", "--broker-id", "3", "--gone-for-good", *cluster)
    assert heal.status == 2 and "came back with an empty disk" in heal.err


def test_the_timeline_tells_a_log_dir_that_was_replaced(call: Caller) -> None:
    Path("redisk.yaml").write_text(EMPTY_DISK.replace("{count: 3}", "{count: 3, log_dirs: 2}"))
    told = call("ktriage", "timeline", "--simulate", "redisk.yaml").out
    assert (
        "broker 3 registered with broker epoch 5, with a NEW directory id: its disk was replaced or" in told
    )
    assert "formatted, or meta.properties lost the id" in told
    assert told.count("NEW directory id") == 1, "1 came back with its own"
