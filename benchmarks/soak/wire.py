"""Random incidents on the wire: served simulators, recovered by the tool in processes of its own."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from benchmarks.soak import Asked
from tests.wire.incidents import Told, incident

ROUNDS = 5_000
AT_ONCE = 2


def run(asked: Asked) -> int:
    """So many seeds; prints a summary, and each seed in which something was wrong. 0 where nothing was."""
    return asyncio.run(_run(asked.seeds(ROUNDS, first=1), asked.jobs or AT_ONCE))


async def _run(wanted: range, at_once: int) -> int:
    seeds = iter(wanted)
    told: list[Told] = []

    async def work() -> None:
        for seed in seeds:
            with tempfile.TemporaryDirectory() as directory:
                one = await incident(seed, Path(directory))
            told.append(one)
            if one.wrong:
                print(f"wire: seed {seed}: {'; '.join(one.wrong)}", flush=True)

    await asyncio.gather(*(work() for _ in range(at_once)))
    wrong = sum(bool(one.wrong) for one in told)
    print(
        f"wire: {len(told):,} incidents, {sum(one.offline for one in told):,} offline partitions,"
        f" {sum(one.elected for one in told):,} elected, {sum(len(one.faults) for one in told):,} faults while the"
        f" tool worked, {sum(one.killed for one in told):,} runs killed and resumed: {wrong:,} went wrong"
    )
    return 1 if wrong else 0
