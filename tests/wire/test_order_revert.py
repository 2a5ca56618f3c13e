"""Orders that are put back while the answers that would tell so do not come, or are not understood."""

from __future__ import annotations

import asyncio

import pytest

from backends.base.answers import Outcome
from backends.live.codec.apis import Api
from backends.simulator.served.frames import Change
from recovery.ranking import Ranking
from tests.wire import response_faults
from tests.wire.response_faults import HIDDEN, served_backend

BROKERS = (1, 2, 4)


def from_the_second_on(change: Change) -> Change:
    """The reorder is answered, what puts it back is not."""
    written = 0

    async def later(api_key: int, frame: bytes) -> bytes | None:
        nonlocal written
        if api_key != Api.AlterPartitionReassignments:
            return frame
        written += 1
        return frame if written == 1 else await change(api_key, frame)

    return later


@pytest.mark.parametrize(
    "change", [response_faults.garbage, response_faults.resets], ids=["not understood", "cut off"]
)
async def test_an_order_that_is_seen_to_be_back_is_told_to_be(change: Change) -> None:
    """Each of those requests was carried out: nobody is sent to put back what is back."""
    async with served_backend(HIDDEN) as on:
        states = await on.offline()
        result = await on.survey(states)
        tampered = from_the_second_on(change)
        for broker in BROKERS:
            on.tamper(broker, tampered)
        rows = response_faults.designations(states, result, leader=2)
        notes = response_faults.MemoryRecorder()
        async with asyncio.timeout(response_faults.HANG_SECONDS):
            ended = await on.backend.designate(
                rows, Ranking.LAST_RECORD, notes, attempts=0, stop=response_faults.NeverStopped()
            )
        assert {(row.outcome, row.leader, row.reverted) for row in ended} == {(Outcome.ELECTED, 2, True)}
        for state in states:
            assert on.served.world.image.partitions[state.tp].replicas == state.replicas
        ends = [told for name, told in notes.entries if name == "revert" and "rows" not in told]
        assert len(ends) > 1
        assert all(not end["applied"] and end["unknown"] for end in ends[:-1])
        assert ends[-1]["applied"] and not ends[-1]["unknown"], "the journal has what was seen"
