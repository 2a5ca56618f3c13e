"""What a recovery asks of each broker no more than once before it chooses leaders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable

from backends.live.codec.apis import Api
from console.reading.partition_selection import Selection, Which
from console.reading.read_cluster import Depths, read_cluster, read_selected
from tests.wire.response_faults import HIDDEN, served_backend


async def test_a_broker_lists_its_log_dirs_once_for_the_partitions_the_health_and_the_sizes() -> None:
    """A list of thousands of replicas: the survey of the logs waits behind each one."""
    asked: Counter[int] = Counter()

    def counting(broker: int) -> Callable[[int, bytes], Awaitable[bytes | None]]:
        async def counts(api_key: int, frame: bytes) -> bytes | None:
            asked[broker] += api_key == Api.DescribeLogDirs
            return frame

        return counts

    async with served_backend(HIDDEN) as on:
        for broker in (1, 2, 4):
            on.tamper(broker, counting(broker))
        info = await on.backend.cluster()
        reading = await read_selected(on.backend, info, Selection(which=Which.OFFLINE), Depths(), health=True)
    assert reading.surveys and reading.health is not None
    assert set(reading.log_dirs) >= {1, 2, 4}
    assert asked == {1: 1, 2: 1, 4: 1}


async def test_configurations_that_were_asked_for_already_are_not_asked_for_after_the_survey() -> None:
    """Each question after the survey is another round trip that somebody far away waits for."""
    asked: list[int] = []

    async def notes(api_key: int, frame: bytes) -> bytes | None:
        asked.append(api_key)
        return frame

    async with served_backend(HIDDEN) as on:
        for broker in (1, 2, 4):
            on.tamper(broker, notes)
        reading = await read_cluster(on.backend, 30.0, 0.0)
    assert reading.verdicts, "partitions without a leader were judged"
    assert Api.DescribeConfigs in asked
    after_the_survey = asked[len(asked) - asked[::-1].index(Api.Fetch) :]
    assert Api.DescribeConfigs not in after_the_survey
