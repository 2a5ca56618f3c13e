"""Every key of a document, at any depth, stands in docs/output.md: in its own row, or in a part that is shared."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.command_server import ROOT
from tests.live.command_runner import documented
from tests.unit.cli.command_process import Caller

TEXT = (ROOT / "docs/output.md").read_text(encoding="utf-8")
PARTS = frozenset(
    re.findall(r"`(\w+)`", TEXT.partition("### Parts that several")[2].partition("### Documents")[0])
)
BY_NAME = {
    "checked",
    "notElected",
    "acknowledgedLost",
    "outcomes",
    "verdicts",
    "features",
    "minIsrByBroker",
}
"""Objects whose keys are names or ids of Kafka's or words of the tables, and no part of the schema."""
REQUESTS = {"body", "detail"}
"""What is sent, as Kafka's own JSON files have it, or as the journal keeps it."""
COUNTED = {"ktriage.elect/3", "ktriage.resume/2", "ktriage.journal/2", "ktriage.report/3"}
"""Documents whose counts are by such words."""
AS = {
    "ktriage.elect/3": ("ktriage.apply/2", "ktriage.recover/3", "ktriage.rescue-read/1"),
    "ktriage.apply/2": ("ktriage.rescue-read/1",),
    "ktriage.recover/3": ("ktriage.rescue-read/1",),
    "ktriage.report/3": ("ktriage.journal/2", "ktriage.timeline/1"),
}
"""What the row says of itself: "as", then another command."""

AGREED = ("--yes", "--reason", "a test")
DISK = ("--simulate", "disk-failure")
TAIL = ("--simulate", "stale-long-tail", "--seed", "2")
QUORUM = ("--simulate", "controller-disk-failure")
AT = "CONTROLLER://controller-101.simulated:9093"
LINES: tuple[tuple[str, ...], ...] = (
    ("status", *DISK),
    ("replicas", "--all-offline-partitions", *DISK),
    ("check", *DISK),
    ("readiness", *DISK),
    ("gameday", "prepare", "friday.yaml", *DISK),
    ("plan", "--all-offline-partitions", "--strategy", "aggressive", "plan.json", *DISK),
    ("review", "plan.json", *DISK),
    ("recover", "--all-offline-partitions", "--show-replica-info", "--dry-run", *DISK),
    ("log-dirs", *DISK),
    ("log-dirs", "--if-fails", "3", *DISK),
    ("log-dirs", "--swap", "2:/kafka/1", *DISK),
    ("rescue", "read", "plan.json", "--to", "saved", *DISK),
    ("groups", "show", "plan.json", *DISK),
    ("groups", "fix", "plan.json", "--dry-run", *DISK),
    ("transactions", "show", "plan.json", *DISK),
    ("transactions", "fix", "plan.json", "--dry-run", *DISK),
    ("heal", "show", "--broker-id", "3", "--gone-for-good", *TAIL),
    ("apply", "plan.json", *AGREED, *DISK),
    ("apply", "plan.json", *AGREED, *DISK),
    ("verify", "plan.json", *DISK),
    ("elect", "--election-type", "preferred", "--all-topic-partitions", *DISK),
    ("elect", "--election-type", "longest-log", "--all-topic-partitions", "--yes", *DISK),
    ("resume", *DISK),
    ("journal", *DISK),
    ("report", "--plan", "plan.json", *DISK),
    ("recover", "--all-offline-partitions", "--automated-recovery", "--simulate", "stale-long-tail"),
    ("plan", "--strategy", "aggressive", "tail.json", *TAIL),
    ("apply", "tail.json", "--rescue", "tail", *AGREED, *TAIL),
    ("rescue", "show", "tail", "--records", "2"),
    ("restore", "tail", "--to-topic", "kept", *AGREED, *TAIL),
    ("quorum", "status", *QUORUM),
    ("quorum", "replication", *QUORUM),
    ("quorum", "add", "102", *AGREED, *QUORUM),
    ("quorum", "replace", "102", "--why", "disk", "--dry-run", *QUORUM),
    ("quorum", "remove", "102", *AGREED, *QUORUM),
    ("quorum", "update-endpoint", "101", "--endpoint", AT, *QUORUM),
    ("quorum", "status", "--simulate", "two-of-three-voters-lost"),
    ("quorum", "upgrade", "--dry-run", "--simulate", "static-quorum-upgrade"),
    ("journal", *QUORUM),
    ("simulate", "list"),
    ("simulate", "show", "disk-failure"),
    ("simulate", "run", "stale-long-tail", "--strategy", "aggressive"),
)


def keys(value: object, schema: str, name: str = "") -> Iterator[str]:
    """Those of the schema."""
    if isinstance(value, dict):
        if name in REQUESTS:
            return
        data = name in BY_NAME or (name == "counts" and schema in COUNTED)
        for key, inner in value.items():
            if not data:
                yield key
            yield from keys(inner, schema, key)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner, schema, name)


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Caller:
    return Caller(monkeypatch, tmp_path)


def test_every_key_is_documented(call: Caller) -> None:
    schemas = set()
    for words in LINES:
        ended = call("ktriage", *words, "--output", "json")
        assert ended.out, (words, ended)
        found = json.loads(ended.out)
        schema = found.pop("schema")
        schemas.add(schema)
        known = PARTS.union(*(documented(name) for name in (schema, *AS.get(schema, ()))))
        unknown = set(keys(found, schema)) - known
        assert not unknown, f"{' '.join(words)}: {sorted(unknown)} of {schema}"
    assert len(schemas) >= 20
