"""Waiting for a condition, never for a time."""

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
    seen: Callable[[], object] | None = None,
) -> T:
    """The first true value that ``condition`` returns, asked every ``interval`` seconds for ``timeout`` seconds.

    Exceptions of the types ``passing`` count as "not yet". Raises TimedOut, which says what was waited for, the
    last such exception, and what ``seen`` describes as the state in which it ended.
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
    if seen is not None:
        message += f"; seen instead: {seen()}"
    raise TimedOut(message)
