"""What is wrong with the whole cluster is the first line of every report of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.command_process import invoke

REPORTS = (("status",), ("check",), ("plan", "new.json"), ("replicas", "--all-offline-partitions"))
HEADS = {
    "disk-failure": "1 disk failed · 4 offline · 3 more under-replicated",
    "two-of-three-voters-lost": "quorum NO LEADER · controller 102 down · controller 101 without metadata"
    " · broker 3 not reached",
    "one-sided-cuts": "broker 1 down · broker 2 fenced · broker 3 not reached from here;"
    " the controller says that it is up"
    " · 1 offline",
    "controller-disk-failure-leader": "controller 100 without a vote · broker 3 down · 3 under-replicated"
    " · no partition offline",
}


@pytest.mark.parametrize("scenario", HEADS)
@pytest.mark.parametrize("words", REPORTS, ids=lambda words: words[0])
def test_the_first_line_says_what_is_wrong(tmp_path: Path, scenario: str, words: tuple[str, ...]) -> None:
    ended = invoke(tmp_path, "ktriage", *words, "--simulate", scenario)
    assert ended.out.splitlines()[0] == HEADS[scenario], ended
    assert words != ("status",) or ended.status == 1


@pytest.mark.parametrize(
    ("scenario", "last"),
    {
        "disk-failure": "next: ktriage plan --all-offline-partitions recovery.json",
        "two-of-three-voters-lost": "next: ktriage quorum status",
        "controller-disk-failure-leader": "next: ktriage quorum status",
        "broker-gone-for-good": "if broker 3 and its disks do not come back: ktriage heal show --broker-id 3"
        " --gone-for-good",
    }.items(),
)
def test_the_last_line_says_what_to_run_next(tmp_path: Path, scenario: str, last: str) -> None:
    ended = invoke(tmp_path, "ktriage", "status", "--simulate", scenario)
    assert ended.err.splitlines()[-1] == f"{last} --simulate {scenario}"


def test_the_head_of_one_topic_is_that_of_the_whole_cluster_and_the_filter_is_named(tmp_path: Path) -> None:
    def shown(command: str, *words: str) -> list[str]:
        words = ("--topic", *words, "--simulate", "disk-failure")
        return invoke(tmp_path, "ktriage", command, *words).out.splitlines()

    for told in (shown("plan", "sessions", "new.json"), shown("replicas", "sessions")):
        assert told[0] == HEADS["disk-failure"]
        assert " of topic sessions: 2 offline" in told[3]
    assert shown("replicas", "payments")[0] == HEADS["disk-failure"], "a topic that is well"
    told = shown("replicas", "archive", "--partition", "1", "--partition", "0")
    assert told[0] == HEADS["disk-failure"]
    assert told[3].startswith("2 partitions of archive-1, archive-0: 1 offline")


def test_a_program_reads_the_same(tmp_path: Path) -> None:
    for command in ("status", "check"):
        ended = invoke(tmp_path, "ktriage", command, "--simulate", "disk-failure", "--output", "json")
        told = json.loads(ended.out)["health"]
        assert told["line"] == HEADS["disk-failure"]
        assert (told["failedLogDirs"], told["offline"], told["well"]) == (1, 4, False)


def first_row(out: str, heading: str) -> str:
    lines = out.splitlines()
    return lines[next(n for n, line in enumerate(lines) if line.startswith(heading)) + 1]


def test_what_is_broken_is_the_first_row_of_its_table(tmp_path: Path) -> None:
    def told(scenario: str, *words: str) -> str:
        return invoke(tmp_path, "ktriage", *words, "--simulate", scenario).out

    leader_lost = "controller-disk-failure-leader"
    assert "does not fetch" in first_row(told(leader_lost, "quorum", "status"), "ROLE")
    assert "does not fetch" in first_row(told(leader_lost, "status"), "  ROLE")
    assert "DOWN" in first_row(told("two-of-three-voters-lost", "quorum", "status"), "  NODE")
    assert "KAFKA_STORAGE_ERROR" in first_row(told("disk-failure", "log-dirs"), "BROKER")
    silent = first_row(told("last-replica-standing", "log-dirs"), "BROKER")
    assert silent.split()[:3] == ["2", "?", "unknown"]


def test_a_command_in_a_reason_can_be_copied_into_a_shell(tmp_path: Path) -> None:
    cluster = ("--simulate", "controller-disk-failure-leader")
    replaced = f"ktriage quorum replace 100 --why disk {' '.join(cluster)}"
    for words in (("status",), ("quorum", "status")):
        told = invoke(tmp_path, "ktriage", *words, *cluster).out.splitlines()
        assert any(line.endswith(f": {replaced}") for line in told), told
    healed = f"ktriage heal show --broker-id 3 --gone-for-good {' '.join(cluster)}"
    assert (
        f"  Its replacement, if it is gone for good: {healed}"
        in invoke(tmp_path, "ktriage", "status", *cluster).out.splitlines()
    )


def test_what_to_do_about_a_lost_quorum_and_why_stand_once_each(tmp_path: Path) -> None:
    cluster = ("--simulate", "two-of-three-voters-lost")
    status = invoke(tmp_path, "ktriage", "status", *cluster).out
    assert status.count("with its old disk, unless a rebuild") == 1, status
    page = invoke(tmp_path, "ktriage", "handover", *cluster).out
    assert "! 101 runs without metadata: its disk is new, or nobody led when it started." in status
    assert page.count("of 3 controllers answer and nobody leads") == 1, page
    assert "The metadata log was not read: no controller leads." in page


def test_nobody_is_to_be_started_before_a_copy_where_the_leader_lost_every_record(tmp_path: Path) -> None:
    """Broker 2 came back with an empty disk and was elected; broker 1, which is down, has what was acknowledged."""
    out = invoke(tmp_path, "ktriage", "status", "--simulate", "late-alter-partition-unchecked").out
    assert "Do first: Copy the disk of broker 1, then start it: 1 partition lacks a copy." in out
    assert "! payments-0 is EMPTY on its leader: what broker 1 may hold is cut off when it starts." in out
    whole = invoke(tmp_path, "ktriage", "status", "--simulate", "broker-gone-for-good").out
    assert "Do first: Start broker 3: 6 partitions lack a copy. Or, if it is gone for good, make new" in whole
    assert "! One more failure can stop writes with acks=all to 6 partitions." in whole
    assert "EMPTY" not in whole


def test_a_topic_without_records_is_no_warning_while_several_replicas_are_in_sync(tmp_path: Path) -> None:
    scenario = tmp_path / "idle.yaml"
    scenario.write_text(
        "title: Idle\n"
        "about: A broker is down, and a topic was never written to.\n"
        "cluster:\n"
        "  brokers: {count: 3}\n"
        "  min_isr: 1\n"
        "topics:\n"
        "  - {name: idle, replicas: [[1, 2, 3]]}\n"
        "faults:\n"
        '  - {at: 5, do: kill, nodes: [broker-3], note: "3 is killed"}\n'
        "operator: {at: 40}\n"
        "expect: {offline: 0}\n"
    )
    out = invoke(tmp_path, "ktriage", "status", "--simulate", str(scenario)).out
    assert "Start broker 3: 1 partition lacks a copy." in out and "EMPTY" not in out, out
