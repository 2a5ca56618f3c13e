"""``replicas`` says what each choice of leader loses of the acknowledged records."""

from __future__ import annotations

import json
from pathlib import Path

from tests.command_server import Ended
from tests.unit.cli.command_process import invoke


def replicas(home: Path, *words: str) -> Ended:
    return invoke(
        home, "ktriage", "replicas", "--simulate", "last-replica-standing", "--topic", "payments", *words
    )


def test_the_table_has_the_verdict_beside_the_offsets_and_in_full(tmp_path: Path) -> None:
    """Broker 2 was the last in the ISR and is down; 0 lacks committed records, 1 has them all."""
    lines = replicas(tmp_path).out.splitlines()
    table = lines[next(at for at, line in enumerate(lines) if "LOSES ACKED" in line) :]
    assert "320 or more, NEWER  300+ committed" in table[1]
    assert "loses 300 or more offsets that a high watermark proves committed" in table[1]
    assert "20 or more, old     none" in table[2]
    assert "20 offsets that were only appended are lost" in table[2]


def test_the_document_has_the_verdicts_of_those_who_answered(tmp_path: Path) -> None:
    (partition,) = json.loads(replicas(tmp_path, "--output", "json").out)["partitions"]
    found = {one["broker"]: (one["verdict"], one["atLeast"]) for one in partition["acknowledged"]}
    assert found == {0: ("some", 300), 1: ("none", 0)}


def test_a_fenced_broker_that_answers_is_not_offered_as_a_choice(tmp_path: Path) -> None:
    """The controllers do not hear broker 2, and it has the only log that can be read."""
    ended = invoke(tmp_path, "ktriage", "replicas", "--simulate", "one-sided-cuts", "--topic", "payments")
    lines = ended.out.splitlines()
    table = lines[next(at for at, line in enumerate(lines) if "LOSES ACKED" in line) :]
    assert "2 (cannot)" in table[1] and len(table) == 2
    assert "cannot be elected now (fenced); if it could: may lose acknowledged records" in table[1]
