"""Starts Java processes that end together with this process.

Linux signals a child when the *thread* that started it ends. So one thread starts every child and lives as long as
the process; a killed test run leaves no Kafka behind.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import IO, NamedTuple

from testbed.kafka.errors import TestbedError

_PR_SET_PDEATHSIG = 1
_LOWEST_JAVA = 17
_SPAWNER = ThreadPoolExecutor(1, thread_name_prefix="testbed-spawn")
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def spawn(argv: list[str], *, cwd: Path, output: IO[bytes]) -> subprocess.Popen[bytes]:
    """Starts ``argv`` in its own session (Ctrl-C does not reach it); it gets SIGKILL when this process ends."""
    parent = os.getpid()

    def die_with_parent() -> None:
        if _LIBC is not None:
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            argv,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - only calls into libc, which is loaded already
        )

    return _SPAWNER.submit(start).result()


class _Java(NamedTuple):
    path: str
    version: str


def java() -> str:
    """The path of the ``java`` to use: JAVA_HOME's, else PATH's. Raises TestbedError if it is missing or old."""
    return _java().path


def java_version() -> str:
    """That Java's full version, like ``17.0.15+6-Debian-1``, fit for a file name."""
    return re.sub(r"[^\w.+-]", "_", _java().version)


@cache
def _java() -> _Java:
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not found or not Path(found).exists():
        raise TestbedError("no java found: install a Java 17 runtime, or set JAVA_HOME")
    argv = [found, "-XshowSettings:properties", "-version"]
    shown = subprocess.run(argv, capture_output=True, text=True, check=False).stderr
    values = dict(line.strip().partition(" = ")[::2] for line in shown.splitlines() if " = " in line)
    version = values.get("java.specification.version", "")
    if not version.isdigit() or int(version) < _LOWEST_JAVA:
        raise TestbedError(f"Kafka needs Java {_LOWEST_JAVA} or later; {found} is {version or 'not a Java'}")
    return _Java(found, values.get("java.runtime.version", version))
