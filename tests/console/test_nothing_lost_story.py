"""The stale long tail in a real terminal of 80 by 24: from the alarm until every record is there again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console.robot import records
from tests.console.tmux import Terminal
from tests.unit.cli.command_process import invoke

pytestmark = pytest.mark.long


@pytest.fixture
def terminal(home: Path) -> Iterator[Terminal]:
    shown = Terminal(home, 80, 24)
    yield shown
    shown.close()


def fills_in(terminal: Terminal, typed: str, asked: str) -> None:
    """What has to be typed and a reason; then the button that confirms."""
    terminal.sees("[ Cancel ]", asked)
    terminal.moves_on("BTab")
    terminal.moves_on("BTab")
    terminal.types(typed)
    terminal.sees("give a reason")
    terminal.moves_on()
    terminal.types("incident 1")
    terminal.sees("then Enter")
    terminal.moves_on()
    terminal.types("Enter")


def test_from_the_alarm_to_nothing_lost_by_what_the_guide_says(terminal: Terminal, home: Path) -> None:
    disk = home / "broker-3.json"
    disk.write_text(invoke(home, "ktriage", "simulate", "disk", "stale-long-tail", "3").out, encoding="utf-8")
    terminal.starts("--simulate", "stale-long-tail", "--guide")
    terminal.sees("READ-ONLY", "1 offline", "The logs differ.", "Press Enter")
    terminal.types("Enter")
    terminal.sees("1,500", "1,300", "not answered", "Press c")
    terminal.types("i")
    terminal.sees("Log of a silent replica, from its disk")
    terminal.types(str(disk), "Enter")
    terminal.sees("1 log of broker 3 from its disk")
    terminal.types("c")
    terminal.sees("Keep which log of payments-0?", "► wait: leave it as it is", "Guide: answer what is asked")
    terminal.types("Down")
    terminal.sees("► 2 loses 500", "500 committed")
    terminal.types("Enter")
    terminal.sees("Press 6")
    terminal.types("6")
    terminal.sees("Press A")
    terminal.types("A")
    terminal.sees("ARMED", "press X")
    terminal.types("X")
    terminal.sees("Read first:")
    fills_in(terminal, "payments", "the name of the topic that may lose something")
    terminal.sees("Broker 2 leads payments-0. 500 offsets saved", "0 offline", "Press B")
    terminal.types("B")
    terminal.sees("Write the records of which rescue back?")
    terminal.types("Enter")
    terminal.sees("► to the partitions they come from")
    terminal.types("Enter")
    fills_in(terminal, "500", "Write 500 records back?")
    terminal.sees("500 records written back; 500 counted", "Guide: nothing is lost: 800 of 800 records")
    terminal.types("q")
    assert terminal.ended() == 0
    assert terminal.is_sane()
    sent = [line["action"] for run in records(home) for line in run if line.get("kind") == "before"]
    assert sent == ["rescue", "planned-elections", "elect", "restore-records"]
