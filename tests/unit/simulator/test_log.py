"""The compact log against a log that keeps every record."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from backends.simulator.broker.replica_log import (
    Log,
    after_crash,
    appended,
    end_of_epoch,
    flushed,
    missing,
    read,
    truncated,
    truncation,
    without_head,
)
from recovery.model import EpochSpan

Records = list[int]
"""One epoch a record, ascending."""


def _log(records: Records) -> Log:
    log = Log()
    for offset, epoch in enumerate(records):
        log = appended(log, (EpochSpan(epoch, offset, offset + 1),))
    return log


epochs = st.lists(st.integers(0, 6), max_size=30).map(sorted)


@given(epochs, st.integers(0, 35))
def test_truncating_keeps_the_records_below_the_offset(records: Records, offset: int) -> None:
    log = truncated(_log(records), offset)
    kept = records[:offset]
    assert log.end == len(kept)
    assert log.last_epoch == (kept[-1] if kept else -1)
    assert log.spans == _log(kept).spans


@given(epochs, st.integers(0, 7))
def test_the_end_of_an_epoch_is_where_the_next_one_starts(records: Records, epoch: int) -> None:
    below = [held for held in records if held <= epoch]
    expected = (below[-1], len(below)) if below else None
    assert end_of_epoch(_log(records), epoch) == expected


@given(epochs, epochs)
def test_a_follower_that_truncates_by_epoch_ends_as_a_prefix_of_its_leader(
    shared: Records, tails: Records
) -> None:
    """Two logs that part somewhere: rounds of fetching find the place, and never go below it."""
    highest = shared[-1] if shared else 0
    leader_tail = sorted(epoch + highest for epoch in tails[::2])
    # The same epoch at the same offset is the same record: the follower's tail is of epochs the leader has not.
    follower_tail = sorted(epoch + highest + 10 for epoch in tails[1::2])
    leader, follower = _log(shared + leader_tail), _log(shared + follower_tail)
    for _ in range(50):
        found = end_of_epoch(leader, follower.last_epoch) or (follower.last_epoch, leader.start)
        if follower.end == 0 or (found[0] == follower.last_epoch and found[1] >= follower.end):
            break
        follower = truncated(follower, truncation(follower, *found))
    assert follower.spans == _log((shared + leader_tail)[: follower.end]).spans
    assert follower.end >= len(shared)


@given(epochs, st.integers(0, 30), st.integers(1, 10))
def test_reading_gives_the_records_from_the_offset_on(records: Records, offset: int, limit: int) -> None:
    spans = read(_log(records), offset, limit)
    assert [span.epoch for span in spans for _ in range(span.end - span.start)] == records[
        offset : offset + limit
    ]


@given(epochs, st.integers(0, 30), st.booleans())
def test_a_power_loss_drops_what_was_not_flushed_and_a_kill_does_not(
    records: Records, at: int, power: bool
) -> None:
    written = flushed(_log(records[:at]))
    log = written
    for offset, epoch in list(enumerate(records))[at:]:
        log = appended(log, (EpochSpan(epoch, offset, offset + 1),))
    after = after_crash(log, power_lost=power)
    assert after.end == (min(at, len(records)) if power else len(records))


@given(epochs, st.integers(0, 30), epochs)
def test_what_is_missing_is_what_no_record_of_the_log_is(
    records: Records, start: int, other: Records
) -> None:
    log = without_head(_log(records), start)
    held = {(epoch, offset) for offset, epoch in enumerate(records)}
    lacking = {
        (epoch, offset)
        for offset, epoch in enumerate(other)
        if (epoch, offset) not in held and offset >= log.start
    }
    spans = missing(log, _log(other).spans)
    assert {(span.epoch, offset) for span in spans for offset in range(span.start, span.end)} == lacking
