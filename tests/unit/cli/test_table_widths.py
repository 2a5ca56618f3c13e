"""On a terminal of 80, 100 or 200 columns nothing is broken in two; tests/recorded has what is shown there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.command_process import Caller

WIDTHS = (80, 100, 200)
DOWN = "zone-power-loss"
COMMANDS = (
    ("status", "--rows", "3", "--simulate", DOWN),
    ("status", "--rows", "3", "--simulate", "disk-failure"),
    ("status", "--simulate", "two-of-three-voters-lost"),
    ("check", "--simulate", DOWN),
    ("readiness", "--simulate", DOWN),
    ("log-dirs", "--simulate", DOWN),
    ("quorum", "status", "--simulate", "controller-disk-failure-leader"),
    ("plan", "new.json", "--rows", "3", "--simulate", DOWN),
    ("recover", "--dry-run", "--all-offline-partitions", "--simulate", DOWN),
    ("replicas", "--all-offline-partitions", "--rows", "3", "--simulate", DOWN),
    ("log-dirs", "--if-fails", "1", "--simulate", "disk-failure"),
    ("quorum", "replication", "--simulate", "controller-disk-failure-leader"),
    ("simulate", "show", DOWN),
    ("simulate", "list"),
    ("simulate", "run", "stale-long-tail"),
    ("timeline", "--simulate", DOWN),
    ("handover", "--simulate", "disk-failure"),
    ("quorum", "status", "--simulate", "two-of-three-voters-lost"),
    ("log-dirs", "--swap", "2:/kafka/1", "--simulate", "disk-failure"),
    ("groups", "show", "--all", "--simulate", "groups-on-the-stale-tail"),
    ("transactions", "--simulate", "hanging-transactions"),
)


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Caller:
    return Caller(monkeypatch, tmp_path)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: "-".join(words[:2]))
def test_no_line_of_a_report_is_longer_than_the_terminal(
    call: Caller, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], width: int
) -> None:
    monkeypatch.setenv("KTRIAGE_WIDTH", str(width))
    ended = call("ktriage", *words)
    assert ended.status in (0, 1), ended
    assert ended.out
    assert too_long(ended.out, width) == []


def too_long(text: str, width: int) -> list[str]:
    return [line for line in text.splitlines() if len(line) > width]
