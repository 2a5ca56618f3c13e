"""A quorum that loses its leader by what is sent to it, and a clock that goes on while it is looked at."""

from __future__ import annotations

from typing import Any

from backends.base.errors import NoLeader
from backends.base.membership import ChangeAnswer, ChangeEnd, Membership


class Clock:
    """Seconds that pass when somebody waits for an answer."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Leaderless:
    """From its first change on nobody leads. Each look at it takes four seconds then, as a live one's does."""

    def __init__(self, membership: Membership, clock: Clock, *, lost: bool = False) -> None:
        self._membership = membership
        self._clock = clock
        self._lost = lost

    def __getattr__(self, name: str) -> Any:
        return getattr(self._membership, name)

    async def describe(self) -> Any:
        if not self._lost:
            return await self._membership.describe()
        self._clock.now += 4.0
        raise NoLeader("nobody leads")

    async def remove_voter(self, *_: Any) -> ChangeAnswer:
        return self._loses()

    async def upgrade_feature(self, *_: Any, **__: Any) -> ChangeAnswer:
        return self._loses()

    def _loses(self) -> ChangeAnswer:
        self._lost = True
        return ChangeAnswer(ChangeEnd.NOT_KNOWN, "REQUEST_TIMED_OUT")
