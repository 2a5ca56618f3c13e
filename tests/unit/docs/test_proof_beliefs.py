"""docs/proof.md: each belief about Kafka stands there with its source and its tests, and each test exists."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from recovery.acknowledged.beliefs import Belief

ROOT = Path(__file__).parents[3]
PAGE = " ".join((ROOT / "docs/proof.md").read_text(encoding="utf-8").split())


@pytest.mark.parametrize("belief", Belief, ids=lambda belief: belief.name)
def test_a_belief_stands_in_the_document_with_its_source_and_tests(belief: Belief) -> None:
    details = belief.details
    assert f"`{belief.name}`" in PAGE
    assert details.sentence in PAGE
    for source in details.sources:
        assert f"`{source.owner}.{source.name}`" in PAGE
    for test in details.tests:
        assert f"`{test}`" in PAGE


@pytest.mark.parametrize("belief", Belief, ids=lambda belief: belief.name)
def test_a_test_on_real_kafka_would_fail_if_a_belief_were_false(belief: Belief) -> None:
    assert belief.details.tests, "what no test shows is a condition of the verdict, not a belief"
    for test in belief.details.tests:
        file, _, name = test.partition("::")
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        functions = {
            node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        assert name in functions, f"{file} has no test {name}"
