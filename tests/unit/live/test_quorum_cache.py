"""Where no controller leads, a request is held until there is a leader: nobody waits for that twice."""

from __future__ import annotations

import asyncio

from backends.live.nodes.quorum_cache import FRESH_FOR, QuorumCache
from recovery.membership.quorum import Quorum
from recovery.model import Unknown
from tests.unit.live.virtual_time import VirtualTimeLoop


def times_asked(pauses: list[float], **wanted: float) -> int:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(_asks(pauses, **wanted))


async def _asks(pauses: list[float], **wanted: float) -> int:
    """How often the quorum is asked where it is wanted after each of these pauses, and nobody describes it."""
    asked = 0

    async def held() -> Quorum:
        nonlocal asked
        asked += 1
        await asyncio.Event().wait()
        raise AssertionError

    cache = QuorumCache(held)
    for pause in pauses:
        await asyncio.sleep(pause)
        assert isinstance(await cache.get(**wanted), Unknown)
    return asked


def test_what_nobody_described_a_moment_ago_is_not_waited_for_once_more() -> None:
    assert times_asked([0, 0.1], max_age=0.0, unknown_for=FRESH_FOR) == 1


def test_it_is_asked_for_again_later_and_at_once_by_who_waits_for_a_leader() -> None:
    assert times_asked([0, FRESH_FOR + 1], max_age=0.0, unknown_for=FRESH_FOR) == 2
    assert times_asked([0, 0.1], max_age=0.0) == 2
