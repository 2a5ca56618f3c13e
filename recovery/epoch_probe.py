"""Finds the epoch lineage of a log with Fetch requests, without reading a record (Fetch v12, KIP-595).

A Fetch at the log end with ``last_fetched_epoch`` E answers "out of range" where E is above the log's newest
epoch, "no divergence" where E's records end at the log end, and otherwise the largest epoch ≤ E with its end
offset. This module decides which E to ask next and what the answers mean; it sends nothing.

Four traps:

- Below the first epoch that is kept (retention, DeleteRecords), the answer for every E is E itself, with the log
  start as its end: a phantom.
- A leader that has written nothing answers for its own epoch, which no record has.
- A broker that was killed between DeleteRecords and its next log start checkpoint returns with the old log start,
  but without the epochs below the new one: its phantoms end above the log start. Two phantoms have the same end,
  which two real epochs never have. Where only epoch 0 can be asked for, below epoch 1, ListOffsets for the
  earliest offset decides: its answer has the epoch of the log start, or none where the broker forgot it.
- A broker that restarts forgets the epochs of a log without records (all expired or deleted), and every E is out
  of range. It is an empty log that starts at its end, even where deleted records are there again after a kill.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from recovery.model import NO_EPOCH, UNKNOWN_OFFSET, EpochSpan, Lineage

EARLIEST = -2
"""In place of an epoch to ask for: ask ListOffsets for the earliest offset (the timestamp of that question)."""

UNBOUNDED = 1 << 31
"""Above every leader epoch (an int32)."""

_SHARED = 10_000
"""Results kept: the replicas of a healthy partition answer alike, so that two of three are known already."""


class EpochProbeError(ValueError):
    """The answers contradict each other: the log has changed meanwhile, or it has no epochs."""


class OutOfRange(Enum):
    """The answer OFFSET_OUT_OF_RANGE: the epoch asked for is above the log's newest."""

    ANSWER = "out of range"


class EpochAnswer(NamedTuple):
    """A Fetch answer without an error. ``diverging`` is (epoch, its end offset), or None for no divergence."""

    diverging: tuple[int, int] | None
    log_start_offset: int
    high_watermark: int


class EarliestOffset(NamedTuple):
    """An answer to ListOffsets for the earliest offset; ``leader_epoch`` is NO_EPOCH where the broker forgot it."""

    leader_epoch: int
    log_start_offset: int


class EpochProbe(NamedTuple):
    """What is known about one log so far; values change only through :func:`advance`.

    ``asks`` is the epoch to ask next, or EARLIEST: NO_EPOCH to ask without one, and when nothing is left. ``known``
    holds (epoch, end offset) of the epochs found without a gap, newest first; ``above`` is the lowest epoch known
    to be out of range, ``below`` the highest that answered with an end short of the log end (-1 none), and
    ``short`` that answer. ``top`` is the newest epoch that anybody may have written under when the search began.
    Below ``forgotten`` the broker remembers no epochs, although it may still hold records.
    """

    log_end_offset: int
    asks: int
    top: int = NO_EPOCH
    log_start_offset: int = UNKNOWN_OFFSET
    high_watermark: int = UNKNOWN_OFFSET
    known: tuple[tuple[int, int], ...] = ()
    above: int = UNBOUNDED
    below: int = NO_EPOCH
    step: int = 1
    bottom: bool = False
    forgotten: int = UNKNOWN_OFFSET
    short: tuple[int, int] | None = None

    @property
    def floor(self) -> int:
        """The offset below which no epoch can be found, as far as is known so far."""
        return max(self.log_start_offset, self.forgotten)

    @property
    def emptied(self) -> bool:
        """Whether no record has an epoch that the broker remembers."""
        return self.floor == self.log_end_offset

    @property
    def settled(self) -> bool:
        """Whether the epoch of the last record is known."""
        return self.bottom or bool(self.known and self.known[-1][1] < self.log_end_offset)


_START = EpochProbe._fields.index("log_start_offset")
"""The index of this field; the high watermark is the next field."""


@lru_cache(_SHARED)
def start(log_end_offset: int, leader_epoch: int, offline: bool, likely: int = NO_EPOCH) -> EpochProbe:
    """The first question about a log, given the partition's current leader epoch.

    Raises EpochProbeError where that epoch is not known. The search begins at ``likely``, the epoch of the last
    record when the log was read before: if that still is so, no other epoch above it is asked for. Without one it
    begins one below the leader epoch: nobody writes under the epoch of an offline partition, and often nobody has
    yet under a new leader's. Where somebody has, the search learns the start of that epoch first instead of last.
    """
    if log_end_offset == 0:
        return EpochProbe(0, NO_EPOCH, log_start_offset=0, high_watermark=0, bottom=True)
    if leader_epoch < 0:
        raise EpochProbeError("the broker knows no leader epoch of the partition")
    below = max(0, leader_epoch - 1)
    asks = likely if NO_EPOCH < likely < below else below
    return EpochProbe(log_end_offset, asks, top=below if offline else leader_epoch)


@lru_cache(_SHARED)
def advance(probe: EpochProbe, answer: EpochAnswer | OutOfRange | EarliestOffset) -> EpochProbe:
    """What is known after ``answer`` to ``probe.asks``. Raises EpochProbeError where answers contradict."""
    if isinstance(answer, EarliestOffset):
        return _confirmed(probe, answer)
    if isinstance(answer, OutOfRange):
        return _too_high(probe)
    start, watermark = answer.log_start_offset, answer.high_watermark
    # Rarely changed after the first answer; copying it would double the cost of this function.
    if start > probe.log_start_offset or watermark > probe.high_watermark:
        before, after = probe[:_START], probe[_START + 2 :]
        known = max(probe.log_start_offset, start), max(probe.high_watermark, watermark)
        probe = EpochProbe._make((*before, *known, *after))
    if probe.asks == NO_EPOCH:
        return _no_epoch_at_all(probe)
    epoch, end = answer.diverging or (probe.asks, probe.log_end_offset)
    if epoch > probe.asks or end > probe.log_end_offset:
        raise EpochProbeError(f"asked for epoch {probe.asks}, got epoch {epoch} ending at {end}")
    if probe.known:
        return _down(probe, epoch, end)
    if end == probe.log_end_offset and not probe.emptied:
        return _known(probe, epoch, end)
    if probe.asks > probe.below:
        probe = probe._replace(below=probe.asks, short=(epoch, end))
    return _between(probe)


def _too_high(probe: EpochProbe) -> EpochProbe:
    """Out of range: double the step down until an answer comes, then bisect."""
    if probe.known:
        raise EpochProbeError(f"epoch {probe.asks} is out of range below epoch {probe.known[-1][0]}")
    probe = probe._replace(above=probe.asks)
    if probe.below != NO_EPOCH:
        return _between(probe)
    if probe.asks == NO_EPOCH:
        raise EpochProbeError(f"the log does not end at {probe.log_end_offset} any more")
    if probe.asks == 0:
        return probe._replace(asks=NO_EPOCH)
    return probe._replace(asks=max(0, probe.asks - probe.step), step=probe.step * 2)


def _no_epoch_at_all(probe: EpochProbe) -> EpochProbe:
    return probe._replace(log_start_offset=probe.log_end_offset, bottom=True)


def _between(probe: EpochProbe) -> EpochProbe:
    """Bisect between an epoch that answered and one that is out of range.

    In a log that was emptied every epoch below the newest answers alike, so the newest is searched for.
    """
    never_above = probe.above == UNBOUNDED
    if probe.emptied and never_above and probe.below < probe.top:
        return probe._replace(asks=probe.top)
    if probe.emptied and (never_above or probe.above - probe.below <= 1):
        return _known(probe, probe.below, probe.log_end_offset)
    if never_above:
        # The epoch below the leader's ends short of the log's end: there is a later one.
        return probe._replace(asks=probe.asks + probe.step, step=probe.step * 2)
    if probe.above - probe.below <= 1:
        raise EpochProbeError(f"no epoch of the log reaches its end {probe.log_end_offset}")
    return probe._replace(asks=(probe.above + probe.below) // 2)


def _down(probe: EpochProbe, epoch: int, end: int) -> EpochProbe:
    """The next older epoch, or the bottom: phantoms end at the log start."""
    if end <= probe.log_start_offset:
        return probe._replace(bottom=True, asks=NO_EPOCH)
    newer = probe.known[-1][1]
    if end > newer:
        raise EpochProbeError(f"epoch {epoch} ends at {end}, above the newer epoch's end {newer}")
    # Only the newest epoch can share its end with another one: that of a leader that wrote nothing.
    if end == newer and epoch == probe.asks and (end < probe.log_end_offset or len(probe.known) > 1):
        return _forgotten(probe, end)
    return _known(probe, epoch, end)


def _confirmed(probe: EpochProbe, earliest: EarliestOffset) -> EpochProbe:
    """Whether epoch 0, the last one that was found, is that of the records below epoch 1, or a phantom."""
    (_, end), (newer, _) = probe.known[-1], probe.known[-2]
    if earliest.leader_epoch > newer:
        raise EpochProbeError(
            f"the log start has risen to epoch {earliest.leader_epoch}, above epoch {newer}"
        )
    probe = probe._replace(log_start_offset=max(probe.log_start_offset, earliest.log_start_offset))
    if earliest.leader_epoch == 0:
        return probe._replace(bottom=True, asks=NO_EPOCH)
    return _forgotten(probe, end)


def _forgotten(probe: EpochProbe, end: int) -> EpochProbe:
    """The broker remembers no epoch below ``end``: what answered for the last epoch asked was a phantom too."""
    if end < probe.log_end_offset:
        return probe._replace(known=probe.known[:-1], forgotten=end, bottom=True, asks=NO_EPOCH)
    return _between(probe._replace(known=(), forgotten=end, below=probe.known[0][0], short=None))


def _known(probe: EpochProbe, epoch: int, end: int) -> EpochProbe:
    older_than_1 = epoch == 0 and bool(probe.known) and probe.known[-1][0] == 1
    doubtful = older_than_1 and end < probe.log_end_offset
    bottom = end <= probe.floor or (epoch == 0 and not doubtful)
    asks = NO_EPOCH if bottom else EARLIEST if doubtful else epoch - 1
    log_end, _, top, start, watermark, known, above, below, step, _, forgotten, short = probe
    known = (*known, (epoch, end))
    # Not _replace, which takes three times as long: this is done for every log of a cluster.
    probe = EpochProbe(log_end, asks, top, start, watermark, known, above, below, step, bottom, forgotten)
    if short is not None and below == asks != NO_EPOCH:
        return _down(probe, *short)  # that was asked on the way up
    return probe


@lru_cache(_SHARED)
def lineage(probe: EpochProbe) -> Lineage:
    """The lineage as far as it is known. Raises EpochProbeError while the last record's epoch is not settled."""
    if not probe.settled:
        raise EpochProbeError("the last record's epoch is not known yet")
    floor = max(probe.floor, 0) if probe.bottom else probe.known[-1][1]
    spans = []
    for index, (epoch, end) in enumerate(probe.known):
        older = probe.known[index + 1][1] if index + 1 < len(probe.known) else floor
        if older < end and (probe.bottom or index + 1 < len(probe.known)):
            spans.append(EpochSpan(epoch, older, end))
    newest = probe.known[0][0] if probe.known else NO_EPOCH
    last = spans[0].epoch if spans else newest
    return Lineage(last, tuple(reversed(spans)), floor)


def deepen(probes: Mapping[int, EpochProbe], full: bool) -> Sequence[int]:
    """Which of a partition's settled logs must be asked further down, by broker.

    ``full``: all that have not reached the bottom. Otherwise every pair is followed down to the highest
    epoch that both hold, which settles what either would truncate; where the logs start at different
    offsets, to the bottom, since the head that a choice gives up is counted by epoch too.
    """
    settled = {broker: probe for broker, probe in probes.items() if probe.settled}
    if not full and len(set(settled.values())) <= 1:
        return []  # equal logs, as most are
    starts = {probe.log_start_offset for probe in settled.values()}
    if full or len(starts) > 1:
        return [broker for broker, probe in settled.items() if not probe.bottom]
    logs = {broker: lineage(probe) for broker, probe in settled.items()}
    if len({(logs[broker].last_epoch, probe.log_end_offset) for broker, probe in settled.items()}) <= 1:
        return []
    epochs = {broker: {span.epoch for span in log.spans} for broker, log in logs.items()}
    deeper: set[int] = set()
    for one, other in combinations(settled, 2):
        if epochs[one] & epochs[other]:
            continue
        unfinished = [broker for broker in (one, other) if not settled[broker].bottom]
        lowest = {broker: _lowest(settled[broker]) for broker in (one, other)}
        # Only the log that ends higher can still show an epoch that the other has. Where it cannot, nothing
        # is shared, and the other is counted to its bottom.
        higher = [broker for broker in unfinished if lowest[broker] == max(lowest.values())]
        deeper.update(higher or unfinished)
    return [broker for broker in settled if broker in deeper]


def _lowest(probe: EpochProbe) -> int:
    return probe.known[-1][0] if probe.known else NO_EPOCH
