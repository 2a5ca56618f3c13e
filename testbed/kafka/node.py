"""One Kafka process, broker or controller: its files, and how to start, stop and break it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

from testbed.kafka.config import as_text
from testbed.kafka.errors import NodeDied, TestbedError
from testbed.kafka.java import spawn
from testbed.kafka.java_tools import JavaRunner
from testbed.kafka.wait import wait_until

MAIN_CLASS = "kafka.Kafka"
_WARNING = re.compile(r"^\S+ \S+ \[.*\] (WARN|ERROR|FATAL) ")


class Node:
    """A broker or controller of a cluster. Every method may be called in any state of the process.

    ``directory`` holds ``server.properties``, ``server.log`` (all runs, one after the other) and the log dirs.
    """

    def __init__(
        self,
        node_id: int,
        *,
        role: Literal["broker", "controller"],
        directory: Path,
        log_dirs: tuple[Path, ...],
        port: int,
        runner: JavaRunner,
    ) -> None:
        self.id = node_id
        self.role = role
        self.directory = directory
        self.log_dirs = log_dirs
        self.port = port
        self.log_file = directory / "server.log"
        self.properties_file = directory / "server.properties"
        self.directory_id = ""
        self.is_paused = False
        self._runner = runner
        self._process: subprocess.Popen[bytes] | None = None

    def __repr__(self) -> str:
        return f"<{self.role} {self.id} on 127.0.0.1:{self.port}, {'running' if self.is_running else 'down'}>"

    @property
    def is_running(self) -> bool:
        """Whether the process exists; a paused one does."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self.is_running else None

    def write_properties(self, properties: Mapping[str, str]) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.properties_file.write_text(as_text(properties))

    def change_properties(self, changed: Mapping[str, str]) -> None:
        """Overwrite single settings in the file; the process reads them when it starts again."""
        lines = (line.partition("=") for line in self.properties_file.read_text().splitlines())
        self.write_properties({key: value for key, _, value in lines} | dict(changed))

    def start(self, jvm: tuple[str, ...] = ()) -> None:
        """Start the process (harmless if it runs); ``jvm`` flags come after the cluster's and so win over them.

        Returns at once: wait for what you need with ``cluster.metadata``.
        """
        if self.is_running:
            return
        argv = self._runner.argv(MAIN_CLASS, str(self.properties_file), jvm=jvm, node=True)
        with self.log_file.open("ab") as log:
            self._process = spawn(argv, cwd=self.directory, output=log)

    def stop(self, timeout: float = 30.0) -> None:
        """SIGTERM, a clean shutdown; SIGKILL when that takes longer than ``timeout`` seconds."""
        self.resume()
        self._signal(signal.SIGTERM)
        if self._process is not None:
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """SIGKILL, as the kernel does when memory runs out; returns when the process is gone."""
        self._signal(signal.SIGKILL)
        self.is_paused = False
        if self._process is not None:
            self._process.wait()

    def pause(self) -> None:
        """SIGSTOP: the broker hangs; its connections stay open, without answers. Returns when it has stopped."""
        self._signal(signal.SIGSTOP)
        if self.pid is not None:
            # One thread takes the signal and then stops the others: until it had a core, they answer.
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        self.is_paused = self.is_running

    def resume(self) -> None:
        """SIGCONT: it continues as if nothing had happened."""
        self._signal(signal.SIGCONT)
        self.is_paused = False

    def restart(self, *, clean: bool = True, jvm: tuple[str, ...] = ()) -> None:
        if clean:
            self.stop()
        else:
            self.kill()
        self.start(jvm)

    def wait_exit(self, timeout: float = 30.0) -> int:
        """The exit status of a process that is expected to end on its own."""
        wait_until(lambda: not self.is_running, f"{self.role} {self.id} to end", timeout)
        return self._process.returncode if self._process is not None else 0

    def check_alive(self) -> None:
        """Raises NodeDied, with the end of its log, if the process was started and has ended."""
        if self._process is not None and not self.is_running:
            raise NodeDied(
                f"{self.role} {self.id} ended with status {self._process.returncode}\n{self.log_tail()}"
            )

    def log_tail(self, lines: int = 30) -> str:
        """The last lines of the node's log, and before them its last warnings and errors."""
        with suppress(FileNotFoundError), self.log_file.open(errors="replace") as log:
            warnings: deque[str] = deque(maxlen=10)
            last: deque[str] = deque(maxlen=lines)
            for line in log:
                last.append(line)
                if _WARNING.search(line):
                    warnings.append(line)
            return "".join((f"warnings of {self.log_file}:\n", *warnings, "its end:\n", *last))
        return f"{self.log_file} does not exist"

    def wipe_log_dir(self, index: int = 0) -> None:
        """Replaces log dir ``index`` with an empty one, not formatted; the node must be down."""
        if self.is_running:
            raise TestbedError(f"{self.role} {self.id} is running; stop it before wiping a log dir")
        remove_tree(self.log_dirs[index])
        self.log_dirs[index].mkdir(parents=True)

    def forget_quorum_leader(self) -> None:
        """Removes the ``quorum-state`` file of a broker that is down; it votes for nobody, so it loses nothing.

        One that ended before it had a record of the metadata log knows the leader's id by that file, and no voter's
        address: it ends at every start, when the leader's first answer finds it not to be a follower.
        """
        for log_dir in self.log_dirs:
            (log_dir / "__cluster_metadata-0" / "quorum-state").unlink(missing_ok=True)

    def remove_log_dir(self, index: int) -> None:
        """``rm -rf`` of a log dir while the node runs: the next write to it fails, as with a dead disk."""
        remove_tree(self.log_dirs[index])

    def _signal(self, number: signal.Signals) -> None:
        # The process is our unreaped child, so its id cannot belong to another process.
        if self._process is not None and self._process.poll() is None:
            os.kill(self._process.pid, number)


def remove_tree(path: Path) -> None:
    """Removes a directory in which a process may still create files."""

    def gone() -> bool:
        shutil.rmtree(path, ignore_errors=True)
        return not path.exists()

    wait_until(gone, f"{path} to be removed", 10.0, interval=0.02)
