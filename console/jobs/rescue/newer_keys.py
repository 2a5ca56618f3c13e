"""The keys that have a record in a partition's present log: an old value of theirs would hide a newer one."""

from __future__ import annotations

from collections.abc import Collection

from backends.base.answers import Depth, LogPosition, SurveyRequest
from backends.base.errors import BackendError
from backends.base.protocol import Backend, Progress
from backends.log_segments.segment_reader import SegmentReader
from backends.log_segments.segment_source import SegmentBytes
from console.errors import InputError
from console.rescue_files.record_batches import CannotUnpack, MalformedRecord, records_of
from console.rescue_files.rescued_branch import Ending, marker_ending
from console.rescue_files.rescued_segment import RescuedBatch
from console.rescue_files.restore_selection import key_digest
from recovery.model import PartitionState, Unknown
from recovery.rescue_branches import BranchPart, RescueBranch

_SECONDS = 30.0
_READ_BYTES = 8 << 20


async def newer_keys(
    cluster: Backend,
    state: PartitionState,
    branch: RescueBranch,
    own_producer: int | None,
    progress: Progress | None,
) -> Collection[bytes]:
    """Digests of the keys with a record that is newer than those of ``branch``: behind the place where the logs
    part, or anywhere in the log for what was before its start. Records of aborted transactions and those of
    ``own_producer`` do not count. Raises InputError, BackendError.
    """
    request = SurveyRequest((state,), _SECONDS, Depth.LAST, log_dirs=False, leaders_only=True)
    (survey,) = (await cluster.survey(request)).surveys
    log = survey.log(state.leader)
    if log is None or log.log_start_offset < 0:
        raise InputError(f"{state.tp}: where the log of its leader starts is not known; nothing was sent")
    at = log.log_start_offset if branch.part is BranchPart.HEAD else max(branch.start, log.log_start_offset)
    keys = _Keys(own_producer)
    while at < log.log_end_offset:
        if progress is not None:
            progress(f"reading the newer keys of {state.tp}; offsets", at, log.log_end_offset)
        position = LogPosition(state.tp, at)
        found = (await cluster.read_batches(state.leader, [position], _READ_BYTES))[state.tp]
        if isinstance(found, Unknown):
            raise BackendError(f"{state.tp}: its newer keys cannot be read: {found}")
        at = keys.take(found.data, at)
    return keys.all()


class _Keys:
    def __init__(self, own_producer: int | None) -> None:
        self._own = own_producer
        self._certain: set[bytes] = set()
        self._open: dict[int, set[bytes]] = {}

    def take(self, data: bytes, at: int) -> int:
        """The whole batches of an answer from offset ``at`` on; returns the offset behind them."""
        reader = SegmentReader(SegmentBytes(data))
        try:
            for batch in reader:
                if batch.header.next_offset > at:
                    self._add(RescuedBatch(batch.header, reader.raw(batch)))
        except (CannotUnpack, MalformedRecord) as error:
            raise InputError(
                f"the batch before offset {reader.next_offset}: {error}; nothing was sent"
            ) from None
        if reader.next_offset is None or reader.next_offset <= at:
            raise BackendError(f"the log has no whole batch at offset {at}")
        return reader.next_offset

    def _add(self, batch: RescuedBatch) -> None:
        header = batch.header
        if header.is_control:
            ended = self._open.pop(header.producer_id, set())
            if marker_ending(batch) is not Ending.ABORTED:
                self._certain |= ended
        elif header.producer_id != self._own or self._own is None:
            keys = {key_digest(record.key) for record in records_of(batch.data) if record.key is not None}
            if header.is_transactional:
                self._open.setdefault(header.producer_id, set()).update(keys)
            else:
                self._certain |= keys

    def all(self) -> Collection[bytes]:
        """With those of open transactions, which may still be committed."""
        return frozenset(self._certain.union(*self._open.values()))
