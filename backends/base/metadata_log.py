"""The cluster's metadata log as a backend offers it, and one reading of it for all who need it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from backends.base.errors import BackendError
from recovery.metadata_log.history import MetadataHistory
from recovery.model import Unknown, Why

if TYPE_CHECKING:
    from backends.base.membership import Membership
    from backends.base.protocol import Backend

SECONDS = 5.0
"""A log is read for so long at a time; the next reading goes on from there."""

ReadProgress = Callable[[int, int], None]
"""Called with (next offset, high watermark) while the log is read."""


class MetadataLogReader(Protocol):
    """Reads what is committed, the oldest first. ``history`` grows with every reading."""

    @property
    def history(self) -> MetadataHistory: ...

    @property
    def snapshot_offset(self) -> int:
        """The offset at which the log continues after a snapshot; earlier changes are unknown. 0: the log is
        complete.
        """
        ...

    async def probe(self) -> None:
        """Asks for the log once and keeps nothing of it. Raises what :meth:`read` would raise."""
        ...

    async def read(self, *, wait: float = 0.0, progress: ReadProgress | None = None) -> int:
        """Reads everything committed so far and returns the number of new changes. If nothing is new, waits
        up to ``wait`` seconds for it. Raises BackendError; records read before the error stay in ``history``.
        """
        ...


class MetadataLogSource:
    """The active controller's log of one cluster, which grows with every reading: whoever needs it reads on."""

    def __init__(self) -> None:
        self._log: MetadataLogReader | None = None
        self._reading = asyncio.Lock()

    @property
    def history(self) -> MetadataHistory | Unknown:
        """What was read so far."""
        if self._log is None:
            return Unknown(Why.NOT_ANSWERED, "the metadata log was not read")
        return self._log.history

    async def read(self, backend: Backend) -> Unknown | None:
        """Reads to the end of the log. Returns why that was not possible; None: it was."""
        membership: Membership | None = getattr(backend, "membership", None)
        if membership is None:
            return Unknown(Why.NOT_OFFERED, "the cluster has no quorum that could be asked")
        try:
            async with asyncio.timeout(SECONDS), self._reading:
                if self._log is None:
                    await membership.open()
                    self._log = await membership.metadata_log()
                await self._log.read()
        except TimeoutError:
            return Unknown(Why.NOT_ANSWERED, f"the metadata log was not read within {SECONDS:g} s")
        except BackendError as error:
            return Unknown(Why.NOT_ANSWERED, str(error))
        return None
