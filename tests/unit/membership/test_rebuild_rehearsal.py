"""``quorum rebuild PLAN --rehearse`` around the controller that it starts: nothing of it stays behind, whatever
happens. The java here is a script; tests/live/test_quorum_lost.py rehearses with real Kafka.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from backends.metadata_log.quorum_copy import read_quorum_copy
from console.errors import InputError, NotDone
from console.jobs.quorum.quorum_rebuild import apply_rebuild, read_rebuild, save_rebuild, save_rehearsed
from console.jobs.quorum.quorum_rebuild_report import next_line, rebuild_lines, rehearsal_cause
from console.jobs.quorum.rebuild_rehearsal import PREFIX, rehearse
from recovery.controller.registration import Registration
from recovery.membership.quorum_rebuild import RebuildPlan, digest
from recovery.metadata_log.access_records import acl_change
from recovery.metadata_log.log_changes import MetadataLogRecord
from recovery.metadata_log.metadata_image import image_differences, image_of
from recovery.metadata_log.record_codec import encode
from recovery.metadata_log.records import (
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
    ResourceType,
    TopicRecord,
)
from testbed.kafka import wait_until
from tests.unit.cli.command_process import command_line
from tests.unit.membership.rebuilt_disks import (
    SEGMENT,
    HeldLock,
    blank_controller,
    contents,
    disks,
    made,
    silent,
)

__all__ = ["disks"]  # the fixture

Work = tuple[RebuildPlan, Path]
ORDERS, PAYMENTS = "AAAAAAAAAAAAAAAAAAAA7w", "AAAAAAAAAAAAAAAAAAAA8w"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where temporary directories are made: empty again afterwards."""
    path = tmp_path / "temporary"
    path.mkdir()
    monkeypatch.setenv("TMPDIR", str(path))
    monkeypatch.setattr("tempfile.tempdir", str(path))
    yield path
    assert not list(path.iterdir())


@pytest.fixture
def plan(disks: Path) -> RebuildPlan:
    return made(disks)


@pytest.fixture
def work_of(plan: RebuildPlan, work: Path, tmp_path: Path) -> Work:
    """The plan, and the directory of the test; nothing stays in ``work``."""
    return plan, tmp_path


def kafka(tmp_path: Path) -> Path:
    folder = tmp_path / "kafka" / "libs"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kafka_2.13-4.3.1.jar").touch()
    return folder.parent


def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    path = tmp_path / "java-home" / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(path.parent.parent))


def test_a_controller_that_ends_fails_the_rehearsal_with_the_errors_of_its_log(
    plan: RebuildPlan, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java(tmp_path, monkeypatch, "echo INFO begun; echo ERROR no such record; echo INFO ended; exit 1")
    before = contents(Path(plan.source))
    rehearsed = rehearse(plan, kafka(tmp_path), 60, lambda *_: None)
    assert rehearsed.rehearsal is not None and not rehearsed.rehearsal.is_passed
    assert rehearsed.rehearsal.errors == ("ERROR no such record",)
    assert contents(Path(plan.source)) == before
    file = tmp_path / "plan.json"
    assert any("NOT REHEARSED" in line for line in rebuild_lines(plan, file))
    shown = "\n".join(rebuild_lines(rehearsed, file))
    assert "REHEARSAL FAILED" in shown and "ERROR no such record" in shown
    with pytest.raises(NotDone, match="its rehearsal failed"):
        apply_rebuild(rehearsed, "a test", silent)
    assert read_quorum_copy(Path(plan.source)).end == plan.log_end


@pytest.mark.parametrize(
    ("log", "first", "told"),
    [
        (
            "[a time] ERROR got exception (a.Class)\n"
            "org.apache.kafka.server.common.serialization.MetadataParseException: Failed to deserialize\n"
            "\tat org.apache.kafka.Some.thing(Some.java:104)\n"
            "Caused by: org.apache.kafka.common.errors.UnsupportedVersionException: Can't read version 4 of X",
            "org.apache.kafka.common.errors.UnsupportedVersionException: Can't read version 4 of X",
            "Kafka 4.3.1 cannot read this metadata log: a newer one wrote it",
        ),
        (
            "Error: Could not find or load main class kafka.Kafka\n"
            "Caused by: java.lang.ClassNotFoundException: kafka.Kafka",
            "java.lang.ClassNotFoundException: kafka.Kafka",
            "holds no whole Kafka",
        ),
        ("[a time] ERROR no such record", "[a time] ERROR no such record", ""),
    ],
    ids=["older Kafka", "no jars", "another reason"],
)
def test_a_failed_rehearsal_says_the_cause_first(
    work_of: Work, monkeypatch: pytest.MonkeyPatch, log: str, first: str, told: str
) -> None:
    plan, tmp_path = work_of
    (tmp_path / "its-log").write_text(log + "\n")
    java(tmp_path, monkeypatch, f"cat {tmp_path}/its-log; exit 1")
    rehearsed = rehearse(plan, kafka(tmp_path), 60, lambda *_: None)
    report = rehearsed.rehearsal
    assert report is not None and report.errors[0] == first and report.ended_after_ms is not None
    assert rehearsal_cause(report).startswith(told) if not told else told in rehearsal_cause(report)
    shown = list(rebuild_lines(rehearsed, tmp_path / "plan.json"))
    assert any("the controller ended after" in line and "had not led" in line for line in shown)
    assert not any("led within" in line for line in shown)
    if told:
        # An older Kafka may lead all the same, and then not load what it reads.
        differs = report._replace(led_after_ms=5_700, differences=("it wrote no snapshot",))
        lines = list(rebuild_lines(replace(rehearsed, rehearsal=differs), tmp_path / "plan.json"))
        assert any(told in line for line in lines), lines
    assert next_line(rehearsed, tmp_path / "plan.json").startswith("next: ktriage quorum rebuild")
    assert "--rehearse" in next_line(rehearsed, tmp_path / "plan.json")


def test_the_report_is_part_of_the_plan_and_of_its_digest(
    plan: RebuildPlan, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java(tmp_path, monkeypatch, "exit 1")
    rehearsed, file = rehearse(plan, kafka(tmp_path), 60, lambda *_: None), tmp_path / "plan.json"
    save_rebuild(plan, file)
    save_rehearsed(rehearsed, file)
    assert read_rebuild(file) == rehearsed and digest(rehearsed) != digest(plan)
    members = json.loads(file.read_text())
    members["rehearsal"]["ledAfterMs"] = 5
    file.write_text(json.dumps(members))
    with pytest.raises(InputError, match="it was edited"):
        read_rebuild(file)


def test_a_broker_whose_copy_is_taken_may_run_and_the_controller_that_is_written_may_not(
    disks: Path, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java(tmp_path, monkeypatch, "exit 1")
    plans = {
        "node-1": made(disks, source=disks / "node-1", into=blank_controller(disks), dead=(100, 101, 102)),
        "node-100": made(disks),
    }
    for name in plans:
        (disks / name / ".lock").touch()
    with HeldLock(disks / "node-1" / ".lock"), HeldLock(disks / "node-100" / ".lock"):
        assert rehearse(plans["node-1"], kafka(tmp_path), 60, lambda *_: None).rehearsal is not None
        with pytest.raises(NotDone, match="its node runs"):
            rehearse(plans["node-100"], kafka(tmp_path), 60, lambda *_: None)


def test_a_controller_that_does_not_lead_in_time_is_ended(
    plan: RebuildPlan, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java(tmp_path, monkeypatch, f"echo $$ > {tmp_path}/pid; exec sleep 600")
    rehearsed = rehearse(plan, kafka(tmp_path), 2, lambda *_: None)
    assert rehearsed.rehearsal is not None and rehearsed.rehearsal.led_after_ms is None
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def started(tmp_path: Path, plan: RebuildPlan) -> subprocess.Popen[bytes]:
    """The command, once its controller runs."""
    file, pid = tmp_path / "plan.json", tmp_path / "pid"
    save_rebuild(plan, file)
    words = ("quorum", "rebuild", str(file), "--rehearse", "--kafka-dir", str(kafka(tmp_path)))
    process = subprocess.Popen(command_line("ktriage", *words), stderr=subprocess.PIPE)
    wait_until(lambda: pid.exists() and pid.read_text().strip(), "the controller to start", 60)
    return process


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_an_interrupt_leaves_no_controller_and_no_directory(
    plan: RebuildPlan, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java(tmp_path, monkeypatch, f"echo $$ > {tmp_path}/pid; exec sleep 600")
    process = started(tmp_path, plan)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert is_gone(int((tmp_path / "pid").read_text()))
    assert read_rebuild(tmp_path / "plan.json") == plan


def test_a_killed_run_leaves_no_controller(
    plan: RebuildPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    java(tmp_path, monkeypatch, f"echo $$ > {tmp_path}/pid; exec sleep 600")
    process = started(tmp_path, plan)
    process.kill()
    process.communicate(timeout=60)
    wait_until(lambda: is_gone(int((tmp_path / "pid").read_text())), "the controller to end", 60)
    assert [path.name.startswith(PREFIX) for path in temporary.iterdir()] == [True]


def test_what_cannot_be_rehearsed_is_said(
    plan: RebuildPlan, work: Path, disks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="holds no Kafka"):
        rehearse(plan, tmp_path, 60, lambda *_: None)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no-java"))
    with pytest.raises(NotDone, match="cannot be started"):
        rehearse(plan, kafka(tmp_path), 60, lambda *_: None)
    with (disks / "node-100" / "__cluster_metadata-0" / SEGMENT).open("ab") as log:
        log.write(b"more")
    with pytest.raises(NotDone, match="changed since the plan was made"):
        rehearse(plan, kafka(tmp_path), 60, lambda *_: None)


# What the log implies


def records(*changes: MetadataRecord) -> list[MetadataLogRecord]:
    return [MetadataLogRecord(n, 5, n, encode(change)) for n, change in enumerate(changes)]


def test_what_the_controller_has_otherwise_is_told_without_values() -> None:
    now = Registration((1, 2), (1, 2), 1, leader_epoch=7, partition_epoch=9)
    password = ConfigRecord(ResourceType.TOPIC, "orders", "some.password", "secret")
    expected = image_of(records(TopicRecord("orders", ORDERS), PartitionRecord(ORDERS, 0, now), password))
    assert list(image_differences(expected, expected)) == []
    other = image_of(
        records(
            TopicRecord("orders", PAYMENTS),
            PartitionRecord(PAYMENTS, 0, now._replace(leader_epoch=6)),
            password._replace(value="other"),
        )
    )
    assert list(image_differences(expected, other)) == [
        f"topic orders is not as expected: {PAYMENTS} instead of {ORDERS}",
        f"partition orders-0 is not as expected: {now._replace(leader_epoch=6)} instead of {now}",
        "configuration some.password of topic orders is not as expected",
    ]
    # An election since then is none.
    later = now._replace(leader=2, leader_epoch=8, partition_epoch=10, isr=(2,))
    elected = image_of(records(TopicRecord("orders", ORDERS), PartitionRecord(ORDERS, 0, later), password))
    assert list(image_differences(expected, elected)) == []
    assert "topic orders is missing" in list(image_differences(expected, image_of([])))


def test_a_deleted_topic_takes_its_configurations_along() -> None:
    config = ConfigRecord(ResourceType.TOPIC, "orders", "retention.ms", "5")
    image = image_of(records(TopicRecord("orders", ORDERS), config, RemoveTopicRecord(ORDERS)))
    assert (image.topics, image.configs) == ({}, {})
    again = image_of(
        records(TopicRecord("orders", ORDERS), TopicRecord("orders", PAYMENTS), RemoveTopicRecord(ORDERS))
    )
    assert again.topics == {"orders": PAYMENTS}


def test_acls_are_those_that_were_not_removed() -> None:
    acl_id = bytes(15) + b"\7"
    value = b"\1\x12\0" + acl_id + b"\2\7orders\3\x09User:ana\2*\3\3\0"
    change = acl_change(value)
    assert change is not None and "User:ana" in str(change.entry)
    image = image_of([MetadataLogRecord(0, 5, 0, value)])
    assert list(image.acls) == [change.acl_id]
    removal = b"\1\x13\0" + acl_id + b"\0"
    assert image_of([MetadataLogRecord(0, 5, 0, value), MetadataLogRecord(1, 5, 1, removal)]).acls == {}
