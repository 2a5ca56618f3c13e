"""Which of a branch's records are written back, and as which batches."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from backends.log_segments.batch_header import BatchHeader, parse_header
from console.errors import InputError
from console.rescue_files.record_batches import (
    CannotUnpack,
    MalformedRecord,
    Record,
    encoded,
    has_holes,
    in_parts,
    keys_and_headers,
    records_of,
)
from console.rescue_files.rescued_branch import Ending, RescuedBranch, TransactionEndings
from console.rescue_files.rescued_segment import RescuedBatch
from recovery.loss import without
from recovery.model import EpochSpan

MARK = b"ktriage-rescued-from"
"""The header that tells where a record comes from."""
NO_TIMESTAMP = -1
LARGEST_BY_DEFAULT = 1_048_588
"""max.message.bytes of a topic that does not set it."""


AS_PRODUCED, UNCOMPRESSED = "producer", "uncompressed"
"""compression.type of a topic: as the client packed the batch, and unpacked."""


class RestoredTransactions(StrEnum):
    """COMMITTED: records of committed transactions, and those outside of any. OPEN, ABORTED: only those."""

    COMMITTED = "committed"
    OPEN = "open"
    ABORTED = "aborted"


_ENDINGS = {
    RestoredTransactions.COMMITTED: (Ending.NONE, Ending.COMMITTED),
    RestoredTransactions.OPEN: (Ending.OPEN,),
    RestoredTransactions.ABORTED: (Ending.ABORTED,),
}


class RecordFilter(NamedTuple):
    """Records with an offset above ``after_offset`` and below ``before_offset``, a timestamp (ms) from ``from_ms``
    up to but not at ``to_ms``, and a key that ``key`` (a regular expression) matches as a whole; None: all.

    ``missing_keys``: only keys that have no newer record.
    """

    after_offset: int | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    key: str | None = None
    missing_keys: bool = False
    before_offset: int | None = None


EVERY_RECORD = RecordFilter()


@dataclass(frozen=True, slots=True)
class RestoreSelection:
    """``incomplete``: branches that are not whole too. ``topics``: only these; empty: all. ``mark``: each record
    gets the header :data:`MARK`.
    """

    transactions: RestoredTransactions = RestoredTransactions.COMMITTED
    incomplete: bool = False
    topics: tuple[str, ...] = ()
    only: RecordFilter = EVERY_RECORD
    mark: bool = False

    @property
    def name(self) -> str:
        """Runs of the same name go on with each other. Empty where every record that is no transaction's loss is
        written as it is.
        """
        if self.transactions is RestoredTransactions.COMMITTED and not self.selects_records:
            return ""
        chosen = repr((*self.only, self.mark)).encode()
        return f"{self.transactions}-{hashlib.sha256(chosen).hexdigest()[:8]}"

    @property
    def words(self) -> tuple[str, ...]:
        """The options of ``ktriage restore`` that choose the same."""
        only = self.only
        words = [word for topic in self.topics for word in ("--topic", topic)]
        if self.transactions is not RestoredTransactions.COMMITTED:
            words += ["--transactions", str(self.transactions)]
        if only.after_offset is not None:
            words += ["--after-offset", str(only.after_offset)]
        if only.before_offset is not None:
            words += ["--before-offset", str(only.before_offset)]
        words += [
            word
            for option, ms in (("--from", only.from_ms), ("--to", only.to_ms))
            if ms is not None
            for word in (option, datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds"))
        ]
        if only.key is not None:
            words += ["--key", only.key]
        flags = (
            ("--only-keys-missing", only.missing_keys),
            ("--mark", self.mark),
            ("--incomplete", self.incomplete),
        )
        return (*words, *(word for word, given in flags if given))

    @property
    def selects_records(self) -> bool:
        """Whether single records of a batch are left out or changed."""
        return self.mark or self.only != EVERY_RECORD


class TargetLimits(NamedTuple):
    """What a target partition takes: batches of at most ``most`` bytes. ``newer`` are the digests of the keys that
    have a newer record there (:func:`key_digest`). Records with a timestamp (ms) before ``oldest_ms`` or after
    ``newest_ms`` are refused, and with ``keys`` those without a key; those before ``retained_from_ms`` are deleted
    again by the topic's retention. A batch that is not ``packed`` so is packed anew by the broker, which then looks
    at its size again (Kafka's UnifiedLog.append).
    """

    most: int = LARGEST_BY_DEFAULT
    newer: Collection[bytes] = frozenset()
    oldest_ms: int | None = None
    retained_from_ms: int | None = None
    newest_ms: int | None = None
    keys: bool = False
    packed: str = AS_PRODUCED

    def repacks(self, compression: str) -> bool:
        """Whether the broker unpacks a batch with that compression, so that it may become larger."""
        return compression != "none" and self.packed not in (AS_PRODUCED, compression)


class BatchToRestore(NamedTuple):
    """``data`` is a batch without holes. The next batch of its branch begins at ``next_offset``."""

    data: bytes
    records: int
    next_offset: int
    reencoded: bool


class BranchCounts(NamedTuple):
    """Records of a branch: ``selected`` are written back, ``reencoded`` of them in batches that are encoded anew.

    Of the selected, at least so many are in batches that the target refuses (:data:`REFUSED_BY`): ``too_old``,
    ``too_new``, ``too_large``, ``keyless``. ``expired`` are older than its retention.

    The others are left out. ``filtered`` by what was asked for; ``outside``: they are not in the branch, and stand
    in its first or last batch.
    """

    selected: int
    reencoded: int
    filtered: int
    aborted: int
    open: int
    control: int
    outside: int
    expired: int = 0
    too_old: int = 0
    too_new: int = 0
    too_large: int = 0
    keyless: int = 0

    @property
    def refused(self) -> int:
        return sum(getattr(self, name) for name in REFUSED_BY)


REFUSED_BY = {
    "too_old": ("message.timestamp.before.max.ms", "older than {} of {} allows"),
    "too_new": ("message.timestamp.after.max.ms", "further in the future than {} of {} allows"),
    "too_large": ("max.message.bytes (or segment.bytes)", "larger than {} of {} allows"),
    "keyless": ("cleanup.policy", "without a key, which {}=compact of {} does not take"),
}
"""Why a broker refuses a batch of a client (Kafka's LogValidator and UnifiedLog): the topic's setting, and words
for the records, by the field of :class:`BranchCounts`. What else LogValidator checks no batch of a rescue can fail.
"""


def key_digest(key: bytes) -> bytes:
    """Stands for the key in a set of many."""
    return hashlib.blake2b(key, digest_size=16).digest()


def batches_to_restore(
    rescued: RescuedBranch, selection: RestoreSelection, start: int, limits: TargetLimits
) -> Iterator[BatchToRestore]:
    """The batches of the selected records from offset ``start`` on, in order. Raises InputError.

    A batch stays as it is unless a broker would refuse it or a part of it is left out.
    """
    endings = TransactionEndings.of(rescued)
    wanted = _Wanted(rescued, selection, limits)
    for batch in rescued.batches():
        header = batch.header
        if header.next_offset <= start or not _selects(header, endings.ending(header), selection):
            continue
        if wanted.as_it_is(header, start):
            yield BatchToRestore(batch.data, header.record_count, header.next_offset, reencoded=False)
            continue
        records = wanted.records(batch, start)
        parts = list(in_parts(records, limits.most))
        for number, part in enumerate(parts, 1):
            after = header.next_offset if number == len(parts) else part[-1].offset + 1
            data = encoded(part, compressed=header.compression != "none")
            yield BatchToRestore(data, len(part), after, reencoded=True)


def count_branch(rescued: RescuedBranch, selection: RestoreSelection, limits: TargetLimits) -> BranchCounts:
    """Reads the whole branch. Raises InputError."""
    endings = TransactionEndings.of(rescued)
    wanted = _Wanted(rescued, selection, limits)
    counts = dict.fromkeys(BranchCounts._fields, 0)
    for batch in rescued.batches():
        header = batch.header
        ending = endings.ending(header)
        if header.is_control:
            counts["control"] += header.record_count
            continue
        if not _selects(header, ending, selection):
            left_out = str(ending) if ending in (Ending.ABORTED, Ending.OPEN) else "filtered"
            counts[left_out] += header.record_count
            continue
        if wanted.as_it_is(header, 0):
            selected = header.record_count
            times = (header.base_timestamp, header.max_timestamp)
            refused = _refusal(limits, times, header.size, partial(_lacks_key, batch.data))
            if refused is not None:
                counts[refused] += selected
        else:
            found = wanted.records(batch, 0)
            selected = len(found)
            inside = sum(map(wanted.inside, wanted.all_records(batch)))
            counts["reencoded"] += selected
            counts["filtered"] += inside - selected
            counts["outside"] += header.record_count - inside
            for part in in_parts(found, limits.most):
                compressed = header.compression != "none" and limits.packed != UNCOMPRESSED
                refused = _refusal_of_part(limits, part, compressed=compressed)
                if refused is not None:
                    counts[refused] += len(part)
        counts["selected"] += selected
        if limits.retained_from_ms is not None and header.max_timestamp < limits.retained_from_ms:
            counts["expired"] += selected
    return BranchCounts(**counts)


def _refusal(
    limits: TargetLimits, times: tuple[int, ...], size: int, lacks_key: Callable[[], bool]
) -> str | None:
    """The field of :data:`REFUSED_BY` for a batch with these timestamps; None: it is taken. A record without a
    timestamp (-1) is of no age.
    """
    known = [time for time in times if time != NO_TIMESTAMP]
    if size > limits.most:
        return "too_large"
    if limits.oldest_ms is not None and known and min(known) < limits.oldest_ms:
        return "too_old"
    if limits.newest_ms is not None and known and max(known) > limits.newest_ms:
        return "too_new"
    return "keyless" if limits.keys and lacks_key() else None


def _refusal_of_part(limits: TargetLimits, part: Sequence[Record], *, compressed: bool) -> str | None:
    times = tuple(record.timestamp for record in part)
    # Only a record that is too large by itself is in a batch that is.
    size = len(encoded(part, compressed=compressed)) if len(part) == 1 else 0
    return _refusal(limits, times, size, lambda: any(record.key is None for record in part))


def _lacks_key(data: bytes) -> bool:
    """False too where the batch cannot be unpacked: then it is not known."""
    try:
        return keys_and_headers(data)[0] < parse_header(data).record_count
    except (CannotUnpack, MalformedRecord):
        return False


def chosen_spans(rescued: RescuedBranch, only: RecordFilter) -> tuple[EpochSpan, ...]:
    """The branch's offsets without those that ``only`` leaves out by their offset, and without damaged ones. Reads
    the whole branch where damage is left out.
    """
    left_out = (
        [(part.first_offset, part.next_offset) for part in rescued.damaged()] if rescued.sound_only else []
    )
    if only.after_offset is not None:
        left_out.append((0, only.after_offset + 1))
    if only.before_offset is not None:
        left_out.append((only.before_offset, rescued.branch.end))
    spans = rescued.branch.spans
    cut = [
        EpochSpan(span.epoch, max(span.start, first), min(span.end, beyond))
        for span in spans
        for first, beyond in left_out
        if max(span.start, first) < min(span.end, beyond)
    ]
    return tuple(without(spans, cut)) if cut else spans


class _Wanted:
    """The records of one branch that are written back."""

    def __init__(self, rescued: RescuedBranch, selection: RestoreSelection, limits: TargetLimits) -> None:
        self._rescued = rescued
        self._selection = selection
        self._limits = limits
        only = selection.only
        self._key = None if only.key is None else re.compile(only.key, re.DOTALL)

    def as_it_is(self, header: BatchHeader, start: int) -> bool:
        """Whether the whole batch can be sent as it lies in the file."""
        branch = self._rescued.branch
        return (
            not self._selection.selects_records
            and not has_holes(header)
            and header.size <= self._limits.most
            and not self._limits.repacks(header.compression)
            and max(start, branch.start) <= header.base_offset
            and header.next_offset <= branch.end
        )

    def records(self, batch: RescuedBatch, start: int) -> list[Record]:
        """The selected records of a batch from offset ``start`` on. Raises InputError."""
        found = (one for one in self.all_records(batch) if one.offset >= start and self.inside(one))
        return [self._marked(batch, one) for one in found if self._matches(one)]

    def inside(self, record: Record) -> bool:
        """Whether the record is in the branch: the first and the last batch may reach beyond it."""
        return self._rescued.branch.start <= record.offset < self._rescued.branch.end

    def all_records(self, batch: RescuedBatch) -> list[Record]:
        """Raises InputError."""
        try:
            return list(records_of(batch.data))
        except (CannotUnpack, MalformedRecord) as error:
            at = f"the batch at offset {batch.header.base_offset:,}"
            raise InputError(f"{self._rescued.directory}: {at} cannot be written back: {error}") from None

    def _matches(self, record: Record) -> bool:
        only = self._selection.only
        key = record.key or b""
        return (
            (only.after_offset is None or record.offset > only.after_offset)
            and (only.before_offset is None or record.offset < only.before_offset)
            and (only.from_ms is None or record.timestamp >= only.from_ms)
            and (only.to_ms is None or record.timestamp < only.to_ms)
            and (self._key is None or self._key.fullmatch(key.decode(errors="surrogateescape")) is not None)
            and not (only.missing_keys and key_digest(key) in self._limits.newer)
        )

    def _marked(self, batch: RescuedBatch, record: Record) -> Record:
        if not self._selection.mark:
            return record
        branch = self._rescued.branch
        where = f"{branch.tp} offset {record.offset} epoch {batch.header.leader_epoch} broker {branch.broker}"
        return record._replace(headers=(*record.headers, (MARK, where.encode())))


def _selects(header: BatchHeader, ending: Ending, selection: RestoreSelection) -> bool:
    """Control batches never."""
    return not header.is_control and header.record_count > 0 and ending in _ENDINGS[selection.transactions]
