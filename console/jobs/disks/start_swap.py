"""Starts, or continues, the replacement of the disk under the cursor in pane 5."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import TYPE_CHECKING

from console.app.base.screen_calls import Ask
from console.app.session.session import Session
from console.errors import NotDone
from recovery.disks.values import LogDirPlace
from recovery.model import TopicPartition

if TYPE_CHECKING:
    from console.jobs.disks.screen import SwapPicture

Choose = Callable[[Sequence[TopicPartition]], Awaitable[None]]
"""Puts offline partitions into the plan, and opens it."""


class StartSwap:
    """What was seen of a swap is kept for as long as the console is open: M continues it."""

    def __init__(
        self, session: Session, ask: Ask, *, cursor_key: Callable[[], Hashable | None], choose: Choose
    ) -> None:
        self._session = session
        self._ask = ask
        self._cursor_key = cursor_key
        self._choose = choose
        self._looks: dict[tuple[str, LogDirPlace], SwapPicture] = {}

    async def swap(self) -> None:
        """Raises NotDone if the cursor is on no log dir."""
        key, cluster_id = self._cursor_key(), self._session.view.cluster_id
        if not isinstance(key, tuple) or not key[1]:
            raise NotDone("put the cursor on a log dir")
        place = LogDirPlace(key[0], key[1])
        from console.jobs.disks.screen import DiskSwapScreen  # noqa: PLC0415  # slow to import, seldom needed

        screen = DiskSwapScreen(self._session, place, self._looks.get((cluster_id, place)))
        first = await self._ask(screen)
        if screen.last is not None:
            self._looks[cluster_id, place] = screen.last
        if first:
            await self._choose(first)
