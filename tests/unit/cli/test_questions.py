"""What a person is asked before elections are held: how many, and on which cluster."""

from __future__ import annotations

import pytest

from console.cli.base.run import Run
from tests.unit.cli.invoking import Caller
from tests.unit.cli.memory import CLUSTER_ID, cluster_of
from tests.unit.cli.test_carrying_out import ANY, planned, sent


@pytest.mark.parametrize(("offline", "counted"), [(1, "1 election will"), (2, "2 elections will")])
def test_the_question_counts_the_elections_and_names_the_cluster(
    call: Caller, monkeypatch: pytest.MonkeyPatch, offline: int, counted: str
) -> None:
    backend = cluster_of(offline)
    plan = planned(call, backend)
    asked: list[str] = []

    async def hears(_run: Run, question: str) -> str:
        asked.append(question)
        return ""

    monkeypatch.setattr(Run, "refuse_unless_interactive", lambda _run, _instead: None)
    monkeypatch.setattr(Run, "ask", hears)
    ended = call("ktriage", "apply", *ANY, plan)
    assert asked[0].startswith(f"{counted} be held on cluster {CLUSTER_ID} (kafka:9092).")
    assert "not confirmed" in ended.err
    assert sent(backend) == 0
