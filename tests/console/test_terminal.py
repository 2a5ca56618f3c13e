"""The main story in a real terminal, and every way out of it: the terminal is left as it was found."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console.robot import records
from tests.console.tmux import Terminal, is_running
from tests.unit.cli.command_process import invoke

pytestmark = pytest.mark.long

SIZES = [(80, 24), (200, 50)]


@pytest.fixture
def terminal(home: Path) -> Iterator[Terminal]:
    shown = Terminal(home, 80, 24)
    yield shown
    shown.close()


@pytest.mark.parametrize("size", SIZES, ids=["80x24", "200x50"])
def test_a_partition_is_recovered_over_a_real_terminal(home: Path, size: tuple[int, int]) -> None:
    terminal = Terminal(home, *size)
    try:
        confirms(terminal)
        # Elected is not yet the end: until the partition is verified, q asks whether to leave all the same.
        terminal.sees("leads", "B writes back")
        terminal.types("q")
        assert terminal.ended() == 0
        assert terminal.is_sane()
    finally:
        terminal.close()
    (lines,) = records(home)
    assert lines[0]["reason"] == "drill"


def confirms(terminal: Terminal) -> None:
    """From the start to the confirmation of the demo's plan, by what the guide says."""
    terminal.starts("--simulate", "last-replica-standing", "--guide")
    terminal.sees("READ-ONLY", "SIMULATOR", "payments-0", "Press Enter")
    terminal.types("Enter")
    terminal.sees("1,560", "1,260", "Press c")
    terminal.types("c")
    terminal.sees("Press 6")
    terminal.types("6")
    terminal.sees("Press A")
    terminal.types("A")
    terminal.sees("ARMED", "press X")
    terminal.types("X")
    terminal.sees("[ Cancel ]", "payments")
    terminal.moves_on("BTab")
    terminal.moves_on("BTab")
    terminal.types("payments")
    terminal.sees("give a reason")
    terminal.moves_on()
    terminal.types("drill")
    terminal.sees("then Enter")
    terminal.moves_on()
    terminal.types("Enter")


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_in_the_middle_of_an_election_ends_it_first(
    terminal: Terminal, home: Path, signum: signal.Signals
) -> None:
    """The election is slowed down, by what is planted: a simulated controller answers at once."""
    planted = home / "sitecustomize.py"
    planted.write_text(
        "import sys\n"
        "if any('console.cli.main' in word for word in sys.orig_argv):\n"
        "    import asyncio, pathlib\n"
        "    from backends.simulator.adapter import SimulatorBackend\n"
        "    at_once, home = SimulatorBackend.designate, pathlib.Path(__file__).parent\n"
        "    async def slowly(self, *given, **more):\n"
        "        (home / 'sent').touch()\n"
        "        while not (home / 'let').exists():\n"
        "            await asyncio.sleep(0.02)\n"
        "        more['stop'] = False\n"
        "        return await at_once(self, *given, **more)\n"
        "    SimulatorBackend.designate = slowly\n",
        encoding="utf-8",
    )
    terminal.types(f"export PYTHONPATH={home}:$PYTHONPATH", "Enter")
    confirms(terminal)
    terminal.until((home / "sent").exists, "an election in flight")
    process = terminal.process()
    os.kill(process, signum)
    terminal.sees(f"{signum.name}: what is in flight is finished first")
    assert is_running(process)
    (home / "let").touch()
    assert terminal.ended() == 128 + signum
    assert terminal.is_sane()
    (lines,) = records(home)
    assert [line["action"] for line in lines if line["kind"] == "before"] == [
        "rescue",
        "planned-elections",
        "elect",
    ]
    assert [line["kind"] for line in lines][-2:] == ["after", "end"]
    assert "0 offline" in invoke(home, "ktriage", "status", "--simulate", "last-replica-standing").out


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_it_in_order(terminal: Terminal, signum: signal.Signals) -> None:
    terminal.starts("--simulate", "last-replica-standing")
    terminal.sees("payments-0")
    os.kill(terminal.process(), signum)
    assert terminal.ended() == 128 + signum
    assert terminal.is_sane()
    assert signum.name in terminal.whole


def test_a_session_that_is_lost_leaves_no_process_behind(terminal: Terminal, home: Path) -> None:
    terminal.starts("--simulate", "last-replica-standing")
    terminal.sees("payments-0")
    process = terminal.process()
    terminal.hangs_up()
    terminal.until(lambda: not is_running(process), "the end of a process without a terminal")
    assert not list(home.rglob("crash-*"))


def test_a_crash_leaves_the_terminal_whole_and_a_file_without_secrets(terminal: Terminal, home: Path) -> None:
    """The defect is planted: no real one is known."""
    planted = home / "sitecustomize.py"
    planted.write_text(
        "import sys\n"
        "if any('console.cli.main' in word for word in sys.orig_argv):\n"
        "    from console.app.main_screen.main_screen import MainScreen\n"
        "    def broken(self, name):\n"
        "        password = 'hunter2'\n"
        "        raise RuntimeError('sasl.password=hunter2 in ' + repr(self.pane))\n"
        "    MainScreen.act = broken\n",
        encoding="utf-8",
    )
    terminal.types(f"export PYTHONPATH={home}:$PYTHONPATH", "Enter")
    terminal.starts("--simulate", "last-replica-standing")
    terminal.sees("payments-0")
    terminal.types("?")
    assert terminal.ended() == 1
    assert terminal.is_sane()
    assert "its report is in" in terminal.whole
    assert "Traceback" not in terminal.whole
    (report,) = home.rglob("crash-*.txt")
    text = report.read_text(encoding="utf-8")
    assert "RuntimeError" in text
    assert "hunter2" not in terminal.whole + text


def test_bare_ktriage_offers_profiles_and_scenarios_and_opens_none_by_itself(
    terminal: Terminal, home: Path
) -> None:
    settings = home / "config" / "ktriage" / "clusters.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text("clusters: {production: {bootstrap: '127.0.0.1:9', colour: red}}", encoding="utf-8")
    terminal.starts()
    terminal.sees("production", "last-replica-standing")
    terminal.types("Escape")
    assert terminal.ended() == 0
    assert terminal.is_sane()


def test_without_a_terminal_it_says_so_and_ends(home: Path) -> None:
    ended = invoke(home, "ktriage", "--simulate", "last-replica-standing")
    assert ended.status == 2
    assert "needs a terminal" in ended.err


def test_options_of_the_console_before_a_command_are_refused(home: Path) -> None:
    ended = invoke(home, "ktriage", "--simulate", "last-replica-standing", "status")
    assert ended.status == 2
    assert "come after the command" in ended.err


def test_a_name_that_is_typed_in_one_burst_arrives_whole(terminal: Terminal) -> None:
    terminal.starts("--simulate", "zone-power-loss")
    terminal.sees("READ-ONLY", "payments-0")
    terminal.types("ford 17")
    terminal.sees("Find a partition in every pane", "ord 17")
    terminal.types("Escape")
    terminal.until(lambda: "Find a partition" not in terminal.screen, "the list again")
    terminal.types("4/102", "Enter")
    terminal.sees("filter '102'")
    terminal.until(lambda: "Enter keeps" not in terminal.screen, "the end of the filter's line")
    terminal.types("q")
    assert terminal.ended() == 0
