"""Whole logs, kept record by record: the brute-force model that lineage and loss are held against."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from recovery.epoch_probe import EARLIEST, EarliestOffset, EpochAnswer, OutOfRange
from recovery.model import NO_EPOCH, EpochSpan


@dataclass(frozen=True)
class WholeLog:
    """A log with every record: ``epochs[i]`` is the leader epoch of the record at offset ``i``.

    Records below ``start`` are deleted. ``idle`` are epochs (epoch, offset) of leaders that wrote nothing.
    Below ``forgotten`` the broker remembers no epochs: it was killed before it wrote down its new log start.
    A broker that has ``restarted`` forgets the epochs that begin at the log end.
    """

    epochs: tuple[int, ...]
    start: int = 0
    idle: tuple[tuple[int, int], ...] = ()
    forgotten: int = 0
    restarted: bool = False

    @property
    def end(self) -> int:
        return len(self.epochs)

    def records(self) -> set[tuple[int, int]]:
        return {(self.epochs[offset], offset) for offset in range(self.start, self.end)}

    def spans(self) -> tuple[EpochSpan, ...]:
        found: list[EpochSpan] = []
        for offset in range(self.start, self.end):
            epoch = self.epochs[offset]
            if found and found[-1].epoch == epoch:
                found[-1] = EpochSpan(epoch, found[-1].start, offset + 1)
            else:
                found.append(EpochSpan(epoch, offset, offset + 1))
        return tuple(found)

    def cache(self) -> list[tuple[int, int]]:
        """Kafka's leader epoch cache, (epoch, start offset), as it stands after the log start has risen."""
        first: dict[int, int] = dict(self.idle)
        for offset, epoch in enumerate(self.epochs):
            first[epoch] = min(first.get(epoch, offset), offset)
        # A newer epoch that begins at the same offset takes the older one's place.
        newest = {offset: epoch for epoch, offset in sorted(first.items())}
        entries = sorted((epoch, offset) for offset, epoch in newest.items())
        floor = max(self.start, self.forgotten)
        dropped = [entry for entry in entries if entry[1] <= floor]
        remaining = [entry for entry in entries if entry[1] > floor]
        found = ([(dropped[-1][0], floor)] if dropped else []) + remaining
        return [entry for entry in found if entry[1] < self.end] if self.restarted else found

    def fetch(self, epoch: int) -> EpochAnswer | OutOfRange | EarliestOffset:
        """What a broker answers to a Fetch at the log end with ``last_fetched_epoch`` = ``epoch``, -1 none; for
        EARLIEST what it answers to ListOffsets for the earliest offset.
        """
        if epoch == EARLIEST:
            remembered = [first for first, start in self.cache()[:1] if start <= self.start]
            return EarliestOffset(next(iter(remembered), NO_EPOCH), self.start)
        if epoch < 0:
            return EpochAnswer(None, self.start, self.start)
        cache = self.cache()
        if not cache or epoch > cache[-1][0]:
            return OutOfRange.ANSWER
        if epoch < cache[0][0]:
            found, end = epoch, cache[0][1]
        else:
            found = max(entry[0] for entry in cache if entry[0] <= epoch)
            later = [start for entry, start in cache if entry > found]
            end = later[0] if later else self.end
        diverging = (found, end) if found < epoch or end < self.end else None
        return EpochAnswer(diverging, self.start, self.start)


@st.composite
def cluster_logs(draw: st.DrawFn, replicas: int = 3) -> tuple[tuple[WholeLog, ...], int]:
    """Logs that replication can leave behind, and the current leader epoch.

    Leaders follow one another; each writes some records, some replicas copy a prefix of what it has, after
    truncating to it, as followers do. Retention raises single log starts; leaders may stay idle.
    """
    logs: list[list[int]] = [[] for _ in range(replicas)]
    idle: list[dict[int, int]] = [{} for _ in range(replicas)]
    epoch = draw(st.integers(0, 3))
    for _ in range(draw(st.integers(1, 6))):
        leader = draw(st.integers(0, replicas - 1))
        written = draw(st.integers(0, 4))
        if written == 0:
            idle[leader][epoch] = len(logs[leader])
        logs[leader].extend([epoch] * written)
        for follower in range(replicas):
            if follower == leader or not draw(st.booleans()):
                continue
            copied = draw(st.integers(0, len(logs[leader])))
            common = _follow(logs[follower], logs[leader], copied)
            appended = logs[follower][common:]
            # Kafka's cache drops entries that an appended batch contradicts, and those beyond the end.
            idle[follower] = {
                e: o
                for e, o in idle[follower].items()
                if o < len(logs[follower]) and not (appended and (o >= common or e >= appended[0]))
            }
        epoch += draw(st.integers(1, 9))
    whole = tuple(
        WholeLog(tuple(log), draw(st.integers(0, len(log))), tuple(sorted(idle[i].items())))
        for i, log in enumerate(logs)
    )
    return whole, epoch


def _follow(follower: list[int], leader: list[int], up_to: int) -> int:
    """Truncates to the shared prefix and copies up to an offset; returns where the copy begins."""
    shared = 0
    while shared < min(len(follower), len(leader)) and follower[shared] == leader[shared]:
        shared += 1
    del follower[shared:]
    follower.extend(leader[shared : max(shared, up_to)])
    return shared
