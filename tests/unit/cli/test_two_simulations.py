"""Two simulations of one scenario, each with a state of its own: what is done in one says nothing of the other."""

from __future__ import annotations

from pathlib import Path

from tests.unit.cli.command_process import Caller


def test_the_journal_of_a_simulation_lies_beside_its_state(call: Caller, tmp_path: Path) -> None:
    first, second = (
        ("--simulate", "last-replica-standing", "--state", str(tmp_path / f"{name}.json")) for name in "ab"
    )
    plan = str(tmp_path / "plan.json")
    planned = call("ktriage", "plan", "--all-offline-partitions", "--strategy", "aggressive", plan, *first)
    assert planned.status in (0, 1), planned
    applied = call("ktriage", "apply", plan, "--yes", "--reason", "a test", *first)
    assert applied.status == 0, applied
    assert "a test" in call("ktriage", "journal", *first).out
    assert "a test" not in call("ktriage", "journal", *second).out, "nothing was done in the other one"
    assert list((tmp_path / "a.json.records").rglob("*.jsonl"))
    assert not list((tmp_path / "b.json.records").rglob("*.jsonl"))
