"""What the right election cuts off is read before it and written back after it, on a real cluster.

Every topic has a stale long tail on broker 1; broker 2 has the newest records and is elected.
"""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from testbed.kafka import KafkaCluster, wait_until
from tests.live import group_clients, incident_steps, rescue_incident
from tests.live.command_runner import CommandRunner
from tests.live.incident_steps import Counts
from tests.live.rescue_incident import CODECS, COUNTS, LARGE, SMALL, TAIL
from tests.live.rescued_records import expected, values
from tests.unit.cli.command_process import command_line, environment

pytestmark = pytest.mark.long

CLUSTER = rescue_incident.CLUSTER
COMMON, CUT_OFF, KEPT = COUNTS[TAIL]
AGREED = ("--yes", "--reason", "a test")


@pytest.fixture(scope="module")
def incident(cluster: KafkaCluster) -> KafkaCluster:
    return rescue_incident.played(cluster)


@pytest.fixture
def console(incident: KafkaCluster, tmp_path: Path) -> CommandRunner:
    return CommandRunner(tmp_path, incident.bootstrap(), incident.metadata.wait_caught_up)


def test_all_of_the_stale_long_tail_is_there_in_the_end(
    console: CommandRunner, incident: KafkaCluster
) -> None:
    console.plan_aggressively(TAIL)
    status, applied = console.json("apply", "plan.json", "--rescue", "saved", *AGREED)
    assert status == 0, applied
    (branch,) = applied["rescue"]["branches"]
    assert (branch["broker"], branch["startOffset"], branch["endOffset"]) == (1, COMMON, COMMON + CUT_OFF)
    incident.metadata.wait_isr(TAIL, 0, (1, 2))
    assert values(incident, TAIL) == expected(Counts(COMMON, 0, KEPT)), "the election has cut the tail off"
    # Without __consumer_offsets no consumer is asked.
    group_clients.member(incident, "first", TAIL).close()
    ended = console("restore", "saved", "--to-source", *AGREED)
    assert ended.status == 0, ended
    assert f"{CUT_OFF} records written back; {CUT_OFF} counted" in ended.out
    assert "as a consumer (librdkafka " in ended.out and "DISAGREES" not in ended.out, ended
    assert values(incident, TAIL) == expected(COUNTS[TAIL])
    again = console("restore", "saved", "--to-source", *AGREED)
    assert again.status == 0 and "nothing was sent" in again.out
    assert values(incident, TAIL) == expected(COUNTS[TAIL])
    assert (
        console.sent()[:3] == ["rescue", "planned-elections", "reorder"]
        and console.sent()[-1] == "restore-records"
    )


def test_every_compression_comes_back_as_it_was(console: CommandRunner, incident: KafkaCluster) -> None:
    console.plan_aggressively(*CODECS)
    status, applied = console.json("apply", "plan.json", "--rescue", "saved", *AGREED)
    assert status == 0, applied
    shown = console.without_cluster("rescue", "show", "saved", "--records", "2")
    assert shown.status == 0 and shown.out.count("null  tail-1") == len(CODECS), shown
    for topic in CODECS:
        incident.metadata.wait_isr(topic, 0, (1, 2))
        (segment,) = (console.home / "saved" / f"{topic}-0").glob("*/*.log")
        dumped = incident.tools("kafka-dump-log", "--files", str(segment), "--print-data-log").stdout
        assert f"compresscodec: {topic}" in dumped and "payload: tail-49" in dumped
        ended = console("restore", "saved", "--topic", topic, "--to-topic", f"{topic}-rescued", *AGREED)
        assert ended.status == 0, ended
        assert values(incident, f"{topic}-rescued") == expected(Counts(0, 50, 0))
    ended = console("restore", "saved", "--to-source", *AGREED)
    assert ended.status == 0, ended
    for topic in CODECS:
        assert values(incident, topic) == expected(COUNTS[topic])


def test_a_rescue_that_is_killed_goes_on_where_it_was(console: CommandRunner, incident: KafkaCluster) -> None:
    console.plan_aggressively(LARGE)
    words = ("rescue", "read", "plan.json", "--to", "saved", "--rate", "20kB", *console.connection)
    killed = subprocess.Popen(
        command_line("ktriage", *words),
        env=environment(console.home),
        cwd=console.home,
        stderr=subprocess.DEVNULL,
    )
    saved = console.home / "saved"
    wait_until(lambda: any(path.stat().st_size for path in saved.glob("*/*/*.partial")), "a batch on disk")
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert console("rescue", "verify", "saved").status == 1, "it is marked as not whole"
    (partial,) = saved.glob("*/*/*.partial")
    began = partial.read_bytes()
    ended = console("rescue", "read", "plan.json", "--to", "saved")
    assert ended.status == 0, ended
    (segment,) = saved.glob("*/*/*.log")
    assert segment.read_bytes().startswith(began)
    assert console("rescue", "verify", "saved").status == 0
    assert console("apply", "plan.json", "--rescue", "saved", *AGREED).status == 0
    assert console("restore", "saved", "--to-topic", "large-rescued", *AGREED).status == 0
    assert values(incident, "large-rescued") == expected(Counts(0, COUNTS[LARGE].tail, 0))


def test_a_broker_that_dies_leaves_its_partition_unelected(
    console: CommandRunner, incident: KafkaCluster
) -> None:
    """The last one here: broker 1 holds the tail and is dead when it is to be read."""
    console.plan_aggressively(SMALL)
    incident_steps.kill(incident, 1)
    ended = console("apply", "plan.json", "--rescue", "saved", *AGREED)
    assert ended.status == 1 and "broker 1 told its log to the plan, and not now" in ended.err, ended
    assert console.sent() == ["rescue"]
    incident_steps.start(incident, 1)
    told = json.loads((console.home / "saved" / "rescue.json").read_text())
    assert {one["broker"] for one in told["unread"]} == {1, 3}
