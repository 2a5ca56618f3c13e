"""Random incidents, recovered by the tool through sockets while more happens (``make soak`` runs thousands)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wire.incidents import incident

SEEDS = range(1, 31)


@pytest.mark.parametrize("seed", SEEDS)
async def test_what_was_promised_is_kept(seed: int, tmp_path: Path) -> None:
    told = await incident(seed, tmp_path)
    assert not told.wrong, told
