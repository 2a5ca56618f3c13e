"""What a person at a terminal is asked before voters are changed, and what a signal at the question does."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backends.simulator.adapter import SimulatorBackend
from backends.simulator.loop import SECOND
from console.cli.base.run import Run
from console.output.screen import Screen
from tests.unit.cli.command_process import Caller, command_line, environment
from tests.unit.membership.controllers_only import BC, reached
from tests.unit.membership.random_replacement import cluster

DISK = ("--simulate", "controller-disk-failure")
Answers = Callable[[str], str]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Caller:
    return Caller(monkeypatch, tmp_path)


def at_a_terminal(monkeypatch: pytest.MonkeyPatch, answers: Answers) -> list[str]:
    """Somebody who answers; returns what they are asked."""
    asked: list[str] = []

    async def ask(_run: Run, question: str) -> str:
        asked.append(question)
        return answers(question)

    monkeypatch.setattr(Screen, "interactive", True)
    monkeypatch.setattr(Run, "ask", ask)
    return asked


def later(backend: SimulatorBackend, seconds: int) -> None:
    """So much of the cluster's time passes while somebody thinks."""
    backend.simulation.advance_to(backend.simulation.now + seconds * SECOND)


def test_a_removal_is_refused_where_another_voter_died_while_it_was_asked(
    call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = cluster((100, 101, 102))
    reached(monkeypatch, backend)

    def answers(_question: str) -> str:
        backend.simulation.world.kill_controller(101)
        later(backend, 8)
        return "102"

    at_a_terminal(monkeypatch, answers)
    ended = call("ktriage", "quorum", "remove", "102", *BC)
    assert ended.status == 1
    (refused,) = [line for line in ended.err.splitlines() if line.startswith("refused: ")]
    assert "the quorum has changed since this was shown: 101-" in refused
    assert "the new set could not commit" in refused
    assert "nothing was sent" in ended.err.splitlines()
    assert "next: ktriage quorum status" in ended.err
    assert "sent: " not in ended.err
    assert "remove-voter" not in call("ktriage", "journal", *BC).out


def test_a_removal_that_is_still_safe_is_sent_and_says_what_it_waits_for(
    call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = cluster((100, 101, 102))
    reached(monkeypatch, backend)

    def answers(_question: str) -> str:
        later(backend, 8)
        return "102"

    at_a_terminal(monkeypatch, answers)
    ended = call("ktriage", "quorum", "remove", "102", *BC)
    assert ended.status == 0, str(ended)
    assert "sent: remove voter 102-" in ended.err


def test_the_upgrade_is_refused_where_a_voter_died_while_it_was_asked(
    call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = cluster((100, 101, 102), kraft_version=0)
    reached(monkeypatch, backend)

    def answers(_question: str) -> str:
        backend.simulation.world.kill_controller(101)
        later(backend, 8)
        return "1"

    at_a_terminal(monkeypatch, answers)
    ended = call("ktriage", "quorum", "upgrade", *BC)
    assert ended.status == 1
    assert "refused: voter 101" in ended.err
    assert "nothing was sent" in ended.err


def test_a_disk_is_asked_for_once_for_its_removal_and_its_addition(
    call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = at_a_terminal(monkeypatch, lambda question: "yes" if "Type yes" in question else "102")
    ended = call("ktriage", "quorum", "replace", "102", "--why", "disk", *DISK)
    assert ended.status == 0, str(ended)
    assert len(asked) == 2
    assert "To remove voter 102-" in asked[1]
    assert " and then add voter 102-" in asked[1]


def test_a_number_that_is_not_the_nodes_allows_neither(call: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = at_a_terminal(monkeypatch, lambda question: "yes" if "Type yes" in question else "101")
    ended = call("ktriage", "quorum", "replace", "102", "--why", "disk", *DISK)
    assert ended.status == 1
    assert len(asked) == 2
    assert "declined at step 4" in ended.err
    assert "is no voter" not in next(line for line in ended.err.splitlines() if "declined" in line)


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Ours and theirs."""
    ends = pty.openpty()
    yield ends
    for end in ends:
        os.close(end)


def test_ctrl_c_at_the_question_ends_it_at_once_and_says_nothing_false(
    tmp_path: Path, terminal: tuple[int, int]
) -> None:
    ours, theirs = terminal
    line = command_line("ktriage", "quorum", "replace", "102", "--why", "disk", *DISK)
    process = subprocess.Popen(
        line, env=environment(tmp_path), cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs
    )
    try:
        _until(ours, "Type yes:")
        os.write(ours, b"yes\n")
        _until(ours, "type the node id:")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130
    finally:
        process.kill()
        process.wait()
    said = _until(ours, "ktriage resume")
    assert "stopped at step 4" in said
    assert "SIGINT: stopped at the question; nothing was sent for it" in said
    assert "finishing or undoing" not in said
    assert "declined" not in said
    # What is typed next is the shell's.
    os.write(ours, b"echo next\n")
    assert select.select([theirs], [], [], 5)[0]
    assert os.read(theirs, 4096) == b"echo next\n"


def _until(terminal: int, text: str) -> str:
    """What is said up to there, whatever the lines are folded at."""
    said, deadline = "", time.monotonic() + 120
    while text not in (read := " ".join(said.split())) and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.5)[0]:
            said += os.read(terminal, 65536).decode()
    assert text in read, said
    return read
