"""Signals while Spark's Java starts: interrupted then, PySpark would leave a Java that runs on without a parent."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from pipeline.spark_session import signals_afterwards

STOPPING = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


class Interrupted(BaseException):
    pass


def interrupt(*_: object) -> None:
    raise Interrupted


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = {signum: signal.signal(signum, interrupt) for signum in STOPPING}
    yield
    for signum, handler in before.items():
        signal.signal(signum, handler)


@pytest.mark.parametrize("signum", STOPPING)
def test_a_signal_ends_the_job_once_java_has_started(signum: signal.Signals) -> None:
    started = False
    with pytest.raises(Interrupted), signals_afterwards():
        signal.raise_signal(signum)
        started = True
    assert started
    assert [signal.getsignal(one) for one in STOPPING] == [interrupt] * 3


def test_a_second_signal_ends_it_at_once() -> None:
    steps = []
    with pytest.raises(Interrupted), signals_afterwards():
        signal.raise_signal(signal.SIGTERM)
        steps.append("after one")
        signal.raise_signal(signal.SIGINT)
        steps.append("after two")
    assert steps == ["after one"]
    assert [signal.getsignal(one) for one in STOPPING] == [interrupt] * 3


def test_what_the_start_itself_installs_and_an_ignored_signal_are_as_before() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with signals_afterwards():
        signal.raise_signal(signal.SIGHUP)
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert signal.getsignal(signal.SIGINT) is interrupt
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_an_error_of_the_start_is_not_hidden_by_no_signal() -> None:
    with pytest.raises(ValueError, match="no Java"), signals_afterwards():
        raise ValueError("no Java")
