"""What is wrong with the whole cluster is the first line of every report of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.command_process import invoke

REPORTS = (("status",), ("check",), ("plan", "new.json"), ("replicas", "--all-offline-partitions"))
HEADS = {
    "disk-failure": "1 disk failed · 4 offline",
    "two-of-three-voters-lost": "quorum NO LEADER · broker 3 down",
    "controller-disk-failure-leader": "voter 100 down · broker 3 down · no partition offline",
}


@pytest.mark.parametrize("scenario", HEADS)
@pytest.mark.parametrize("words", REPORTS, ids=lambda words: words[0])
def test_the_first_line_says_what_is_wrong(tmp_path: Path, scenario: str, words: tuple[str, ...]) -> None:
    ended = invoke(tmp_path, "ktriage", *words, "--simulate", scenario)
    assert ended.out.splitlines()[0] == HEADS[scenario], ended
    assert words != ("status",) or ended.status == 1


def test_a_program_reads_the_same(tmp_path: Path) -> None:
    for command in ("status", "check"):
        ended = invoke(tmp_path, "ktriage", command, "--simulate", "disk-failure", "--output", "json")
        told = json.loads(ended.out)["health"]
        assert told["line"] == HEADS["disk-failure"]
        assert (told["failedLogDirs"], told["offline"], told["well"]) == (1, 4, False)
