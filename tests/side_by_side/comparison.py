"""Runs a script in the simulator, then step by step on a real cluster, and compares the states."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import yaml

from backends.base.answers import Outcome
from backends.base.protocol import Backend
from backends.base.transactions import Marker as MarkerToWrite
from console.jobs.consumers.hanging_transactions import read_transactions
from recovery.model import TopicPartition, Unknown
from recovery.ranking import Ranking
from tests.contract.backend_requests import MemoryRecorder, StopFlag, choices
from tests.side_by_side.both_clusters import MIN_ISR, PartitionSnapshot, Side, SimulatedSide, States
from tests.side_by_side.script import Describe, Marker, Script, Step, Strict, Topic, Transaction, Transactions

OLDER_REFUSED = {"producer": "INVALID_PRODUCER_EPOCH", "coordinator": "TRANSACTION_COORDINATOR_FENCED"}
DIFFERENCES = Path(__file__).parent / "differences.yaml"


class Difference(Strict):
    """One value of real Kafka that the simulator does not have, in a step counted from 1, and why."""

    script: str
    step: int
    partition: str
    field: str
    real: int | tuple[int, ...]
    reason: str


class ComparedStep(NamedTuple):
    """One step, and the simulator's states after it."""

    number: int
    step: Step
    expected: States


class KnownRace(Strict):
    """A partition that does not always reach the same state on real Kafka in that step."""

    script: str
    step: int
    partition: str
    reason: str


class DifferencesTable(Strict):
    """All known differences."""

    differences: tuple[Difference, ...]
    races: tuple[KnownRace, ...]


def read_differences() -> DifferencesTable:
    return DifferencesTable.model_validate(yaml.safe_load(DIFFERENCES.read_text(encoding="utf-8")))


async def do(side: Side, step: Step, expected: States) -> None:
    """Runs one step on one side; ``expected`` are the states after it, empty while unknown."""
    if step.elect is not None or step.designate is not None:
        await _elect(side, step)
        return
    if step.transactions is not None or step.marker is not None:
        await _compare_transactions(side, step)
        return
    _brokers(side, step, expected)
    _configure(side, step)
    if step.describe is not None:
        _compare_described(side, step.describe)
    elif step.produce is not None and step.produce.refused:
        assert side.is_refused(step.produce.topic, step.produce.partition), step
    elif step.produce is not None and step.produce.at is not None:
        side.produce_at(step.produce.at, step.produce.topic, step.produce.partition, step.produce.records)
    elif step.produce is not None:
        side.produce(step.produce.topic, step.produce.records, step.produce.partition, step.produce.acks)
    elif step.reassign is not None:
        side.reassign(step.reassign.topic, step.reassign.partition, step.reassign.replicas)
    elif step.delete_records is not None:
        where = step.delete_records
        side.delete_records(where.topic, where.before, where.partition)
    elif step.transact is not None:
        tp = TopicPartition(step.transact.topic, step.transact.partition)
        side.transact(step.transact.id, tp, step.transact.records)
    elif step.end_transaction is not None:
        side.end_transaction(step.end_transaction.id, commit=step.end_transaction.outcome == "commit")


def _brokers(side: Side, step: Step, expected: States) -> None:
    """Steps on brokers and their disks."""
    for name in ("kill", "shut_down", "start"):
        given = getattr(step, name)
        if given is not None:
            getattr(side, name)(*given)
    for broker in step.pause or ():
        side.pause(broker)
    for broker in step.resume or ():
        side.resume(broker)
    for broker in step.cut_off or ():
        side.cut_off(broker)
    if step.mend:
        side.mend()
    elif step.power_off is not None:
        side.power_off(step.power_off, expected)
    elif step.flush is not None:
        side.flush()
    elif step.break_disk is not None:
        side.break_log_dir(step.break_disk.broker, step.break_disk.index)
    elif step.replace_disk is not None:
        side.replace_disk(step.replace_disk.broker, step.replace_disk.index)


def _compare_described(side: Side, asked: Describe) -> None:
    found = {broker: side.described_min_isr(broker, asked.topic) for broker in asked.min_isr}
    assert found == asked.min_isr, f"{asked.topic}: {found}, not {asked.min_isr}"


def _configure(side: Side, step: Step) -> None:
    if step.broker_min_isr is not None:
        side.set_broker_min_isr(step.broker_min_isr.broker, step.broker_min_isr.value)
    elif step.make_again is not None:
        side.delete_topic(step.make_again.name)
        _create(side, step.make_again)
    if step.min_isr is not None:
        side.set_config(step.min_isr.topic, MIN_ISR, str(step.min_isr.value))
    elif step.config is not None:
        side.set_config(step.config.topic, step.config.name, step.config.value)
    elif step.elr is not None:
        side.set_elr(step.elr)


async def _elect(side: Side, step: Step) -> None:
    async with side.backend() as backend:
        if step.elect is not None:
            tp = TopicPartition(step.elect.topic, step.elect.partition)
            (found,) = await backend.elect(step.elect.kind == "preferred", [tp], MemoryRecorder())
            assert step.elect.held in (None, found.outcome is Outcome.ELECTED), found
        elif step.designate is not None:
            rows = await choices(backend, step.designate.topic, step.designate.leader)
            row = rows[step.designate.partition]
            (found,) = await backend.designate(
                [row], Ranking.LAST_RECORD, MemoryRecorder(), attempts=3, stop=StopFlag()
            )
            assert found.outcome is Outcome.ELECTED, found


async def _compare_transactions(side: Side, step: Step) -> None:
    """Both sides must come to what the script says, and answer a marker as it says."""
    async with side.backend() as backend:
        if step.transactions is not None:
            wanted = step.transactions

            async def shown() -> Transactions:
                return await _transactions_in(backend, TopicPartition(wanted.topic, wanted.partition))

            await side.until(shown, lambda found: found == wanted, str(wanted))
        elif step.marker is not None:
            await _write_marker(backend, step.marker)


async def _write_marker(backend: Backend, asked: Marker) -> None:
    tp = TopicPartition(asked.topic, asked.partition)
    found = await read_transactions(backend, [tp])
    (row,) = found.rows
    present = MarkerToWrite(tp, row.transaction.producer_id, row.transaction.epoch, asked.commit, 0)
    newer = present._replace(
        epoch=present.epoch + (asked.newer == "producer"),
        coordinator_epoch=int(asked.newer == "coordinator"),
    )
    writer, leader = backend.marker_writer(), found.partitions[tp].leader
    assert await writer.write(leader, [newer]) == {newer: None}
    if asked.newer is not None:
        (refused,) = (await writer.write(leader, [present])).values()
        assert OLDER_REFUSED[asked.newer] in str(refused), refused


async def _transactions_in(backend: Backend, tp: TopicPartition) -> Transactions:
    found = await read_transactions(backend, [tp])
    partition = found.partitions[tp]
    return Transactions(
        topic=tp.topic,
        partition=tp.partition,
        open=tuple(
            Transaction(
                ending=row.judgement.ending.name.lower(),
                certain=row.judgement.certain,
                start=row.transaction.start_offset,
            )
            for row in found.rows
            if not isinstance(row.judgement, Unknown)
        ),
        last_stable=partition.last_stable,
        high_watermark=partition.high_watermark,
    )


async def simulate(script: Script, side: SimulatedSide) -> list[ComparedStep]:
    """Runs the script in the simulator; checks each step's states against what the script ``shows``."""
    create(script, side)
    points = []
    for number, step in enumerate(script.steps, start=1):
        await do(side, step, {})
        points.append(ComparedStep(number, step, side.wait_settled(partitions(script))))
        problems = unexpected_states(points[-1])
        assert not problems, f"step {number}, {step}: {problems}"
    return points


def create(script: Script, side: Side) -> None:
    for topic in script.topics:
        _create(side, topic)


def _create(side: Side, topic: Topic) -> None:
    configs = {} if topic.min_isr is None else {MIN_ISR: str(topic.min_isr)}
    side.create_topic(topic.name, topic.replicas, configs)


def partitions(script: Script) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, number) for topic in script.topics for number in range(len(topic.replicas))
    ]


def unexpected_states(point: ComparedStep) -> list[str]:
    """Where a state differs from what the script says."""
    problems = []
    for name, shown in point.step.shows.items():
        state = point.expected[_partition(name)]
        for field in shown.model_fields_set:
            wanted = getattr(shown, field)
            if field == "ends":
                is_ = {broker: log.end for broker, log in state.logs.items() if log and broker in wanted}
            else:
                is_ = getattr(state, field)
            if is_ != wanted:
                problems.append(f"{name}: {field} is {is_}, not {wanted}")
    return problems


async def compare(name: str, script: Script, points: list[ComparedStep], side: Side) -> list[str]:
    """How ``side`` differs from the simulator, without known differences.

    Stops at the first step that differs, because later steps would only repeat it.
    """
    create(script, side)
    for point in points:
        await do(side, point.step, point.expected)
        wanted = _expected(name, point)
        found = side.wait_for(wanted)
        if found != wanted:
            return [f"step {point.number}, {point.step}: {line}" for line in difference_lines(wanted, found)]
    return []


def _expected(name: str, point: ComparedStep) -> States:
    """The expected states of the real side. Raises AssertionError for a listed difference that no longer exists."""
    known = read_differences()
    states = dict(point.expected)
    for race in known.races:
        if (race.script, race.step) == (name, point.number):
            del states[_partition(race.partition)]
    for row in known.differences:
        if (row.script, row.step) == (name, point.number):
            tp = _partition(row.partition)
            assert getattr(states[tp], row.field) != row.real, (
                f"out of date, the simulator does the same: {row}"
            )
            changed: Any = {row.field: row.real}
            states[tp] = states[tp]._replace(**changed)
    return states


def _partition(name: str) -> TopicPartition:
    topic, _, number = name.rpartition("-")
    return TopicPartition(topic, int(number))


def difference_lines(wanted: States, found: States) -> list[str]:
    """One line for each value that differs: ``simulated`` against ``real``."""
    return [
        f"{tp}: {field}: simulated {getattr(state, field)}, real {getattr(found[tp], field)}"
        for tp, state in wanted.items()
        for field in PartitionSnapshot._fields
        if getattr(state, field) != getattr(found[tp], field)
    ]
