from __future__ import annotations

from backends.simulator.loop import Loop


def test_what_is_due_at_the_same_time_runs_in_the_order_it_was_asked_for() -> None:
    loop = Loop(1)
    seen: list[str] = []
    loop.call_later(20, seen.append, "later")
    for name in ("first", "second", "third"):
        loop.call_later(10, seen.append, name)
    loop.run_until(30)
    assert seen == ["first", "second", "third", "later"]
    assert loop.now == 30


def test_a_cancelled_timer_does_not_run_and_cancelling_twice_is_harmless() -> None:
    loop = Loop(1)
    seen: list[str] = []
    timer = loop.call_later(10, seen.append, "never")
    timer.cancel()
    timer.cancel()
    assert not loop.step()
    assert seen == []


def test_what_is_asked_for_in_the_past_runs_now_and_time_never_goes_back() -> None:
    loop = Loop(1)
    times: list[int] = []
    loop.run_until(100)
    loop.call_at(5, lambda: times.append(loop.now))
    assert loop.step()
    assert times == [100]


def test_waiting_ends_when_the_condition_holds_or_the_limit_is_over() -> None:
    loop = Loop(1)
    seen: list[int] = []
    loop.call_later(10, seen.append, 1)
    loop.call_later(1000, seen.append, 2)
    assert loop.run_while(lambda: not seen, 50)
    assert loop.now == 10
    assert not loop.run_while(lambda: len(seen) < 2, 50)
    assert loop.now == 60
    assert loop.run_while(lambda: len(seen) < 2, 5000)


def test_every_step_is_seen_by_the_hooks() -> None:
    loop = Loop(1)
    steps: list[int] = []
    loop.after_step.append(lambda _callback: steps.append(loop.now))
    loop.call_later(3, lambda: None)
    loop.call_later(7, lambda: None)
    loop.run_until(10)
    assert steps == [3, 7]
    assert loop.steps == 2
