"""The wizard over a real terminal, at the size that a console server gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console.robot import records
from tests.console.tmux import Terminal

pytestmark = pytest.mark.long


@pytest.fixture
def terminal(home: Path) -> Iterator[Terminal]:
    shown = Terminal(home, 80, 24)
    yield shown
    shown.close()


def sends(terminal: Terminal) -> None:
    """Reads what is to be sent, types the node's id, goes to the button and presses it."""
    terminal.sees("Enter: ")
    terminal.types("Enter")
    terminal.sees("[ Cancel ]")
    terminal.moves_on("BTab")
    terminal.types("102")
    terminal.sees("then Enter")
    terminal.moves_on()
    terminal.types("Enter")


def test_a_controller_gets_its_new_disk_over_a_real_terminal(terminal: Terminal, home: Path) -> None:
    terminal.starts("--simulate", "controller-disk-failure")
    terminal.sees("READ-ONLY", "no partition is offline", "A arm")
    terminal.types("A")
    terminal.sees("ARMED")
    terminal.types("4")
    terminal.sees("102")  # on top: it does not fetch
    terminal.types("M")
    terminal.sees("Why is controller 102 replaced?")
    terminal.types("Enter")
    terminal.sees("4. NOW", "Enter begins")
    terminal.types("Enter")
    sends(terminal)
    terminal.sees("the replacement is done")
    terminal.types("Escape")
    terminal.sees("ARMED", "q quit")
    terminal.types("q")
    assert terminal.ended() == 0
    assert terminal.is_sane()
    (lines,) = records(home)
    assert [line["action"] for line in lines if line["kind"] == "before"][1:] == ["remove-voter", "add-voter"]
