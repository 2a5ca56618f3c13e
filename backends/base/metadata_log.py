"""One reading of the cluster's metadata log, shared by all who need it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from backends.base.errors import BackendError, LogDiverged, NotAllowed, NotOffered
from backends.base.metadata_log_reader import MetadataLogReader, ReadProgress
from backends.base.time_limit import time_limit
from recovery.metadata_log.history import MetadataHistory
from recovery.model import Unknown, Why

if TYPE_CHECKING:
    from backends.base.membership import Membership
    from backends.base.protocol import Backend
    from backends.metadata_log.copied_log import CopiedMetadataLog

SECONDS = 5.0
"""The time limit of one reading; the next one continues where it ended."""

_NOT_READ = Unknown(Why.NOT_ANSWERED, "the metadata log was not read")
_NOT_IN_TIME = (
    f"the metadata log was not read within {SECONDS:g} s: no controller leads, or the log is long."
    " ktriage timeline reads for as long as it takes, and --metadata-dir a copy of the log"
)


class MetadataLogSource:
    """The active controller's log of one cluster, which grows with every reading: each caller reads on from there.

    ``unread``: why the newest reading did not come to the end of the log; None: it did. Until then ``history`` may
    lack the newest changes, a broker's restart among them.
    """

    def __init__(self) -> None:
        self.unread: Unknown | None = _NOT_READ
        self._log: MetadataLogReader | None = None
        self._reading = asyncio.Lock()

    @property
    def history(self) -> MetadataHistory | Unknown:
        """What was read so far, as evidence: nothing at or behind a record that Kafka refuses. A log of which
        nothing could be read is not known; it is no empty log.
        """
        if self._log is None or (self.unread is not None and not len(self._log.history)):
            return self.unread or _NOT_READ
        return self._log.history.evidence

    def or_copy(self, copy: CopiedMetadataLog | None) -> tuple[MetadataHistory | Unknown, bool]:
        """The log to judge by, and whether the cluster may have gone on since: what was read of the active
        controller's, or if its end was not reached, what goes further of that and the copy.
        """
        live = self.history
        if copy is not None and self.unread is not None:
            further = isinstance(live, Unknown) or copy.history.end_offset > live.end_offset
            return (copy.history if further else live), True
        return live, self.unread is not None

    async def read(self, backend: Backend) -> Unknown | None:
        """Reads to the end of the log, within :data:`SECONDS`. Returns why that was not possible; None: it was."""
        try:
            async with time_limit(backend, SECONDS):
                await self.read_on(backend)
        except TimeoutError:
            self.unread = Unknown(Why.NOT_ANSWERED, _NOT_IN_TIME)
        except BackendError:
            pass  # unread says why
        return self.unread

    async def read_on(self, backend: Backend, progress: ReadProgress | None = None) -> MetadataLogReader:
        """As :meth:`read`, for as long as it takes; the reader, whose ``history`` is complete then. It is another
        reader than before if the log had to be read from its beginning again. Raises BackendError.
        """
        try:
            async with self._reading:
                log = self._log = self._log or await _opened(backend)
                await log.read(progress=progress)
        except BackendError as error:
            self.unread = (
                Unknown(Why.NOT_ALLOWED, f"the metadata log needs {error.operation} on {error.resource}")
                if isinstance(error, NotAllowed)
                else Unknown(Why.NOT_ANSWERED, str(error))
            )
            if type(error) in (BackendError, LogDiverged):
                self._log = None  # an older part of the log was deleted or changed meanwhile
            raise
        self.unread = None
        return log


async def _opened(backend: Backend) -> MetadataLogReader:
    membership: Membership | None = getattr(backend, "membership", None)
    if membership is None:
        raise NotOffered("the cluster has no quorum that could be asked")
    await membership.open()
    return await membership.metadata_log()
