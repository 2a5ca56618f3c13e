"""Signals at every moment: nothing half done is left unsaid, and the status tells which signal it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.unit.cli.command_process import command_line, environment

RECOVER = (
    "recover",
    "--bootstrap-server",
    "kafka:9092",
    "--all-offline-partitions",
    "--automated-recovery",
    "--output",
    "json",
)


@contextmanager
def standing(home: Path, moment: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command, once it stands at the moment."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.unit.cli.stoppable_jobs", moment, *arguments],
        env=environment(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        said(process, f"{moment}\n")
        yield process
    finally:
        process.kill()
        process.communicate()


def said(process: subprocess.Popen[str], what: str) -> None:
    """Comes back when the process has said it on stderr."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if line.startswith(what):
            return
    raise AssertionError("".join(lines))


@pytest.mark.parametrize("signum", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_before_anything_was_sent_a_signal_ends_it_at_once(tmp_path: Path, signum: signal.Signals) -> None:
    with standing(tmp_path, "survey", *RECOVER) as process:
        process.send_signal(signum)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signum
    assert out == ""
    assert f"stopped by {signum.name}; nothing was in flight" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("signum", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_what_is_in_flight_is_finished_and_the_rest_is_told(tmp_path: Path, signum: signal.Signals) -> None:
    with standing(tmp_path, "flight", *RECOVER) as process:
        process.send_signal(signum)
        said(process, f"{signum.name}: finishing or undoing what is in flight")
        out, err = process.communicate("go on", timeout=60)
    assert process.returncode == 128 + signum
    told = json.loads(out)
    assert [row["outcome"] for row in told["elections"]] == ["not attempted"] * 3
    assert "not recovered: orders-0: not attempted; stopped before its turn" in err
    assert "next: ktriage apply " in err
    assert "--bootstrap-server kafka:9092" in err


def test_a_second_signal_leaves_at_once_and_says_how_to_go_on(tmp_path: Path) -> None:
    with standing(tmp_path, "hanging", *RECOVER) as process:
        process.send_signal(signal.SIGTERM)
        said(process, "SIGTERM: finishing or undoing")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert "may be unfinished; to finish or undo it: ktriage resume --bootstrap-server kafka:9092" in err


def test_a_loop_that_stands_still_does_not_keep_a_second_signal_out(tmp_path: Path) -> None:
    with standing(tmp_path, "stuck", *RECOVER) as process:
        process.send_signal(signal.SIGTERM)
        said(process, "SIGTERM: finishing or undoing")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 143


def test_what_does_not_end_in_time_is_left_with_its_status(tmp_path: Path) -> None:
    with standing(tmp_path, "hanging", *RECOVER) as process:
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 143
    assert "what was in flight may be unfinished" in err
    assert "ktriage resume --bootstrap-server kafka:9092" in err


def test_an_ignored_hangup_stays_ignored(tmp_path: Path) -> None:
    """As under nohup: the terminal goes away and the recovery goes on."""
    ignore = "signal.signal(signal.SIGHUP, signal.SIG_IGN)"
    code = f"import os, signal, sys; {ignore}; os.execv(sys.argv[1], sys.argv[1:])"
    line = [sys.executable, "-m", "tests.unit.cli.stoppable_jobs", "survey", *RECOVER]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *line],
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        assert any(text.strip() == "survey" for text in iter(process.stderr.readline, ""))
        assert _mask(process.pid, "SigIgn:") >> (signal.SIGHUP - 1) & 1
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 143
    assert "SIGHUP" not in err


def test_a_signal_while_it_starts_is_its_status_and_no_traceback(tmp_path: Path) -> None:
    for _ in range(5):
        process = subprocess.Popen(
            command_line("ktriage", "replicas", "--bootstrap-server", "192.0.2.1:9092"),
            env=environment(tmp_path),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        while not _catches(process.pid, signal.SIGTERM):
            if process.poll() is not None:
                break
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 143
        assert "Traceback" not in err


def _mask(pid: int, name: str) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith(name)), 0)


def _catches(pid: int, signum: int) -> bool:
    os.sched_yield()
    return bool(_mask(pid, "SigCgt:") >> (signum - 1) & 1)
