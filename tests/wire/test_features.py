"""Feature levels of a served cluster, raised through the live adapter."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from backends.base.errors import NotAllowed
from backends.base.membership import KRAFT_VERSION, ChangeAnswer, ChangeEnd
from backends.live.adapter import LiveBackend
from backends.live.client.addresses import parse_addresses
from backends.live.client.settings import ClientSettings
from backends.simulator.scenario.files import read
from backends.simulator.served.handlers.features import finalised
from backends.simulator.served.served_cluster import ServedCluster, ServedClusterOptions

STATIC = read(str(Path(__file__).parent / "scenarios" / "static-voters.yaml"))
ELR = "eligible.leader.replicas.version"


class Written:
    """A journal in memory."""

    def before(self, action: str, detail: Mapping[str, object]) -> str:
        return f"{action} {detail}"

    def after(self, entry: str, result: Mapping[str, object]) -> None:
        pass


async def asked(served: ServedCluster, feature: str, level: int, *, dry_run: bool = False) -> ChangeAnswer:
    backend = LiveBackend(ClientSettings(parse_addresses(served.bootstrap)))
    try:
        await backend.open()
        return await backend.membership.upgrade_feature(feature, level, Written(), dry_run=dry_run)
    finally:
        await backend.close()


async def test_the_elr_is_switched_on() -> None:
    async with ServedCluster(STATIC, ServedClusterOptions(speed=5.0)) as served:
        assert (await asked(served, ELR, 1)).ended is ChangeEnd.DONE
        assert finalised(served.world)[ELR] == 1


@pytest.mark.parametrize(
    ("feature", "level", "words"),
    [
        ("nope", 1, "does not support this feature"),
        ("metadata.version", 31, "only supports versions 7-30"),
        ("metadata.version", 29, "Can't downgrade"),
        (KRAFT_VERSION, 2, "only supports versions 0-1"),
    ],
)
async def test_a_level_that_cannot_be_is_refused_and_changes_nothing(
    feature: str, level: int, words: str
) -> None:
    async with ServedCluster(STATIC, ServedClusterOptions(speed=5.0)) as served:
        before = finalised(served.world)
        answer = await asked(served, feature, level)
        assert answer.ended is ChangeEnd.REFUSED
        assert words in str(answer)
        assert finalised(served.world) == before


async def test_without_alter_on_the_cluster_it_is_refused() -> None:
    async with ServedCluster(STATIC, ServedClusterOptions(speed=5.0)) as served:
        served.world.context.denied.permissions = frozenset({"ALTER cluster"})
        with pytest.raises(NotAllowed):
            await asked(served, KRAFT_VERSION, 1)
        assert finalised(served.world)[KRAFT_VERSION] == 0
