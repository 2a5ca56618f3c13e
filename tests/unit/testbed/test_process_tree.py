"""The CPU time of a benchmark's command is that of everything that it started."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.pipeline.process_tree import measured

BURN_S = 2.0

WORKER_THAT_NOBODY_WAITS_FOR = f"""
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
read, write = os.pipe()
if os.fork() == 0:
    while time.process_time() < {BURN_S}:
        pass
    os._exit(0)
os.close(write)
os.read(read, 1)
"""
"""As Spark's daemon starts its Python workers."""


@pytest.mark.long
def test_a_worker_whose_end_is_ignored_is_counted(tmp_path: Path) -> None:
    found = measured((sys.executable, "-c", WORKER_THAT_NOBODY_WAITS_FOR), tmp_path)
    assert found.cpu > BURN_S / 2
