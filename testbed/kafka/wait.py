"""Waits for a condition, never for a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from testbed.kafka.errors import TimedOut

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T | None],
    what: str,
    timeout: float = 30.0,
    *,
    interval: float = 0.1,
    passing: tuple[type[Exception], ...] = (),
    describe_state: Callable[[], object] | None = None,
) -> T:
    """Returns the first true value of ``condition``, which is called every ``interval`` seconds up to ``timeout``.

    Exceptions of the types ``passing`` count as "not yet". Raises TimedOut with ``what`` was waited for, the last
    such exception, and the state at the end as ``describe_state`` returns it.
    """
    deadline = time.monotonic() + timeout
    last: Exception | None = None
    while True:
        try:
            if value := condition():
                return value
            last = None
        except passing as error:
            last = error
        if time.monotonic() >= deadline:
            break
        time.sleep(interval)
    message = f"waited {timeout:g} s for {what}"
    if last is not None:
        message += f"; last answer: {last}"
    if describe_state is not None:
        message += f"; the state is: {describe_state()}"
    raise TimedOut(message)
