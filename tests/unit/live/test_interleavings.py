"""A designated election, and somebody else who does any one thing between any two of its steps."""

from __future__ import annotations

import pytest

from tests.unit.live.interleavings import explore, explore_late
from tests.unit.live.other_actor import REPLICAS, Setting, plan, settings

ALL = frozenset(REPLICAS)
NEWER, LONGER, SHORTER = (2, 15), (1, 20), (1, 10)

CLUSTERS = {
    "the best log needs the order": Setting((SHORTER, NEWER, LONGER), frozenset({1, 2}), ALL),
    "the best log is on a fenced broker": Setting((SHORTER, LONGER, NEWER), frozenset({1, 2}), ALL),
    "a silent broker has the best log": Setting((SHORTER, LONGER, NEWER), ALL, frozenset({1, 2})),
    "the best log is on a dead broker": Setting(
        (SHORTER, LONGER, NEWER), frozenset({1, 2}), frozenset({1, 2})
    ),
    "the ELR is dead": Setting((SHORTER, LONGER, NEWER), frozenset({1, 2}), frozenset({1, 2}), elr=(3,)),
    "equal logs": Setting((LONGER, LONGER, LONGER), ALL, ALL),
    "one replica is left": Setting((NEWER, LONGER, SHORTER), frozenset({3}), frozenset({3})),
}


@pytest.mark.parametrize("native", [False, True], ids=["by order", "natively"])
@pytest.mark.parametrize("name", CLUSTERS)
def test_whatever_happens_between_two_steps(name: str, native: bool) -> None:
    found = explore(CLUSTERS[name]._replace(native=native), depth=1)
    assert not found.wrong, found.wrong[:5]
    assert found.histories > 100


@pytest.mark.parametrize("native", [False, True], ids=["by order", "natively"])
@pytest.mark.parametrize("name", CLUSTERS)
def test_whatever_happens_after_a_request_that_is_not_answered(name: str, native: bool) -> None:
    found = explore_late(CLUSTERS[name]._replace(native=native))
    assert not found.wrong, found.wrong[:5]
    assert found.histories > 50


def test_the_settings_are_all_that_three_replicas_and_two_epochs_can_be() -> None:
    found = list(settings())
    assert len(found) == len(set(found)) > 3_000
    assert all(plan(setting).leader in setting.live for setting in found)
