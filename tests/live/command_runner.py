"""Runs commands against real clusters as a shell does, with checks for every command."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tests.command_server import ROOT, Ended
from tests.unit.cli.command_process import command_line, invoke, typing


class CommandRunner:
    """Runs commands on one cluster, with settings and records in ``home``.

    ``settle`` is called before each command: an operator types more slowly than brokers apply metadata.
    """

    def __init__(self, home: Path, bootstrap: str, settle: Callable[[], object] = lambda: None) -> None:
        self.home = home
        self._settle = settle
        self.connection: tuple[str, ...] = ("--bootstrap-server", bootstrap)

    def __call__(self, name: str, *arguments: str) -> Ended:
        """``ktriage``'s command of that name, or one of Kafka's names."""
        self._settle()
        words = (name,) if name.startswith("kafka-") else ("ktriage", name)
        ended = invoke(self.home, words[0], *words[1:], *arguments, *self.connection)
        assert "Traceback" not in ended.err, ended
        return ended

    def without_cluster(self, name: str, *arguments: str) -> Ended:
        """Runs a command of ``ktriage`` that asks no cluster."""
        ended = invoke(self.home, "ktriage", name, *arguments)
        assert "Traceback" not in ended.err, ended
        return ended

    def json(self, name: str, *arguments: str) -> tuple[int, dict[str, Any]]:
        """The status and the document; docs/output.md has every key of it."""
        ended = self(name, *arguments, "--output", "json")
        assert ended.out, str(ended)
        document: dict[str, Any] = json.loads(ended.out)
        undocumented = set(document) - {"schema"} - documented(document["schema"])
        assert not undocumented, f"{document['schema']}: {undocumented}"
        return ended.status, document

    def typing(self, answer: str, name: str, *arguments: str) -> Ended:
        """Runs it on a terminal and types ``answer`` at its question; the question is in ``err``."""
        self._settle()
        words = (name,) if name.startswith("kafka-") else ("ktriage", name)
        line = command_line(words[0], *words[1:], *arguments, *self.connection)
        return typing(self.home, line, answer)

    def plan_aggressively(self, *topics: str) -> None:
        """Writes plan.json, which elects the best of those that answer; every partition is in it."""
        named = [word for topic in topics for word in ("--topic", topic)]
        ended = self("plan", *named, "--strategy", "aggressive", "plan.json")
        assert ended.status == 0, ended

    def sent(self) -> list[str]:
        """The actions that were sent, in order, from the journal."""
        ended = invoke(self.home, "ktriage", "journal", "--output", "json")
        runs = json.loads(ended.out)["runs"]
        return [e["action"] for run in runs for e in run["events"] if e["kind"] == "before"]


@cache
def documented(schema: str) -> frozenset[str]:
    """The keys of that document that docs/output.md names."""
    rows = [line for line in (ROOT / "docs/output.md").read_text().splitlines() if f"`{schema}`" in line]
    return frozenset(re.findall(r"`(\w+)`", " ".join(rows)))
