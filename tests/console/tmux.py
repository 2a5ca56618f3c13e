"""A real terminal: tmux on a socket of its own, driven by keys and read by its screen."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.unit.cli.command_process import command_line, environment

PATIENCE = 45.0
STATUS = "ended with status"


class Terminal:
    """One shell in a window of ``columns`` by ``lines``. Ends its own server, and nothing else."""

    def __init__(self, home: Path, columns: int, lines: int) -> None:
        program = shutil.which("tmux")
        assert program is not None, "tmux is needed for this test (apt install tmux)"
        self._tmux = (program, "-S", str(home / "tmux"), "-f", os.devnull)
        self._home = home
        shell = "PS1='$ ' sh"
        size = ("-x", str(columns), "-y", str(lines))
        self._run("new-session", "-d", "-s", "t", *size, shell, env=environment(home, LANG="C.UTF-8"))
        self._run("set-option", "-g", "remain-on-exit", "on")
        self.sees("$")
        self._settings = self.settings()

    def _run(self, *words: str, env: dict[str, str] | None = None) -> str:
        done = subprocess.run(
            [*self._tmux, *words], env=env, capture_output=True, text=True, timeout=30, check=True
        )
        return done.stdout

    def types(self, *keys: str) -> None:
        """Keys by tmux's names; a word that is none is typed."""
        self._run("send-keys", "-t", "t", *keys)

    def moves_on(self, key: str = "Tab") -> None:
        """To the next field; what is typed then is typed there."""
        before = self._run("capture-pane", "-p", "-e", "-t", "t")
        self.types(key)
        self.until(lambda: self._run("capture-pane", "-p", "-e", "-t", "t") != before, "the next field")

    def starts(self, *arguments: str) -> None:
        """``ktriage ARGUMENTS…``, with its exit status said when it has ended."""
        line = shlex.join(command_line("ktriage", *arguments))
        script = self._home / "start.sh"
        script.write_text(f'{line}\necho "{STATUS} $?"\n', encoding="utf-8")
        self.types(f"sh {script}", "Enter")

    @property
    def screen(self) -> str:
        return self._run("capture-pane", "-p", "-t", "t")

    @property
    def whole(self) -> str:
        """The screen and what was scrolled off it."""
        return self._run("capture-pane", "-p", "-S", "-", "-t", "t")

    def until(self, condition: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"never came: {what}\n{self._last_screen()}")
            time.sleep(0.05)

    def _last_screen(self) -> str:
        try:
            return self.screen
        except subprocess.CalledProcessError:
            return "(the window is closed)"

    def sees(self, *texts: str) -> None:
        self.until(lambda: all(text in self.screen for text in texts), f"{texts} on the screen")

    def ended(self) -> int:
        """The exit status, once it has ended."""
        self.until(lambda: STATUS in self.screen, "the end of it")
        return int(self.screen.rpartition(STATUS)[2].split()[0])

    def settings(self) -> str:
        """What stty says of this terminal."""
        file = self._home / "stty"
        file.unlink(missing_ok=True)
        self.types(f"stty -g > {file}.new; mv {file}.new {file}", "Enter")
        self.until(file.exists, "stty's answer")
        return file.read_text(encoding="utf-8")

    def is_sane(self) -> bool:
        """As it was found: settings, no alternate screen, no mouse, a cursor."""
        flags = self._run(
            "display-message", "-p", "-t", "t", "#{alternate_on}#{mouse_any_flag}#{cursor_flag}"
        )
        return flags.strip() == "001" and self.settings() == self._settings

    def process(self) -> int:
        """The console's process id."""
        parent = self._run("display-message", "-p", "-t", "t", "#{pane_pid}").strip()
        found: list[int] = []

        def process_runs() -> bool:
            found[:] = [pid for pid in _children(int(parent)) if "console.cli.main" in _command(pid)]
            return bool(found)

        self.until(process_runs, "the console's process")
        return found[-1]

    def hangs_up(self) -> None:
        """The window is closed, as when an ssh session is lost."""
        self._run("kill-pane", "-t", "t")

    def close(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, timeout=30, check=False)


def is_running(pid: int) -> bool:
    """Whether that process is there and is no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def _children(parent: int) -> list[int]:
    """All descendants of a process."""
    try:
        text = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="utf-8")
    except OSError:
        return []
    children = [int(word) for word in text.split()]
    return [*children, *(grand for child in children for grand in _children(child))]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
