"""How often a cluster in trouble is asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.app.session.poller import INTERVAL, SHARE, Schedule


def looked(took: float, schedule: Schedule | None = None, *, untypical: bool = False) -> Schedule:
    """After a look that began at 0."""
    return (schedule or Schedule()).begin(0.0).end(took, untypical=untypical)


def test_the_first_look_is_at_once_and_the_next_after_ten_seconds() -> None:
    assert Schedule().due(0.0) == 0.0
    assert looked(0.1).due(0.1) == INTERVAL
    assert looked(0.1).due(0.1 + INTERVAL) == 0.0


def test_no_look_begins_while_one_runs() -> None:
    running = Schedule().begin(0.0)
    assert running.due(1_000.0) is None
    with pytest.raises(AssertionError, match="overlap"):
        running.begin(1.0)


def test_what_is_asked_for_while_one_runs_is_looked_at_again_right_after() -> None:
    """The change that somebody waits for may have come after the running look passed it by."""
    ended = Schedule().begin(0.0).request().end(2.0)
    assert ended.due(2.0) == 0.0
    assert not ended.begin(2.0).end(3.0).requested


def test_paused_it_looks_only_when_asked() -> None:
    paused = looked(0.1).toggle_pause()
    assert paused.due(1_000.0) is None
    assert paused.request().due(1_000.0) == 0.0
    assert paused.toggle_pause().due(1_000.0) == 0.0


@given(took=st.floats(0.0, 100.0))
def test_looks_never_take_more_than_a_twentieth_of_the_time(took: float) -> None:
    between = looked(took).pause_between
    assert between >= INTERVAL
    assert took / (took + between) <= 1 / SHARE + 1e-9


def test_a_cluster_that_does_not_answer_is_asked_again_soon_however_long_the_silence_took() -> None:
    assert looked(60.0, untypical=True).due(60.0) == INTERVAL
