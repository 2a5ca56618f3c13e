"""Only one broker is reached, and it is cut off from the controllers: what it shows was true once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.command_process import invoke

SCENARIO = """
title: The one broker that answers is cut off
about: Broker 1 keeps what it knew before it was cut off.
cluster:
  brokers: {{count: 3}}
  controllers: [100, 101, 102]
topics:
  - {{name: payments, replicas: [[2, 3]], records: 10, min_isr: 1}}
faults:
  - {{at: 5, do: cut, nodes: [broker-1], note: "broker 1 is cut off from every other node"}}
  - {{at: 10, do: kill, nodes: [broker-3], note: "the followers die"}}
  - {{at: 20, do: kill, nodes: [broker-2], note: "and the leader: payments-0 is offline"}}
operator: {{at: 60, cannot_reach: [{unreached}]}}
expect: {{offline: 1}}
"""
REPORTS = (("status",), ("check",), ("plan", "new.json"), ("replicas", "--all-offline-partitions"))


def scenario(home: Path, unreached: str) -> str:
    file = home / "cut-off.yaml"
    file.write_text(SCENARIO.format(unreached=unreached))
    return str(file)


@pytest.mark.parametrize("unreached", ["controllers, broker-2, broker-3", "broker-2, broker-3"])
@pytest.mark.parametrize("words", REPORTS, ids=lambda words: words[0])
def test_a_quorum_that_no_broker_reaches_is_not_called_lost_and_nothing_is_called_well(
    tmp_path: Path, words: tuple[str, ...], unreached: str
) -> None:
    """Also where the controllers answer this side: one of them says that it leads."""
    named = scenario(tmp_path, unreached)
    ended = invoke(tmp_path, "ktriage", *words, "--simulate", named)
    assert ended.status == 1, ended
    answers = "controllers" not in unreached
    first = "quorum NOT REACHED BY BROKERS" if answers else "quorum UNREACHABLE"
    assert ended.out.splitlines()[0].startswith(first), ended
    for claim in ("NO LEADER", "no partition offline", "nothing is offline", "seen offline"):
        assert claim not in f"{ended.out}{ended.err}"
