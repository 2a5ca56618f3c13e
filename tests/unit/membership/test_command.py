"""``ktriage quorum`` on simulated quorums: what it prints, what it sends, and with what status it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from console.last_healthy import recall
from console.reading.remembered_voters import MEMORY
from tests.command_server import Ended
from tests.live.command_runner import documented
from tests.unit.cli.command_process import Caller

YES = ("--yes", "--reason", "a test")
DISK = ("--simulate", "controller-disk-failure")
LOST = ("--simulate", "two-of-three-voters-lost")
OTHER = ("--simulate", "controller-node-failure")
STATIC_SCENARIO = """\
title: Static voters
about: nobody has upgraded kraft.version
cluster:
  brokers: {count: 1}
  controllers: [100, 101, 102]
  kraft_version: 0
topics:
  - {name: payments, partitions: 1, replicas: [[1]], records: 10}
operator: {at: 10}
expect: {offline: 0}
"""


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Caller:
    return Caller(monkeypatch, tmp_path)


def told(ended: Ended) -> dict[str, Any]:
    """The document, whose every key stands in docs/output.md."""
    found: dict[str, Any] = json.loads(ended.out)
    undocumented = set(found) - {"schema"} - documented(found["schema"])
    assert not undocumented, f"{found['schema']}: {undocumented}"
    return found


def test_the_one_screen_says_of_the_voters_what_quorum_status_does(call: Caller) -> None:
    said = "tolerates no more failures: 2 of 3 voters up, majority 2"
    assert said in call("ktriage", "quorum", "status", *DISK).out
    (line,) = (ln for ln in call("ktriage", "status", *DISK).out.splitlines() if ln.startswith("quorum:"))
    assert f"{said}; 1 voter does not fetch" in line
    close = told(call("ktriage", "quorum", "status", *DISK, "--output", "json"))
    whole = json.loads(call("ktriage", "status", *DISK, "--output", "json").out)["quorum"]
    assert {key: whole[key] for key in ("strength", "notFetching", "behind")} == {
        key: close[key] for key in ("strength", "notFetching", "behind")
    }


def test_status_says_what_the_quorum_stands_who_is_dead_and_who_is_there_twice(call: Caller) -> None:
    ended = call("ktriage", "quorum", "status", *DISK)
    assert ended.status == 1
    assert "tolerates no more failures: 2 of 3 voters up, majority 2" in ended.out
    assert "voters that do not fetch: 102" in ended.out
    assert "102 is listed with 2 disks" in ended.out
    assert "102 has a new disk and no vote: give it one.\n! The next failure" in ended.out
    found = told(call("ktriage", "quorum", "status", "--output", "json", *DISK))
    assert found["duplicates"] == [102]
    assert found["notFetching"][0]["directoryUuid"].count("-") == 4
    everyone = told(call("ktriage", "quorum", "replication", "--output", "json", *DISK))
    assert {m["role"] for m in everyone["members"]} == {"leader", "voter", "observer", "broker"}


def test_the_same_node_is_not_added_beside_itself_nor_anything_removed_that_a_majority_needs(
    call: Caller,
) -> None:
    ended = call("ktriage", "quorum", "add", "102", *YES, *DISK)
    assert ended.status == 1
    assert "DUPLICATE_VOTER" in ended.err
    ended = call("ktriage", "quorum", "remove", "101", *YES, *DISK)
    assert ended.status == 1
    assert "the new set could not commit" in ended.err
    assert "nothing was sent" in ended.err
    found = told(call("ktriage", "quorum", "remove", "101", "--dry-run", "--output", "json", *DISK))
    assert found["sent"] is False
    assert found["preflight"]["allowed"] is False


def test_what_was_a_static_voter_is_a_voter_by_its_directory_and_nothing_of_its_old_self_is_listed(
    call: Caller,
) -> None:
    """As after an upgrade of a real quorum: its voters, and no nameless observers beside them."""
    static = ("--simulate", "static-quorum-upgrade")
    ended = call("ktriage", "quorum", "add", "103", *YES, *static)
    assert ended.status == 1
    assert "kraft.version is 0" in ended.err
    assert call("ktriage", "quorum", "upgrade", *YES, *static).status == 0
    members = told(call("ktriage", "quorum", "status", "--output", "json", *static))["members"]
    assert sorted(m["id"] for m in members if m["role"] != "broker") == [100, 101, 102, 103]
    assert all(m["directoryId"] for m in members)
    ended = call("ktriage", "quorum", "add", "101", *YES, *static)
    assert ended.status == 1
    assert "node 101 is a voter already" in ended.err
    assert call("ktriage", "quorum", "add", "103", *YES, *static).status == 0


def test_a_broker_is_told_from_a_controller_that_has_no_endpoint(call: Caller) -> None:
    ended = call("ktriage", "quorum", "add", "1", *YES, *DISK)
    assert ended.status == 1
    assert "a broker cannot vote" in ended.err


def test_once_a_voter_is_removed_it_is_not_one_that_has_to_come_back(call: Caller) -> None:
    """Its removal is the last that this host hears of the quorum before a majority is lost."""
    cluster_id = told(call("ktriage", "quorum", "status", "--output", "json", *DISK))["clusterId"]
    assert [v["id"] for v in (recall(cluster_id, MEMORY) or {})["voters"]] == [100, 101, 102]
    assert call("ktriage", "quorum", "remove", "102", *YES, *DISK).status == 0
    assert [v["id"] for v in (recall(cluster_id, MEMORY) or {})["voters"]] == [100, 101]


def test_nobody_is_asked_without_a_terminal(call: Caller) -> None:
    for words in (("remove", "102"), ("add", "102"), ("replace", "102", "--why", "disk"), ("upgrade",)):
        ended = call("ktriage", "quorum", *words, *DISK)
        assert ended.status == 2
        assert "--yes and --reason" in ended.err
    assert call("ktriage", "quorum", "remove", "102", "--yes", *DISK).status == 2


def test_a_replacement_is_shown_saved_gone_through_and_then_nothing_is_left(call: Caller) -> None:
    shown = call(
        "ktriage", "quorum", "replace", "102", "--why", "disk", "--dry-run", "--plan", "r.json", *DISK
    )
    assert shown.status == 0
    assert "--no-initial-controllers" in shown.out
    assert f"next: ktriage quorum replace --plan {Path('r.json').resolve()}" in shown.err
    again = call("ktriage", "quorum", "replace", "102", "--why", "disk", "--plan", "r.json", *YES, *DISK)
    assert again.status == 2
    assert "this plan file exists" in again.err
    gone = call("ktriage", "quorum", "replace", "--plan", "r.json", *YES, *DISK)
    assert gone.status == 0, gone
    assert "the replacement is done" in gone.out
    assert call("ktriage", "quorum", "status", *DISK).status == 0
    found = told(call("ktriage", "quorum", "replace", "--plan", "r.json", "--output", "json", *YES, *DISK))
    assert found["course"] == "done"
    assert "nothing is unfinished" in call("ktriage", "resume", *DISK).out


def test_a_plan_of_another_cluster_and_a_file_that_is_none_are_refused(call: Caller) -> None:
    call("ktriage", "quorum", "replace", "102", "--why", "disk", "--dry-run", "--plan", "r.json", *DISK)
    ended = call("ktriage", "quorum", "replace", "--plan", "r.json", *YES, *OTHER)
    assert ended.status == 2
    assert "the plan is for cluster" in ended.err
    Path("x.json").write_text("{}")
    assert call("ktriage", "quorum", "replace", "--plan", "x.json", *YES, *DISK).status == 2
    assert call("ktriage", "quorum", "replace", "--plan", "none.json", *YES, *DISK).status == 2


def test_a_lost_majority_is_told_and_every_change_refused(call: Caller) -> None:
    ended = call("ktriage", "quorum", "status", *LOST)
    assert ended.status == 1
    assert "NO LEADER" in ended.out
    sentences = ended.out.splitlines()[1 : ended.out.splitlines().index("")]
    assert "101 reports no metadata: it started after the leader was lost, or its disk is new." in sentences
    assert all(line.endswith(".") and len(line) < 120 for line in sentences), "one that is read at once"
    assert told(call("ktriage", "quorum", "status", "--output", "json", *LOST))["leader"] == -1
    for words in (("remove", "101"), ("add", "103"), ("upgrade",), ("replace", "101", "--why", "disk")):
        ended = call("ktriage", "quorum", *words, *YES, *LOST)
        assert ended.status == 1, str(ended)
        assert "nothing was sent" in ended.err


def test_static_voters_are_upgraded_first_and_only_once(call: Caller, tmp_path: Path) -> None:
    file = tmp_path / "static.yaml"
    file.write_text(STATIC_SCENARIO)
    static = ("--simulate", str(file))
    ended = call("ktriage", "quorum", "remove", "101", *YES, *static)
    assert ended.status == 1
    assert "controller.quorum.voters" in ended.err
    ended = call("ktriage", "quorum", "update-endpoint", "101", "--endpoint", "CONTROLLER://h:1", *static)
    assert "kraft.version is 0" in ended.err
    found = told(call("ktriage", "quorum", "upgrade", "--dry-run", "--output", "json", *static))
    assert (found["kraftVersion"], found["sent"], found["refused"]) == (0, False, [])
    done = told(call("ktriage", "quorum", "upgrade", "--output", "json", *YES, *static))
    assert (done["kraftVersion"], done["done"]) == (1, True)
    again = told(call("ktriage", "quorum", "upgrade", "--output", "json", *YES, *static))
    assert (again["already"], again["sent"]) == (True, False)


def test_a_voter_that_tells_its_endpoint_itself_takes_nobody_s_word_and_what_is_sent_does(
    call: Caller,
) -> None:
    there = "CONTROLLER://controller-101.simulated:9093"
    ended = call("ktriage", "quorum", "update-endpoint", "101", "--endpoint", there, *DISK)
    assert ended.status == 0, str(ended)
    assert f"voter 101 has registered its new endpoint: {there}" in ended.out
    ended = call("ktriage", "quorum", "remove", "101", *DISK)
    assert ended.status == 2
    assert "there is no terminal to ask on: give --yes and --reason TEXT" in ended.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add",), "ktriage quorum add: Missing argument 'NODE'"),
        (("add", "1", "--directory-id", "x"), "--directory-id"),
        (("add", "1", "--endpoint", "host:9093"), "LISTENER://HOST:PORT"),
        (("add", "1", "--why", "disk"), "ktriage quorum add: No such option: --why"),
        (("replace", "1"), "needs --why"),
        (("replace", "1", "--why", "host"), "needs --with"),
        (("status", "5"), "ktriage quorum status: Got unexpected extra argument(s) (5)"),
        (("update-endpoint", "1"), "Missing option '--endpoint'"),
        (("status", "--yes"), "ktriage quorum status: No such option: --yes"),
        (("--dry-run", "add", "1"), "options come after the verb: ktriage quorum add"),
    ],
)
def test_wrong_usage_is_one_line_and_nothing_sent(call: Caller, words: tuple[str, ...], said: str) -> None:
    agreed = YES if words[0] in ("add", "replace") else ()
    ended = call("ktriage", "quorum", *words, *agreed, *DISK)
    assert ended.status == 2
    assert said in ended.err
    assert len(ended.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("replace", "102", "--why", "disk", "--confirmed", "99"), "the cluster itself shows every step"),
        (
            ("replace", "102", "--why", "host", "--with", "103", "--confirmed", "1"),
            "of this plan only 6 can be confirmed",
        ),
        (("replace", "--plan", "nowhere.json"), "nowhere.json: this plan file does not exist"),
        (("replace", "--why", "grow", "--with", "1"), "node 1 is a broker"),
        (("update-endpoint", "101", "--endpoint", "FOO://h:1"), "give --endpoint CONTROLLER://HOST:PORT"),
        (("upgrade", "101"), "unexpected extra argument(s) (101)"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_shown(
    call: Caller, words: tuple[str, ...], said: str
) -> None:
    ended = call("ktriage", "quorum", *words, "--dry-run", "--simulate", "controller-node-failure")
    assert ended.status in (1, 2), str(ended)
    assert said in ended.err
    assert not ended.out
