"""``--evidence``: the disk of a broker that is down counts as its answer, and stale evidence is refused by name.

The stale long tail: 1 holds 0 to 1499 in epoch 0, 2 holds 1000 to 1299 in epoch 2, 3 is down, nobody leads.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_server import Ended
from tests.unit.cli.command_process import invoke
from tests.unit.disk_scan.evidence_files import evidence_file, scanned_log

CLUSTER = "simulated.stale-long-tail.1"
SPANS = ((0, 0, 1000), (2, 1000, 1300))


@pytest.fixture(scope="module")
def topic_id(tmp_path_factory: pytest.TempPathFactory) -> str:
    told = json.loads(
        simulated(tmp_path_factory.mktemp("home"), "replicas", "--topic", "payments", "--output", "json").out
    )
    return str(told["partitions"][0]["topicId"])


def simulated(home: Path, *words: str) -> Ended:
    return invoke(home, "ktriage", *words, "--simulate", "stale-long-tail")


def logs(home: Path, file: Path) -> dict[int, Any]:
    ended = simulated(home, "replicas", "--topic", "payments", "--evidence", str(file), "--output", "json")
    (partition,) = json.loads(ended.out)["partitions"]
    return {log["broker"]: log for log in partition["logs"]}


def test_a_read_disk_counts_as_answered_and_is_marked(tmp_path: Path, topic_id: str) -> None:
    log = scanned_log("payments", topic_id, SPANS, 3)
    file = evidence_file(tmp_path / "broker-3.json", 3, CLUSTER, log)
    found = logs(tmp_path, file)[3]
    assert (found["lastEpoch"], found["logEndOffset"], found["diskReadAtMs"]) == (2, 1300, 1_795_381_700_000)
    assert found["standing"] == "fenced"
    ended = simulated(tmp_path, "replicas", "--topic", "payments", "--evidence", str(file))
    assert "its disk, read 2026-11-22 21:08:20 UTC" in ended.out
    assert "1 log of broker 3 counts as answered" in ended.out


def test_nothing_is_unknown_any_more_in_a_plan_with_the_disk(tmp_path: Path, topic_id: str) -> None:
    aggressive = ("--strategy", "aggressive")
    simulated(tmp_path, "plan", *aggressive, str(tmp_path / "without.json"))
    log = scanned_log("payments", topic_id, SPANS, 3)
    file = evidence_file(tmp_path / "broker-3.json", 3, CLUSTER, log)
    ended = simulated(tmp_path, "plan", *aggressive, "--evidence", str(file), str(tmp_path / "with.json"))
    assert ended.status == 0, ended
    rows = [
        json.loads((tmp_path / name).read_text())["partitions"][0] for name in ("without.json", "with.json")
    ]
    chosen = [next(c for c in row["candidates"] if c["broker"] == row["designatedLeader"]) for row in rows]
    assert [one["broker"] for one in chosen] == [2, 2]
    assert [one["loss"]["atMost"] for one in chosen] == [None, 500]
    assert rows[0]["silent"] == [{"broker": 3, "standing": "fenced"}]
    assert "silent" not in rows[1]
    (disk,) = (c for c in rows[1]["candidates"] if c["broker"] == 3)
    assert disk["diskReadAtMs"] == 1_795_381_700_000
    review = invoke(tmp_path, "ktriage", "review", str(tmp_path / "with.json"))
    assert "its disk, read 2026-11-22 21:08:20 UTC" in review.out
    applied = simulated(
        tmp_path, "apply", "--yes", "--reason", "a test", str(tmp_path / "with.json"), "--output", "json"
    )
    assert json.loads(applied.out)["elections"][0]["leader"] == 2


def test_a_better_log_on_a_disk_cannot_be_chosen_and_is_waited_for(tmp_path: Path, topic_id: str) -> None:
    log = scanned_log("payments", topic_id, (*SPANS, (3, 1300, 1400)), 3)
    file = evidence_file(tmp_path / "broker-3.json", 3, CLUSTER, log)
    plan = tmp_path / "plan.json"
    simulated(tmp_path, "plan", "--strategy", "aggressive", "--evidence", str(file), str(plan))
    (row,) = json.loads(plan.read_text())["partitions"]
    assert row["designatedLeader"] == 2
    losses = {c["broker"]: c["loss"] for c in row["candidates"]}
    assert (losses[2]["atLeast"], losses[2]["atMost"]) == (600, 600)
    waiting = simulated(
        tmp_path, "plan", "--strategy", "complete", "--evidence", str(file), "--output", "json", "p"
    )
    (left,) = json.loads(waiting.out)["notElected"]
    assert (left["verdict"], left["waitsFor"]) == ("wait", [3])
    assert left["reason"] == "the disk of 3 holds a better log than 2 has: start broker 3 again with its disk"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"topicId": "AAAAAAAAAAAAAAAAAAAAbQ"}, "another topic id"),
        ({"topicId": ""}, "the disk does not have the topic's id"),
        ({"lostTail": "the last 4096 bytes are zero"}, "records are missing at the end of the log"),
        ({"leaderEpoch": 9}, "leader epoch 9 on the disk, and 4 in the cluster"),
        ({"leaderEpoch": 2}, "broker 3 led up to leader epoch 3, and the disk knows of epoch 2 at most"),
    ],
)
def test_evidence_of_another_history_is_refused_by_name(
    tmp_path: Path, topic_id: str, change: dict[str, object], said: str
) -> None:
    log = scanned_log("payments", topic_id, SPANS, 3)
    file = evidence_file(tmp_path / "broker-3.json", 3, CLUSTER, log)
    told = json.loads(file.read_text())
    told["partitions"][1].update(change)
    file.write_text(json.dumps(told))
    ended = simulated(tmp_path, "replicas", "--topic", "payments", "--evidence", str(file))
    assert ended.status == 0
    assert f"evidence refused: payments-0 of broker 3: {said}" in ended.out
    assert "0 logs of broker 3 count as answered" in ended.out


def test_a_broker_that_registered_after_its_disk_was_read_is_refused(tmp_path: Path, topic_id: str) -> None:
    log = scanned_log("payments", topic_id, SPANS, 3)
    file = evidence_file(tmp_path / "broker-3.json", 3, CLUSTER, log, metadata_end=1)
    ended = simulated(tmp_path, "replicas", "--topic", "payments", "--evidence", str(file))
    assert "broker 3 registered again after its disk was read" in ended.out


def test_the_simulator_gives_the_evidence_for_a_rehearsal(tmp_path: Path) -> None:
    scan = invoke(tmp_path, "ktriage", "simulate", "disk", "stale-long-tail", "3")
    assert scan.status == 0
    file = tmp_path / "broker-3.json"
    file.write_text(scan.out)
    ended = simulated(tmp_path, "plan", "--strategy", "aggressive", "--evidence", str(file), "plan.json")
    assert ended.status == 0
    assert "1 log of broker 3 counts as answered" in ended.out
    assert "3 replicas: 2 answered, 1 read from the disk, 0 did not" in ended.out
    (row,) = json.loads((tmp_path / "plan.json").read_text())["partitions"]
    assert row["candidates"][0]["loss"]["atMost"] is not None
    missing = invoke(tmp_path, "ktriage", "simulate", "disk", "stale-long-tail", "9")
    assert (missing.status, missing.out) == (2, "")
    assert "has no broker or controller 9" in missing.err


def test_a_broker_that_answers_itself_needs_no_disk(tmp_path: Path, topic_id: str) -> None:
    log = scanned_log("payments", topic_id, SPANS, 3)
    file = evidence_file(tmp_path / "broker-2.json", 2, CLUSTER, log)
    assert logs(tmp_path, file)[2]["diskReadAtMs"] is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("{}", "is no result of ktriage disk scan"),
        ('{"schema": "ktriage.disk-scan/1"}', "must be lists"),
        ('{"schema": "ktriage.disk-scan/1", "logDirs": [], "partitions": []}', "are of 0 brokers"),
        ('{"schema": "ktriage.disk-scan/1", "logDirs": [{"path": 1}], "partitions": []}', "logDirs[0]"),
    ],
)
def test_a_file_that_is_no_evidence_is_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "broker-3.json"
    file.write_text(text)
    ended = simulated(tmp_path, "replicas", "--evidence", str(file))
    assert (ended.status, ended.out) == (2, "")
    assert said in ended.err
    assert len(ended.err.splitlines()) == 1


def test_a_disk_of_another_cluster_and_two_files_of_one_broker_are_refused(tmp_path: Path) -> None:
    one = evidence_file(tmp_path / "one.json", 3, "4L6g3nShT-eMCtK--X86sw")
    other = evidence_file(tmp_path / "other.json", 3, CLUSTER)
    ended = simulated(tmp_path, "replicas", "--evidence", str(one))
    assert ended.status == 2
    assert "is evidence of cluster 4L6g3nShT-eMCtK--X86sw" in ended.err
    ended = simulated(tmp_path, "replicas", "--evidence", str(one), "--evidence", str(other))
    assert ended.status == 2
    assert "are both of broker 3" in ended.err
