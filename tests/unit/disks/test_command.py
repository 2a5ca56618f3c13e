"""``ktriage log-dirs`` on simulated clusters: what it prints, and with what status it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_server import Ended
from tests.live.command_runner import documented
from tests.unit.cli.command_process import Caller

SCENARIO = """\
title: A disk fails
about: broker 1 loses its second log dir
cluster:
  brokers: {count: 3, log_dirs: 2}
  min_isr: 2
topics:
  - {name: payments, partitions: 6, replication_factor: 3, records: 10, min_isr: 2}
faults:
  - {at: 5, do: break-disk, node: broker-1, log_dir: 1, note: "its second log dir fails"}
operator: {at: 20}
expect: {offline: 0}
"""


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Caller:
    return Caller(monkeypatch, tmp_path)


@pytest.fixture
def broken(tmp_path: Path) -> tuple[str, ...]:
    file = tmp_path / "disk.yaml"
    file.write_text(SCENARIO)
    return ("--simulate", str(file))


def told(ended: Ended) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ended.out)
    undocumented = set(found) - {"schema"} - documented(found["schema"])
    assert not undocumented, f"{found['schema']}: {undocumented}"
    return found


def test_a_failed_dir_is_told_with_what_it_held_and_what_is_left(
    call: Caller, broken: tuple[str, ...]
) -> None:
    ended = call("ktriage", "log-dirs", *broken)
    assert ended.status == 1
    assert "FAILED: 1:/kafka/1" in ended.out
    assert "nothing but the disk" in ended.out
    assert "next: ktriage log-dirs --swap 1:/kafka/1" in ended.err
    found = told(call("ktriage", "log-dirs", "--output", "json", *broken))
    (failed,) = found["failed"]
    assert {p["left"] for p in failed["partitions"]} == {"disk"}
    assert all(1 not in p["isr"] for p in failed["partitions"])


def test_which_of_two_failed_dirs_it_was_is_left_open_only_where_two_failed(
    call: Caller, broken: tuple[str, ...], tmp_path: Path
) -> None:
    assert "another failed dir" not in call("ktriage", "log-dirs", *broken).out
    file = tmp_path / "disks.yaml"
    both = SCENARIO.replace("log_dirs: 2", "log_dirs: 3").replace(
        "operator:",
        '  - {at: 6, do: break-disk, node: broker-1, log_dir: 2, note: "and its third"}\noperator:',
    )
    file.write_text(both)
    ended = call("ktriage", "log-dirs", "--simulate", str(file))
    assert "2 failed" in ended.out
    assert "offline replicas: it may have been on another failed dir" in ended.out


def test_a_last_copy_is_told_with_the_disks_that_it_was_on(call: Caller, tmp_path: Path) -> None:
    file = tmp_path / "last.yaml"
    alone = SCENARIO.replace("replication_factor: 3, records: 10, min_isr: 2", "replicas: [[1]], records: 10")
    file.write_text(alone.replace("partitions: 6", "partitions: 1").replace("log_dir: 1", "log_dir: 0"))
    ended = call("ktriage", "log-dirs", "--simulate", str(file))
    assert "LOST THEIR LAST COPY: 1 partition\n" in ended.out, str(ended)
    assert "; it was on the disk of broker 1\n" in ended.out


def test_the_next_failure_is_reckoned_from_how_it_stands(call: Caller, broken: tuple[str, ...]) -> None:
    found = told(call("ktriage", "log-dirs", "--if-fails", "2", "--output", "json", *broken))
    assert found["brokersStopped"] == [2]
    assert found["counts"]["underMinIsr"] > 0
    assert found["counts"]["offline"] == 0
    text = call("ktriage", "log-dirs", "--if-fails", "2", "--if-fails", "3:/kafka/0", *broken)
    assert text.status == 0
    assert "would fall under min ISR" in text.out


def test_partitions_that_may_not_be_seen_are_named_as_not_counted(call: Caller, tmp_path: Path) -> None:
    file = tmp_path / "hidden.yaml"
    file.write_text(SCENARIO.replace("at: 20", 'at: 20, denied: ["DESCRIBE topic payments"]'))
    ended = call("ktriage", "log-dirs", "--if-fails", "2", "--simulate", str(file))
    assert ended.status == 1
    assert "not counted: 1 topic may not be seen (needs DESCRIBE on topic payments)" in ended.err


def test_what_would_go_offline_is_not_counted_once_more_as_under_min_isr(
    call: Caller, broken: tuple[str, ...]
) -> None:
    both = ("--if-fails", "2", "--if-fails", "3")
    found = told(call("ktriage", "log-dirs", *both, "--output", "json", *broken))
    led = sum(1 for p in found["partitions"] if p["underMinIsr"] and p["leaderThen"] != -1)
    offline = found["counts"]["offline"]
    assert min(led, offline) > 0
    said = f"{offline} would go offline, {led} more would fall under min ISR"
    assert said in call("ktriage", "log-dirs", *both, *broken).out


def test_the_steps_of_a_swap_are_told(call: Caller, broken: tuple[str, ...]) -> None:
    ended = call("ktriage", "log-dirs", "--swap", "1:/kafka/1", *broken)
    assert "--ignore-formatted" in ended.out
    assert ended.status == 1, "its replicas are not in the ISR"
    assert call("ktriage", "log-dirs", "--swap", "1:/kafka/1/", *broken).out == ended.out


def test_the_disk_is_read_before_anybody_is_elected_and_each_command_names_the_cluster(call: Caller) -> None:
    ended = call("ktriage", "log-dirs", "--swap", "2:/kafka/1", "--simulate", "disk-failure")
    read, recover, *_, wait, leaders = [line for line in ended.out.splitlines() if line[:1].isdigit()][1:]
    assert "only copy of 2 partitions and it may decide whom to elect for 2 offline partitions" in read
    assert read.endswith("ktriage disk scan --output json /kafka/1 > disk-2.json")
    assert recover.startswith("2. recover first")
    assert wait.endswith("--wait --simulate disk-failure") and leaders.endswith("--simulate disk-failure")
    assert "aggressive" not in ended.err
    assert "first read the old disk (step 1)" in ended.err
    assert "next: ktriage plan --topic archive recovery.json --simulate disk-failure" in ended.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--if-fails", "x"), "BROKER:DIR or BROKER"),
        (("--if-fails", "9"), "broker 9 told no log dirs"),
        (("--if-fails", "2:/nowhere"), "has no log dir /nowhere; it has /kafka/0, /kafka/1"),
        (("--if-fails", "1:/nowhere"), "has no log dir /nowhere; it has /kafka/0, /kafka/1 (failed)"),
        (("--swap", "1:/nowhere"), "has no log dir /nowhere; it has /kafka/0, /kafka/1 (failed)"),
        (("--swap", "2"), "BROKER:DIR"),
        (("--swap", "9:/kafka/1"), "broker 9 told no log dirs; there are those of 1, 2, 3"),
        (("--swap", "2:/nowhere"), "has no log dir /nowhere"),
        (("--wait",), "--wait needs --swap"),
        (("--if-fails", "1", "--swap", "1:/a"), "exclude each other"),
    ],
)
def test_wrong_usage_is_one_line(
    call: Caller, broken: tuple[str, ...], words: tuple[str, ...], said: str
) -> None:
    ended = call("ktriage", "log-dirs", *words, *broken)
    assert ended.status == 2
    assert said in ended.err


def test_a_dir_that_has_failed_is_not_called_unknown(call: Caller, broken: tuple[str, ...]) -> None:
    ended = call("ktriage", "log-dirs", "--if-fails", "1:/kafka/1", *broken)
    assert ended.status == 2
    assert "1:/kafka/1 has already failed: see log-dirs --swap 1:/kafka/1" in ended.err
