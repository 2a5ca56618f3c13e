"""``ktriage simulate from`` and ``apply --rehearse``: a copy has the leaders and logs of its cluster, a plan is
tried on the copy before anything is sent, and what the copy does not have is named.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from console.jobs.elect import plan_rehearsal
from console.jobs.simulate.cluster_copy import ClusterCopy, read_copy
from tests.unit.cli.command_process import Caller, command_line, invoke, typing
from tests.unit.cli.stale_long_tail import TAIL

SCENARIOS = (
    "stale-long-tail",
    "disk-failure",
    "zone-power-loss",
    "four-brokers-min-isr-3",
    "broker-gone-for-good",
    "late-alter-partition",
)
STATE = (
    "topic",
    "partition",
    "leader",
    "leaderEpoch",
    "isr",
    "elr",
    "lastKnownElr",
    "replicas",
    "offlineReplicas",
)
LOG = (
    "broker",
    "standing",
    "lastEpoch",
    "logEndOffset",
    "logStartOffset",
    "leaderEpoch",
    "lineage",
    "unknown",
)


def copied(home: Path, *cluster: str, name: str = "copy.yaml") -> Path:
    to = home / name
    made = invoke(home, "ktriage", "simulate", "from", str(to), *cluster)
    assert made.status == 0, made.err
    return to


def held(home: Path, *cluster: str) -> list[Any]:
    """Every partition with its logs, as ``replicas`` shows them; where one leads, epochs below the newest are not
    read.
    """
    states = json.loads(invoke(home, "ktriage", "status", *cluster, "--output", "json").out)
    topics = dict.fromkeys(one["topic"] for one in states["partitions"])
    named = [word for topic in topics for word in ("--topic", topic)]
    shown = json.loads(invoke(home, "ktriage", "replicas", *named, *cluster, "--output", "json").out)
    return [
        {
            **{key: one[key] for key in STATE},
            "logs": [
                {key: log.get(key) for key in LOG if key != "lineage" or one["leader"] == -1}
                for log in one["logs"]
            ],
        }
        for one in shown["partitions"]
    ]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_copy_has_the_leaders_and_the_logs_of_its_cluster(tmp_path: Path, scenario: str) -> None:
    copy = copied(tmp_path, "--simulate", scenario)
    here = held(tmp_path, "--simulate", scenario)
    assert here and held(tmp_path, "--simulate", str(copy)) == here


def test_a_copy_of_a_copy_is_the_same_but_for_its_name(tmp_path: Path) -> None:
    first = copied(tmp_path, "--simulate", "disk-failure")
    again = copied(tmp_path, "--simulate", str(first), name="again.yaml")
    texts = [file.read_text().splitlines()[1:] for file in (first, again)]
    assert texts[0] == texts[1]


def test_what_could_not_be_read_is_named_and_a_scan_of_the_disk_takes_its_place(tmp_path: Path) -> None:
    made = invoke(tmp_path, "ktriage", "simulate", "from", str(tmp_path / "blind.yaml"), *TAIL)
    unread = (
        "assumed: 1 log of broker 3 not read: it is down, and its disk is empty in the copy: do not start it"
    )
    assert unread in made.out
    scan = tmp_path / "broker-3.json"
    scan.write_text(invoke(tmp_path, "ktriage", "simulate", "disk", "stale-long-tail", "3").out)
    scanned = tmp_path / "scanned.yaml"
    made = invoke(tmp_path, "ktriage", "simulate", "from", str(scanned), "--evidence", str(scan), *TAIL)
    assert made.status == 0 and "not read" not in made.out
    assert yaml.safe_load(scanned.read_text())["topics"][0]["start"][0]["logs"]["3"]["end"] == 1300


def test_a_bundle_is_copied_as_its_cluster_is(tmp_path: Path) -> None:
    bundle = tmp_path / "incident.ktriage"
    invoke(tmp_path, "ktriage", "bundle", "--to", str(bundle), *TAIL)
    texts = [
        copied(tmp_path, *cluster, name=name).read_text()
        for name, cluster in (("a.yaml", TAIL), ("b.yaml", ("--bundle", str(bundle))))
    ]
    assert texts[0] == texts[1]


def test_a_cluster_without_a_controller_that_leads_is_not_copied(tmp_path: Path) -> None:
    to = tmp_path / "copy.yaml"
    made = invoke(tmp_path, "ktriage", "simulate", "from", str(to), "--simulate", "two-of-three-voters-lost")
    assert made.status == 1 and "no controller leads" in made.err and not to.exists()


@pytest.mark.parametrize(
    ("written", "instead", "expected"),
    [
        ("elr:\n    - 3", "elr: [4]", "start.0.elr: expected replicas of the partition: [1, 2, 3]"),
        ("leader_epoch: 4", "leader_epoch: 4, leader: 1", "start.0.leader: expected a member of the ISR []"),
        ("down: true", "down: true, failed_log_dirs: [0]", "failed_log_dirs below 1, and not all of them"),
        ("end: 1500", "end: 0", "epochs and offsets that ascend, below the end"),
    ],
)
def test_a_copy_that_was_edited_wrongly_is_refused_with_its_line(
    tmp_path: Path, written: str, instead: str, expected: str
) -> None:
    copy = copied(tmp_path, *TAIL)
    text = yaml.safe_dump(yaml.safe_load(copy.read_text()), sort_keys=False)
    data = text if written in text else copy.read_text()
    assert data.count(written) >= 1
    copy.write_text(data.replace(written, instead.replace(", ", "\n    ", 1) if data is text else instead, 1))
    shown = invoke(tmp_path, "ktriage", "status", "--simulate", str(copy))
    assert shown.status == 2 and expected in shown.err
    assert len(shown.err.splitlines()) == 1


def test_logs_of_a_running_broker_that_were_not_read_are_guessed_and_that_is_said(tmp_path: Path) -> None:
    to = tmp_path / "copy.yaml"
    made = invoke(tmp_path, "ktriage", "simulate", "from", str(to), "--simulate", "one-sided-cuts")
    assert (
        "1 log of broker 3 not read: as the leader's in the copy where the replica is in the ISR" in made.out
    )
    assert yaml.safe_load(to.read_text())["operator"]["cannot_reach"] == ["broker-3"]


def test_the_question_tells_how_the_plan_went_on_a_copy(planned: Caller, tmp_path: Path) -> None:
    asked = typing(tmp_path, command_line("ktriage", "apply", "plan.json", "--rehearse", *TAIL), "no")
    said = " ".join(asked.err.split())
    assert "not confirmed" in said
    assert (
        "Rehearsed: 1 of 1 elected as planned on a simulated copy of this cluster, where everything is allowed."
        in said
    )
    then = "0 of 1 have a leader then, and every replica order is put back."
    assert f"Rehearsed: If broker 2 drops out in the middle: {then}" in said
    assert "Rehearsed" not in typing(tmp_path, command_line("ktriage", "apply", "plan.json", *TAIL), "no").err


def test_nothing_is_sent_where_nobody_is_asked_and_the_rehearsal_fails(
    planned: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def without_the_chosen_broker(*given: Any, **named: Any) -> ClusterCopy:
        made = await read_copy(*given, **named)
        return made._replace(text=made.text.replace("{id: 2}", "{id: 2, down: true}"))

    monkeypatch.setattr(plan_rehearsal, "read_copy", without_the_chosen_broker)
    words = ("--rehearse", "--yes", "--reason", "night", "--no-rescue")
    refused = planned("ktriage", "apply", "plan.json", *words, *TAIL)
    assert refused.status == 1 and "the rehearsal did not end as planned, so nothing was sent" in refused.err
    assert "0 of 1 elected as planned" in refused.err
    assert "payments-0" in planned("ktriage", "status", *TAIL).out
    monkeypatch.undo()


def test_what_was_rehearsed_is_printed_where_nobody_is_asked(planned: Caller) -> None:
    words = ("--rehearse", "--yes", "--reason", "night", "--no-rescue")
    applied = planned("ktriage", "apply", "plan.json", *words, *TAIL)
    assert "Rehearsed: 1 of 1 elected as planned" in applied.err
    assert "Rehearsed: If broker 2 drops out in the middle:" in applied.err
