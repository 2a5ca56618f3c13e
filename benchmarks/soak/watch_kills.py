"""``ktriage pipeline watch`` killed at random moments and run again: every row is in its tables once."""

from __future__ import annotations

import json
import random
import subprocess
import tempfile
from pathlib import Path

from benchmarks.soak import SoakOptions
from tests.pipeline.watched_logs import expected_rows, watching, written_logs, written_rows

ROUNDS = 10
"""How often it is killed."""
BATCHES = 60_000
"""Record batches of each log: so many that all the kills together come before the end."""
FIRST, LONGEST = 8.0, 30.0
"""Seconds after the start within which a run is killed; Spark needs the first to start."""
END_SECONDS = 1800


def run(options: SoakOptions) -> int:
    """0 if the tables have what the logs say, each row once."""
    with tempfile.TemporaryDirectory(prefix="ktriage-soak-") as home:
        root = Path(home)
        logs = written_logs(root, BATCHES)
        killed = [_killed(root, seed) for seed in options.seeds(ROUNDS)]
        with watching(root, "--output", "json") as process:
            out, said = process.communicate(timeout=END_SECONDS)
        if process.returncode != 0:
            raise AssertionError(said)
        last = json.loads(out.splitlines()[-1]) if out else {}
        pairs = zip(("events", "incidents"), written_rows(root), expected_rows(logs), strict=True)
        wrong = [name for name, written, expected in pairs if written != expected]
    print(
        f"watch kills: {sum(killed)} of {len(killed)} runs killed before they ended,"
        f" {last.get('batch', 0) + 1} micro-batches, {len(wrong)} tables wrong {' '.join(wrong)}".rstrip()
    )
    return 1 if wrong else 0


def _killed(root: Path, seed: int) -> bool:
    """False if it ended before."""
    wait = random.Random(seed).uniform(FIRST, LONGEST)  # noqa: S311  # a test
    with watching(root) as process:
        try:
            process.communicate(timeout=wait)
        except subprocess.TimeoutExpired:
            return True
    return False
