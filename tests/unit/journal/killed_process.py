"""Calls on files, listened to; and a process killed at any of them, or half-way through a write."""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable
from typing import Any

PATIENCE = 60.0
STEPS = ("open", "write", "fsync", "link", "unlink", "mkdir", "ftruncate", "truncate", "close")


def killed_at(step: int, work: Callable[[], object]) -> bool:
    """Runs ``work`` in a process of its own that gets SIGKILL at its call number ``step``.

    False where it came to its end before that: every step was tried. Raises AssertionError where it failed.
    """
    child = _forked()
    if child == 0:
        _die_in_child(step, work)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return True
    assert status == 0, f"the child failed at step {step}"
    return False


def _forked() -> int:
    """As os.fork. Where other tests have taken all of the machine's memory, it waits until there is some again."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return os.fork()
        except OSError as error:
            if error.errno != errno.ENOMEM or time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def listened(calls: list[str], name: str, call: Callable[..., object]) -> Callable[..., object]:
    """``call``, with its name put down before."""

    def heard(*args: object) -> object:
        calls.append(name)
        return call(*args)

    return heard


def _die_in_child(step: int, work: Callable[[], object]) -> None:
    calls = 0

    def counted(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == step:
                if name == "write":
                    call(args[0], bytes(args[1])[: len(args[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **kwargs)

        return wrapped

    try:
        for name in STEPS:
            setattr(os, name, counted(name, getattr(os, name)))
        work()
    except BaseException:
        import traceback

        traceback.print_exc()
        os._exit(1)
    os._exit(0)
