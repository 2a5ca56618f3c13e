"""What a consumer is given after a change stands first where it contradicts what was read here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

import pytest

from backends.base.answers import Partitions, SurveyResult
from backends.base.errors import BackendError
from backends.base.protocol import Backend
from console.jobs.elect.verify_plan import Verified
from console.reading.consumer_reading import (
    DISAGREES,
    ConsumerReading,
    consumer_lines,
    contradicted,
    offset_lines,
    offsets_as_consumer,
    read_back_as_consumer,
)
from recovery.consumer_sight import ConsumerSight, Expected, ReadThrough
from recovery.model import ReplicaLog, TopicPartition, Unknown, Why
from tests.unit.recovery.surveys import survey

STATE = survey({1: Unknown(Why.NOT_ASKED, "")}, leader=1, isr=(1,)).state
TP = STATE.tp
WHOLE = ConsumerSight(0, 90, 90, 10, ReadThrough(80, 90), ReadThrough(80, 90))


class Witness:
    client = "librdkafka 2.16"

    def __init__(self, sight: ConsumerSight | Unknown = WHOLE) -> None:
        self.sight = sight
        self.offsets: dict[str, Any] = {}
        self.starts: Mapping[TopicPartition, int] = {}

    async def read(
        self,
        partitions: Sequence[TopicPartition],
        _seconds: float,
        starts: Mapping[TopicPartition, int] = MappingProxyType({}),
    ) -> Mapping[TopicPartition, ConsumerSight | Unknown]:
        self.starts = starts
        return dict.fromkeys(partitions, self.sight)

    async def committed(self, groups: Mapping[str, Any], _seconds: float) -> Mapping[str, Any]:
        return {group: self.offsets[group] for group in groups}


class Cluster:
    """One partition whose leader is read as ``log``; ``witness`` None: a simulation."""

    def __init__(self, witness: Witness | None, log: ReplicaLog | Unknown) -> None:
        self._log = log
        self.consumer_witness = lambda: witness

    async def partitions(self, topics: Sequence[str]) -> Partitions:
        if isinstance(self._log, Unknown) and self._log.why is Why.FAILED:
            raise BackendError("nobody answers")
        return Partitions((STATE,) if TP.topic in topics else (STATE._replace(topic=topics[0]),))

    async def survey(self, _request: object, _progress: object) -> SurveyResult:
        return SurveyResult((survey({1: self._log}, leader=1, isr=(1,)),), ())


def on(witness: Witness | None, log: ReplicaLog | Unknown) -> Backend:
    return cast("Backend", Cluster(witness, log))


LOG = ReplicaLog(4, 90, log_start_offset=0, high_watermark=90)


async def test_a_contradiction_is_the_first_line_and_counts_as_not_verified() -> None:
    witness = Witness(
        WHOLE._replace(high=50, stable=50, plain=ReadThrough(40, 50), committed=ReadThrough(40, 50))
    )
    reading = await read_back_as_consumer(on(witness, LOG), {TP: Expected()})
    assert reading is not None and contradicted(reading)
    first, second, *_ = consumer_lines(reading, 20)
    assert first == DISAGREES and str(TP) in second and "up to 50" in second
    verified = Verified((), cast("Any", None), cast("Any", None), consumer=reading)
    assert not verified.complete and reading.in_short.startswith(f"A consumer disagrees: {TP}: ")


async def test_what_was_written_is_read_from_its_first_record_on() -> None:
    witness = Witness(WHOLE._replace(start=70, plain=ReadThrough(20, 90)))
    reading = await read_back_as_consumer(on(witness, LOG), {TP: Expected(70, 25)})
    assert witness.starts == {TP: 70}
    assert reading is not None
    assert [text for _, text in reading.contradictions] == [
        "a consumer is given 20 records from offset 70 on, and 25 were written there"
    ]


async def test_in_a_simulation_nobody_is_asked() -> None:
    assert await read_back_as_consumer(on(None, LOG), {TP: Expected()}) is None
    assert await offsets_as_consumer(on(None, LOG), {"billing": {TP: 5}}) is None
    assert await read_back_as_consumer(on(Witness(), LOG), {}) is None, "nothing was changed"


@pytest.mark.parametrize(
    "log", [Unknown(Why.NOT_ANSWERED, "no answer"), Unknown(Why.FAILED, "answer not understood")]
)
async def test_where_the_leader_was_not_read_nothing_contradicts(log: Unknown) -> None:
    reading = await read_back_as_consumer(on(Witness(), log), {TP: Expected()})
    assert isinstance(reading, ConsumerReading) and not contradicted(reading)
    (sight,) = reading.sights.values()
    assert isinstance(sight, Unknown) and sight.why is Why.NOT_ASKED


async def test_a_group_that_would_go_on_elsewhere_is_told_and_one_that_is_not_read_is_no_contradiction() -> (
    None
):
    witness = Witness()
    denied = Unknown(Why.NOT_ALLOWED, "no DESCRIBE")
    witness.offsets = {"billing": {TP: 7}, "audit": {TP: None}, "hidden": denied, "right": {TP: 5}}
    reading = await offsets_as_consumer(on(witness, LOG), {group: {TP: 5} for group in witness.offsets})
    assert reading is not None and reading.contradictions == (
        ("billing", f"its consumers go on at 7 on {TP}, and 5 was read here"),
        ("audit", f"its consumers go on nowhere on {TP}, and 5 was read here"),
    )
    lines = list(offset_lines(reading, 20))
    assert lines[0] == DISAGREES and "the offsets of 3 of 4 groups read" in lines[3]
    assert lines[-1].strip() == f"hidden: not read: {denied}"
