"""Columns of many rows as text."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recovery.arrays.nested_arrays import thousands


@given(st.lists(st.integers(-999, 2**63 - 1)))
def test_numbers_have_the_commas_that_the_commands_write(values: list[int]) -> None:
    written = thousands(np.array(values, dtype=np.int64)).to_pylist()
    assert written == [f"{value:,}" for value in values]
