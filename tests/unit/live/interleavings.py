"""Every interleaving of one designated election with another actor, who may do any one thing between two steps.

Two histories that gave the product the same answers, and left the cluster the same, are continued once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.unit.live.interleaved_election import run
from tests.unit.live.other_actor import FAULTS, LATE, Action, Setting, actions, happened, plan
from tests.unit.live.virtual_time import VirtualTimeLoop


class Explored(NamedTuple):
    """``histories`` that were run, those that need not be run because they go on like another, what was wrong."""

    histories: int
    alike: int
    wrong: tuple[str, ...]


def explore(setting: Setting, depth: int) -> Explored:
    """Every history of the setting in which at most ``depth`` things happen."""
    return _explore(setting, depth, [{}])


def explore_late(setting: Setting) -> Explored:
    """Every history of the setting in which one request is not answered in time, and at most one thing happens
    after it: most of what went wrong between two events began so.
    """
    loop = VirtualTimeLoop()
    try:
        steps = run(loop, setting, plan(setting), {}).steps
    finally:
        loop.close()
    late = [{number: LATE} for number, step in enumerate(steps) if LATE in FAULTS.get(step.call, ())]
    return _explore(setting, 2, late)


def _explore(setting: Setting, depth: int, begin: Sequence[dict[int, Action]]) -> Explored:
    """Every history that begins like one of ``begin``, in which at most ``depth`` things happen."""
    loop, row = VirtualTimeLoop(), plan(setting)
    known: dict[Any, int] = {}
    wrong: list[str] = []
    histories = alike = 0
    waiting = list(begin)
    try:
        while waiting:
            script = waiting.pop()
            found = run(loop, setting, row, script)
            histories += 1
            wrong.extend(f"{script}: {problem}" for problem in found.wrong)
            left = depth - len(script)
            if not left:
                continue
            for number in range(max(script, default=-1) + 1, len(found.steps)):
                step = found.steps[number]
                for action in (*actions(step.state, setting), *FAULTS.get(step.call, ())):
                    fault = action in FAULTS.get(step.call, ())
                    after = step.state if fault else happened(step.state, action)
                    key = (
                        number,
                        step.call,
                        step.answers,
                        step.states_shown,
                        after,
                        action if fault else None,
                    )
                    if known.get(key, 0) >= left:
                        alike += 1
                        continue
                    known[key] = left
                    waiting.append({**script, number: action})
    finally:
        loop.close()
    return Explored(histories, alike, tuple(wrong))
