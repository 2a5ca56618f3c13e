"""Runs as processes: a signal ends one at any time with one line and nothing left."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.results import read_results
from pipeline.storage import storage_path
from pipeline.tables.delta_table import is_table
from pipeline.tables.schemas import PLANS
from tests.pipeline.brief_java import BRIEF_JAVA
from tests.pipeline.partition_histories import files_of
from tests.pipeline.survey_strategies import surveys, write
from tests.repetitions import repetitions
from tests.unit.cli.command_process import command_line, environment

SECONDS = 120


def has_java(process: subprocess.Popen[str], _out: Path) -> bool:
    return bool(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())


def has_begun(_process: subprocess.Popen[str], out: Path) -> bool:
    return any(out.glob("plans/run_id=*/*"))


MOMENTS = [(signal.SIGINT, has_java), (signal.SIGTERM, has_begun), (signal.SIGINT, has_begun)]


@pytest.mark.parametrize(("signum", "when"), MOMENTS[: repetitions(2, 3)])
def test_a_run_that_is_stopped_says_so_and_leaves_nothing(
    tmp_path: Path, signum: signal.Signals, when: Callable[[subprocess.Popen[str], Path], bool]
) -> None:
    write(storage_path(str(tmp_path / "lake")), "c", surveys(1, 2_000))
    words = ("pipeline", "plan", "--in", "lake", "--out", "out", "--all")
    with subprocess.Popen(
        command_line("ktriage", *words),
        cwd=tmp_path,
        env=environment(tmp_path, SPARK_SUBMIT_OPTS=BRIEF_JAVA),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        until = time.monotonic() + SECONDS
        while not when(process, tmp_path / "out"):
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.01)
        os.kill(process.pid, signum)
        _, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 128 + signum, said
    lines = [line for line in said.splitlines() if not line.startswith("WARNING: Using incubator")]
    assert lines == [f"ktriage: stopped by {signum.name}; nothing was in flight"]
    assert read_results(storage_path(str(tmp_path / "out"))) == ()
    out = storage_path(str(tmp_path / "out"))
    assert not is_table(out, PLANS) or files_of(out, PLANS) == []
