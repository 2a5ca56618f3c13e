"""The recovery tool as a process, on a host of its own."""

from __future__ import annotations

import json
import resource
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.unit.cli.command_process import command_line, environment

TOOL_SECONDS = 240.0


class RecoveryTool:
    """Its settings and records are in ``home``, so that two tools stand for two hosts. ``connection`` are the
    options that reach the cluster.
    """

    def __init__(self, home: Path, connection: Iterable[str]) -> None:
        self.home = home
        self._connection = tuple(connection)
        home.mkdir()

    @contextmanager
    def started(
        self, *words: str, connection: Iterable[str] | None = None
    ) -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen(
            [*command_line("ktriage", *words), *(self._connection if connection is None else connection)],
            env=environment(self.home),
            cwd=self.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def run(self, *words: str) -> tuple[int, str, str]:
        """The exit status, stdout and stderr."""
        with self.started(*words) as process:
            out, err = process.communicate(timeout=TOOL_SECONDS)
        return process.returncode, out, err

    def has_begun(self) -> bool:
        """Whether its journal has a change."""
        return any('"kind":"before"' in path.read_text() for path in self._journals())

    def fill_disk(self, process: subprocess.Popen[str], room: int) -> None:
        """The journal cannot grow by more than ``room`` bytes any more, as on a full disk."""
        size = max((path.stat().st_size for path in self._journals()), default=0)
        _, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size + room, hard))

    def _journals(self) -> Iterator[Path]:
        return self.home.rglob("*.jsonl")


def elections_of(out: str) -> Mapping[int, Mapping[str, Any]]:
    """The elections that an ``apply`` reported in JSON, by partition; empty if it did not get to report."""
    reported = json.loads(out) if out.strip().startswith("{") else {}
    return {row["partition"]: row for row in reported.get("elections", ())}
