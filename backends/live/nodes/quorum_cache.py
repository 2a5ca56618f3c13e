"""The newest description of the quorum, which tells the brokers that have the latest metadata."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from backends.base.errors import BackendError
from backends.live.errors import BrokerError, ConnectionProblem, as_unknown
from recovery.membership.quorum import Quorum
from recovery.model import Unknown, Why

FRESH_FOR = 2.0
"""Seconds for which a description is used to choose whom to ask."""
UNKNOWN_FOR = 15.0
"""The same where there was no description: to find that out takes its time."""
QUORUM_TIMEOUT = 4.0
"""Seconds for a description: a broker that cannot reach the controllers does not answer at all."""


class QuorumCache:
    """Keeps one answer of ``ask``; callers that need a new one at the same time share the request.

    ``ask`` describes the quorum; it may raise BackendError and may never answer.
    """

    def __init__(self, ask: Callable[[], Awaitable[Quorum]]) -> None:
        self._ask = ask
        self._newest: tuple[float, Quorum | Unknown] | None = None
        self._task: asyncio.Task[Quorum | Unknown] | None = None
        self._closed = False

    async def get(self, *, max_age: float = FRESH_FOR, unknown_for: float | None = None) -> Quorum | Unknown:
        """The quorum as it was at most ``max_age`` seconds ago; Unknown, with the reason, where it is not had.
        Nobody waits again for what was not had in the last ``unknown_for`` seconds: by default
        :data:`UNKNOWN_FOR`, and none where the newest is asked for.
        """
        if unknown_for is None:
            unknown_for = UNKNOWN_FOR if max_age > 0 else 0.0
        if self._newest is not None:
            age = asyncio.get_running_loop().time() - self._newest[0]
            if age <= (unknown_for if isinstance(self._newest[1], Unknown) else max_age):
                return self._newest[1]
        if self._task is None:
            self._task = asyncio.ensure_future(self._refresh())
        task = self._task
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled() and self._closed:
                raise BrokerError(ConnectionProblem.CLOSED, "the quorum", "closed here") from None
            raise

    def forget(self) -> None:
        """The next caller asks again."""
        self._newest = None

    def close(self) -> list[asyncio.Task[Quorum | Unknown]]:
        """Cancel a request that is under way; the caller awaits what is returned."""
        self._closed = True
        tasks = [] if self._task is None else [self._task]
        for task in tasks:
            task.cancel()
        return tasks

    async def _refresh(self) -> Quorum | Unknown:
        answer: Quorum | Unknown
        try:
            async with asyncio.timeout(QUORUM_TIMEOUT):
                answer = await self._ask()
        except TimeoutError:
            limit = f"within {QUORUM_TIMEOUT:g} s"
            detail = f"no broker described the quorum {limit}: can they reach a leading controller?"
            answer = Unknown(Why.NOT_ANSWERED, detail)
        except BackendError as error:
            answer = as_unknown(error)
        finally:
            self._task = None
        self._newest = (asyncio.get_running_loop().time(), answer)
        return answer


def up_to_date_brokers(quorum: Quorum | Unknown) -> frozenset[int] | None:
    """The brokers that have the latest metadata, as the quorum's leader sees them; None: not known."""
    return None if isinstance(quorum, Unknown) else quorum.up_to_date
