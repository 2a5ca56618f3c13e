"""Replacements with faults between any two steps: nothing committed is lost, nothing unsafe sent, all end well."""

from __future__ import annotations

import pytest

from tests.repetitions import repetitions
from tests.unit.membership.random_replacement import rehearse

pytestmark = pytest.mark.long

SEEDS = repetitions(20, 200)
AT_ONCE = 20


@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
async def test_whatever_happens_between_its_steps_a_replacement_ends_as_it_was_wanted(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        told = await rehearse(seed)
        assert not told.wrong, f"seed {seed}: {told.wrong}; {told.kind}, sent {told.sent}, {told.faults}"
