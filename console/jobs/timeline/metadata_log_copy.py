"""Copies a running cluster's metadata log into a directory, and goes on copying it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from backends.base.errors import BackendError, LogDiverged, NotAllowed, NotOffered
from backends.base.metadata_log_reader import LogBytes, LogSnapshot, MetadataLogBytes, ReadProgress
from backends.base.protocol import Stop
from backends.log_segments.segment_reader import SegmentReader
from backends.log_segments.segment_source import SegmentBytes
from console.errors import NotDone
from console.jobs.timeline.metadata_log_files import MetadataLogFiles

FOLLOW_WAIT = 2.0
"""Seconds that the controller holds a question when nothing is new."""
IDLE_SECONDS = 0.2
"""Between two answers that have nothing new to copy: what the leader has is not committed yet."""
RETRY_SECONDS = 1.0
"""Between two attempts while the cluster cannot be asked."""

Say = Callable[[str], None]
"""Called with one line for a person."""


class CopiedRange(NamedTuple):
    """What one run has copied: ``offsets`` of the log up to before ``next_offset``, after ``snapshots`` if the
    cluster no longer had what comes before. Everything before ``high_watermark`` was committed.
    """

    offsets: int
    snapshots: int
    next_offset: int
    high_watermark: int


class MetadataLogCopier:
    """Fills ``files`` from ``source``. ``pause`` waits so many seconds."""

    def __init__(
        self,
        source: MetadataLogBytes,
        files: MetadataLogFiles,
        say: Say,
        pause: Callable[[float], Awaitable[None]],
    ) -> None:
        self._source = source
        self._files = files
        self._say = say
        self._pause = pause
        self._offsets = self._snapshots = 0
        self._high_watermark = -1
        self._compares = files.last

    @property
    def copied(self) -> CopiedRange:
        return CopiedRange(self._offsets, self._snapshots, self._files.next_offset, self._high_watermark)

    async def to_end(self, progress: ReadProgress) -> None:
        """Copies everything that is committed now. Raises BackendError, NotDone."""
        while await self._step(0.0):
            progress(self._files.next_offset, self._high_watermark)
        self._files.sync()

    async def follow(self, stop: Stop) -> None:
        """Copies what is committed from now on, until ``stop``. A cluster that cannot be asked is reported once and
        asked again, whichever controller leads then. Raises NotAllowed, NotOffered, NotDone.
        """
        problem = ""
        while not stop:
            try:
                took = await self._step(FOLLOW_WAIT)
            except (NotAllowed, NotOffered):
                raise
            except BackendError as error:
                if not problem:
                    problem = str(error)
                    self._say(f"the metadata log cannot be read: {problem}; it is tried again")
                await self._pause(RETRY_SECONDS)
                continue
            if problem:
                problem = ""
                self._say(
                    f"the metadata log can be read again; the copy goes to offset {self._files.next_offset:,}"
                )
            if not took:
                await self._pause(IDLE_SECONDS)

    async def _step(self, wait: float) -> bool:
        """One answer of the controller; whether there was something to copy in it."""
        files = self._files
        try:
            await self._compare()
            found = await self._source.read(files.next_offset, files.epoch, wait=wait)
        except LogDiverged:
            raise NotDone(
                f"{files.path}: before offset {files.next_offset:,} the cluster's metadata log is another one than"
                " the copy, by its epochs, offsets or checksums; nothing was written. Give a new directory"
            ) from None
        if isinstance(found, LogSnapshot):
            self._take_snapshot(found)
            return True
        return self._take(found) > 0

    async def _compare(self) -> None:
        """Once, where an earlier run left a copy: its last batch must hold what the cluster's has. An epoch and an
        offset alone another cluster with the same id may have too. Raises LogDiverged.
        """
        last = self._compares
        if last is None:
            return
        found = await self._source.read(last.base_offset, last.leader_epoch)
        self._compares = None
        if isinstance(found, LogSnapshot) and found.end_offset > self._files.next_offset:
            return  # the copy begins anew behind it
        if isinstance(found, LogSnapshot):
            self._say(
                f"the cluster no longer has the copy's last batch, at offset {last.base_offset:,}: that the copy is"
                " of the same log was compared by offset and epoch only"
            )
            return
        headers = (header for header, _ in SegmentReader(SegmentBytes(found.data)))
        now = next((header for header in headers if header.next_offset > last.base_offset), None)
        if now is None or (now.base_offset, now.next_offset, now.leader_epoch, now.crc) != (
            last.base_offset,
            last.next_offset,
            last.leader_epoch,
            last.crc,
        ):
            raise LogDiverged(last.base_offset)

    def _take(self, found: LogBytes) -> int:
        took = self._files.take(found)
        self._high_watermark = found.high_watermark
        self._offsets += took
        return took

    def _take_snapshot(self, found: LogSnapshot) -> None:
        before = self._files.next_offset
        away = self._files.begin_with(found)
        self._snapshots += 1
        if away is None:
            self._say(
                f"the cluster's log begins after offset {found.end_offset - 1:,}: the copy begins with the snapshot"
                f" {self._files.snapshot}"
            )
        else:
            self._say(
                f"the cluster no longer has offsets {before:,} to {found.end_offset - 1:,}: the copy goes on with"
                f" the snapshot {self._files.snapshot}, and what it had before is in {away}"
            )
