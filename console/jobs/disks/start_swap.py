"""Starts, or continues, the replacement of the disk under the cursor in pane 5."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from console.app.base.key_desk import KeyDesk
from console.errors import NotDone
from recovery.disks.values import LogDirPlace
from recovery.model import TopicPartition

if TYPE_CHECKING:
    from console.jobs.disks.screen import SwapPicture

Choose = Callable[[Sequence[TopicPartition]], Awaitable[None]]
"""Puts offline partitions into the plan, and opens it."""


class StartSwap:
    """What was seen of a swap is kept for as long as the console is open: M continues it."""

    def __init__(self, desk: KeyDesk, choose: Choose) -> None:
        self._desk = desk
        self._choose = choose
        self._looks: dict[tuple[str, LogDirPlace], SwapPicture] = {}

    async def swap(self) -> None:
        """Raises NotDone if the cursor is on no log dir."""
        key, cluster_id = self._desk.table().cursor_key, self._desk.session.view.cluster_id
        if not isinstance(key, tuple) or not key[1]:
            raise NotDone("put the cursor on a log dir")
        place = LogDirPlace(key[0], key[1])
        from console.jobs.disks.screen import DiskSwapScreen  # noqa: PLC0415  # slow to import, seldom needed

        screen = DiskSwapScreen(self._desk.session, place, self._looks.get((cluster_id, place)))
        first = await self._desk.ask(screen)
        if screen.last is not None:
            self._looks[cluster_id, place] = screen.last
        if first:
            await self._choose(first)
