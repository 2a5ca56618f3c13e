"""The simulator's own tests replay every run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import kept_runs


@pytest.fixture(autouse=True)
def replayed() -> Iterator[None]:
    with kept_runs.replayed():
        yield
