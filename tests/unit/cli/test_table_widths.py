"""What a terminal of 80, 100 or 200 columns shows: nothing is broken in two, and no row loses its name.

``python -m tests.unit.cli.test_table_widths`` writes ``tables/`` anew; look at what has changed.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.unit.cli.command_process import Caller, invoke

WIDTHS = (80, 100, 200)
DRAWN = Path(__file__).parent / "tables"
DOWN = "zone-power-loss"
TABLES = {
    "status": ("status", "--rows", "3", "--simulate", DOWN),
    "status-failed-disk": ("status", "--rows", "3", "--simulate", "disk-failure"),
    "status-no-quorum": ("status", "--simulate", "two-of-three-voters-lost"),
    "check": ("check", "--simulate", DOWN),
    "log-dirs": ("log-dirs", "--simulate", DOWN),
    "quorum-status": ("quorum", "status", "--simulate", "controller-disk-failure-leader"),
}
OTHERS = (
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
@pytest.mark.parametrize("name", TABLES)
def test_a_report_reads_as_it_was_looked_at(
    call: Caller, monkeypatch: pytest.MonkeyPatch, name: str, width: int
) -> None:
    monkeypatch.setenv("KTRIAGE_WIDTH", str(width))
    told = call("ktriage", *TABLES[name]).out
    assert told == (DRAWN / f"{name}-{width}.txt").read_text(encoding="utf-8")
    assert too_long(told, width) == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("words", OTHERS, ids=lambda words: "-".join(words[:2]))
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


def _draw() -> None:
    DRAWN.mkdir(exist_ok=True)
    for name, words in TABLES.items():
        for width in WIDTHS:
            with tempfile.TemporaryDirectory() as home:
                told = invoke(Path(home), "ktriage", *words, KTRIAGE_WIDTH=str(width)).out
            (DRAWN / f"{name}-{width}.txt").write_text(told, encoding="utf-8")


if __name__ == "__main__":
    _draw()
