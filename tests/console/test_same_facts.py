"""Random incidents: panes, text, JSON and Markdown say the same of partitions, replicas, brokers and plans."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
import yaml

from console.jobs.elect.plan_table import PLANNED, PlannedRow
from console.output.report_markdown import markdown_text
from console.plan_files import read
from console.reading.broker_report import BROKER, BrokerRow
from console.reading.partition_report import fields_of
from console.reading.partition_row import PartitionRow
from console.reading.partitions_pane import PartitionsPane
from console.reading.replica_report import REPLICA, ReplicaRow
from recovery.model import TopicPartition
from recovery.plan.values import Plan
from recovery.wording.quantity_text import human_bytes, ids, offset
from tests.console.robot import console
from tests.unit.cli.command_process import Caller
from widgets.fields import Field

SEEDS = (2, 4, 5, 6, 7)
_EMPTY = {None: "", (): "-"}


class Incident(NamedTuple):
    """A scenario, and what the commands said of it at the same moment."""

    file: str
    replicas: Mapping[str, Any]
    status: Mapping[str, Any]
    text: str
    handed_over: str
    planned: Sequence[Mapping[str, Any]] = ()
    plan: Plan | None = None


def scenario(seed: int) -> dict[str, object]:
    """Two to four brokers, of which some die, lose power or a disk, and some of them come back."""
    random = Random(seed)  # seeded: the same incident again
    count = random.choice((3, 3, 4))
    faults: list[dict[str, object]] = []
    at = 10
    for _ in range(random.randint(3, 6)):
        node = f"broker-{random.randint(1, count)}"
        kind = random.choice(("kill", "kill", "power-off", "start", "start", "break-disk"))
        where = {"node": node, "log_dir": 1} if kind == "break-disk" else {"nodes": [node]}
        faults.append({"at": at, "do": kind, **where})
        at += random.randint(3, 12)
    faults.append({"at": at, "do": "kill", "nodes": [f"broker-{random.randint(1, count)}"]})
    chains = [random.sample(range(1, count + 1), random.choice((1, 2, 3))) for _ in range(3)]
    return {
        "title": f"Incident {seed}",
        "about": "Drawn at random.",
        "cluster": {
            "brokers": {"count": count, "log_dirs": 2},
            "min_isr": random.choice((1, 2)),
            "config": {"broker.session.timeout.ms": 3000, "auto.leader.rebalance.enable": False},
        },
        "topics": [
            {"name": f"t{number}", "partitions": 3, "replicas": [chain], "records": 100}
            for number, chain in enumerate(chains)
        ],
        "workload": [{"topic": "t0", "acks": 1, "records": 5, "every": 0.5, "stop": at}],
        "faults": faults,
        "operator": {"at": at + 20},
        "expect": {"offline": 0},
    }


@pytest.fixture(params=[*SEEDS[:2], *(pytest.param(seed, marks=pytest.mark.long) for seed in SEEDS[2:])])
def incident(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, home: Path) -> Incident:
    file = home / "incident.yaml"
    file.write_text(yaml.safe_dump(scenario(request.param)))
    call = Caller(monkeypatch, home)

    def said(*words: str) -> str:
        ended = call("ktriage", *words, "--simulate", str(file))
        assert ended.status in (0, 1), ended
        return ended.out

    def told(*words: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = json.loads(said(*words, "--output", "json"))
        return found

    every = ("replicas", "--rows", "0")
    text = [said("status", "--rows", "0"), said(*every)]
    handed_over = " ".join(said("handover").replace("\\", "").split())
    said("plan", "plan.json", "--strategy", "aggressive", "--rows", "0")
    if not (home / "plan.json").exists():  # nobody can be elected
        return Incident(str(file), told(*every), told("status"), "\n".join(text), handed_over)
    plan = read(home / "plan.json")
    assert isinstance(plan, Plan)
    text.append(said("review", "plan.json", "--rows", "0"))
    text.append(said("review", "plan.json", "--output", "markdown").replace("\\", ""))
    planned = told("review", "plan.json")["partitions"]
    return Incident(str(file), told(*every), told("status"), "\n".join(text), handed_over, planned, plan)


def cells(fields: Sequence[Field[Any]], row: Any) -> dict[str, str]:
    """What is printed of the row."""
    return {field.id: field.cell(row) for field in fields if field.printed}


def shown(fields: Sequence[Field[Any]], row: Any) -> str:
    """A line of a text table, as words."""
    return " ".join(" ".join(field.cell(row) for field in fields if field.printed).split())


async def test_the_first_words_are_the_same_everywhere(incident: Incident) -> None:
    """The line above every pane, what pane 1 says to do first, ``status`` and the hand-over."""
    health, *told = incident.text.partition("\ncluster ")[0].splitlines()
    steps = [line for line in told if not line.startswith("  ")]
    async with console(incident.file, size=(200, 50)) as robot:
        await robot.looked()
        await robot.sees(health)
        lines = [" ".join(line.split()) for line in robot.screen.splitlines()]
        assert health in lines, robot.screen
        pane = robot.desk.pane_of("1")
        assert isinstance(pane, PartitionsPane)
        shown = pane._advised(len(pane._all_steps))  # all of it, where the screen has room for two
        heads = [step.head for step in shown]
        assert heads[: len(steps)] == steps[: len(heads)]
        first = next(iter(heads), "")
        assert " ".join(first.split())[:60] in " ".join(robot.screen.split())
        assert health in incident.handed_over or not first
        assert first in incident.handed_over
        offline = incident.status["counts"]["offline"]
        await robot.sees(f"{offline:,} offline, ")
        # What pane 1 warns of, panes 3 and 8 warn of too.
        held = {broker for step in pane._all_steps for broker in step.advice.holds_back}  # as above
        await robot.opens("8")
        for row in robot.desk.table.shown_rows:
            assert isinstance(row, BrokerRow)
            assert row.not_first == (row.id in held)
        await robot.opens("3")
        for broker in held:
            assert f"Broker {broker} back: a leader" not in robot.screen


async def test_no_two_forms_state_different_facts(incident: Incident) -> None:
    lines = {" ".join(line.split()) for line in incident.text.splitlines()}
    partitions = {(one["topic"], one["partition"]): one for one in incident.replicas["partitions"]}
    brokers = {one["id"]: one for one in incident.status["cluster"]["brokers"]}
    in_trouble = incident.text.partition("BROKERS IN TROUBLE")[2].partition("QUORUM")[0]
    async with console(incident.file, size=(160, 50)) as robot:
        await robot.opens("8")
        for broker in brokers:
            await robot.puts_the_cursor_on(broker)
            row = robot.desk.table.cursor_row
            assert isinstance(row, BrokerRow)
            assert (row.rack, row.fenced) == (brokers[broker]["rack"], brokers[broker]["fenced"])
            assert (shown(BROKER, row) in lines) == bool(row.fenced or row.problem or row.failed_dirs), row
            assert bool(in_trouble) or not (row.fenced or row.problem)
        await robot.opens("1")
        for tp in [state.tp for state in robot.session.view.troubled]:
            await robot.opens("1")
            await robot.puts_the_cursor_on(tp)
            partition = robot.desk.table.cursor_row
            assert isinstance(partition, PartitionRow)
            told = partitions[tp.topic, tp.partition]
            reading = robot.session.view.reading
            assert reading is not None
            _partition(fields_of(reading), partition, told, lines)
            await robot.opens("2")
            for log in told["logs"]:
                await robot.puts_the_cursor_on(log["broker"])
                # Sizes and log dirs are asked for once the cursor rests.
                await robot.until(lambda: shown(REPLICA, robot.desk.table.cursor_row) in lines, "its size")
                replica = robot.desk.table.cursor_row
                assert isinstance(replica, ReplicaRow)
                _replica(replica, log, lines)
    for planned in incident.planned:
        assert incident.plan is not None
        _planned(incident.plan, planned, lines)


def _partition(
    fields: Sequence[Field[PartitionRow]], row: PartitionRow, told: Mapping[str, Any], lines: set[str]
) -> None:
    printed = cells(fields, row)
    assert shown(fields, row) in lines
    for name in ("isr", "replicas", "elr", "lastKnownElr"):
        assert printed[name] == ("off" if told[name] is None else ids(told[name]))
    assert printed["leader"] == ("none" if told["leader"] < 0 else str(told["leader"]))
    assert (printed["leaderEpoch"], printed["minIsr"]) == (str(told["leaderEpoch"]), str(told["minIsr"]))


def _replica(row: ReplicaRow, told: Mapping[str, Any], lines: set[str]) -> None:
    printed = cells(REPLICA, row)
    assert shown(REPLICA, row) in lines
    assert printed["standing"] == told["standing"]
    assert "+".join(told["in"]) in printed["in"] or printed["in"] == "-"
    if "unknown" in told:
        assert printed["notLearnt"] == f"{told['unknown']}: {told['detail']}"
        assert printed["logEndOffset"] == printed["lastEpoch"] == printed["size"] == ""
        return
    for name in ("logEndOffset", "logStartOffset", "highWatermark"):
        assert printed[name] == offset(told[name])
    assert (printed["lastEpoch"], printed["size"]) == (_epoch(told), human_bytes(told["size"]))
    assert (printed["leaderEpoch"], printed["logDir"]) == (str(told["leaderEpoch"]), told["logDir"] or "")


def _epoch(told: Mapping[str, Any]) -> str:
    epoch = told["lastEpoch"]
    return "?" if epoch is None else "none" if epoch < 0 else str(epoch)


def _planned(plan: Plan, told: Mapping[str, Any], lines: set[str]) -> None:
    row = plan.row(TopicPartition(told["topic"], told["partition"]))
    assert row is not None
    # A simulated cluster elects the designated leader or nobody.
    planned = PlannedRow(row, native=True)
    assert shown(PLANNED, planned) in lines
    printed = {field.id: field.cell(planned) for field in PLANNED}
    assert printed["designatedLeader"] == str(told["designatedLeader"])
    assert told["loss"]["atMost"] != 0 or printed["loss"] == "nothing"
    assert f"{told['loss']['atLeast']:,}" in printed["loss"] or not told["loss"]["atLeast"]
    assert printed["marks"] == ", ".join(told["marks"])
    if told["loss"]["atMost"] != 0:
        wanted = [markdown_text(printed[name]).replace("\\", "") for name in ("name", "designatedLeader")]
        assert any(line.startswith(f"| {' | '.join(wanted)} |") and printed["loss"] in line for line in lines)
