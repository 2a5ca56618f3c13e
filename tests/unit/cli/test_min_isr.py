"""Who may not read min.insync.replicas is told so: what may be under min ISR is no good news."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.command_process import Caller

SCENARIO = """
title: One replica is missing
about: Broker 0 is down, and two replicas are in sync where two are asked for.
cluster: {{brokers: {{count: 3, first: 0}}, min_isr: 2}}
topics:
  - {{name: payments, replicas: [[0, 1, 2]], records: 100}}
  - {{name: whole, replicas: [[1, 2]], records: 100}}
faults:
  - {{at: 5, do: kill, nodes: [broker-0], note: "broker 0 dies"}}
operator: {{at: 60, denied: [{denied}]}}
expect: {{offline: 0}}
"""


@pytest.mark.parametrize(
    ("denied", "status", "says"),
    [
        ("", 0, "0 under-min-ISR partitions"),
        ('"DESCRIBE_CONFIGS topic payments"', 1, "0 more under min ISR, 1 may be (min ISR unknown)"),
    ],
)
def test_under_min_isr_lists_what_may_be_too(
    call: Caller, tmp_path: Path, denied: str, status: int, says: str
) -> None:
    path = tmp_path / "missing.yaml"
    path.write_text(SCENARIO.format(denied=denied), encoding="utf-8")
    ended = call("ktriage", "replicas", "--under-min-isr", "--simulate", str(path))
    assert ended.status == status, str(ended)
    assert says in ended.out
    assert ("payments-0" in ended.out) == bool(denied)
    assert "whole-0" not in ended.out
