"""Runs as processes: a signal ends one at any time with one line and nothing left, and stdout is the document."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.storage import storage_path
from tests.pipeline.survey_strategies import surveys, write
from tests.unit.cli.command_process import command_line, environment

SECONDS = 120


def has_java(process: subprocess.Popen[str], _out: Path) -> bool:
    return bool(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())


def has_begun(_process: subprocess.Popen[str], out: Path) -> bool:
    return any(out.glob("plan-*/plans/*"))


@pytest.mark.parametrize(
    ("signum", "when"), [(signal.SIGINT, has_java), (signal.SIGINT, has_begun), (signal.SIGTERM, has_begun)]
)
def test_a_run_that_is_stopped_says_so_and_leaves_nothing(
    tmp_path: Path, signum: signal.Signals, when: Callable[[subprocess.Popen[str], Path], bool]
) -> None:
    write(storage_path(str(tmp_path / "lake")), "c", surveys(1, 2_000))
    words = ("pipeline", "plan", "--in", "lake", "--out", "out", "--all")
    with subprocess.Popen(
        command_line("ktriage", *words),
        cwd=tmp_path,
        env=environment(tmp_path),
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
    assert not list((tmp_path / "out").glob("*"))


def test_what_the_java_remarks_does_not_stand_in_the_document(tmp_path: Path) -> None:
    write(storage_path(str(tmp_path / "lake")), "c", surveys(1, 10))
    words = ("pipeline", "plan", "--in", "lake", "--out", "out", "--all", "--output", "json")
    ended = subprocess.run(
        command_line("ktriage", *words),
        cwd=tmp_path,
        env={**environment(tmp_path), "SPARK_SUBMIT_OPTS": "-Xlog:gc"},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["job"] == "plan"
