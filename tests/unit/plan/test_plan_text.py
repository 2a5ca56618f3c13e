"""A plan's text: it comes back as it was, reviews line by line, and its digest is what was reviewed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import timedelta, timezone
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery.model import TopicPartition
from recovery.plan.edit import with_leader
from recovery.plan.read import from_json
from recovery.plan.values import WARNING, BarePlan, BareRow, Plan
from recovery.plan.write import bare_json, digest, to_json
from tests.unit.plan.plans import HEADER, NOON, plans, story


@given(plans())
def test_a_plan_comes_back_as_it_was_written(plan: Plan) -> None:
    assert from_json(to_json(plan)) == plan


@given(plans(), st.randoms(use_true_random=False))
def test_a_file_that_was_reformatted_is_the_same_plan(plan: Plan, random: Random) -> None:
    """jq, an editor, a formatter: other white space, other key order, keys of somebody's own."""
    document = json.loads(to_json(plan))

    def shuffled(value: object) -> object:
        if isinstance(value, dict):
            items = [(key, shuffled(item)) for key, item in value.items()] + [("comment", {"by": "bob"})]
            random.shuffle(items)
            return dict(items)
        return [shuffled(item) for item in value] if isinstance(value, list) else value

    again = from_json(json.dumps(shuffled(document), indent=3))
    assert isinstance(again, Plan)
    assert again == plan
    assert digest(again) == digest(plan)


def test_sha256sum_of_a_file_that_nobody_touched_is_its_digest() -> None:
    assert digest(story()) == hashlib.sha256(to_json(story()).encode()).hexdigest()


def test_the_time_zone_of_whoever_made_it_changes_nothing() -> None:
    elsewhere = NOON.astimezone(timezone(timedelta(hours=5)))
    moved = Plan(replace(HEADER, made_at=elsewhere), story().rows)
    assert to_json(moved) == to_json(Plan(HEADER, story().rows))


def test_the_first_key_warns_whoever_gives_the_file_to_a_released_tool() -> None:
    document = json.loads(to_json(story()))
    assert next(iter(document)) == "warning"
    assert document["warning"] == WARNING
    assert "ignore designatedLeader" in WARNING


def test_kafkas_own_tool_finds_topic_partition_and_designated_leader_in_every_row_and_nothing_else() -> None:
    document = json.loads(to_json(story()))
    assert [(r["topic"], r["partition"], r["designatedLeader"]) for r in document["partitions"]] == [
        ("orders", 0, 2),
        ("audit", 0, 1),
    ]
    assert [(r["topic"], r["waitsFor"]) for r in document["notElected"]] == [("lost", [1, 2])]


def test_every_candidate_stands_in_the_file_with_its_fence_and_what_it_loses() -> None:
    (row, _) = json.loads(to_json(story()))["partitions"]
    assert [(c["broker"], c["lastEpoch"], c["logEnd"]) for c in row["candidates"]] == [
        (2, 2, 1300),
        (3, 2, 1300),
        (1, 0, 1500),
    ]
    assert row["candidates"][0]["loss"] == {
        "atLeast": 500,
        "atMost": None,
        "tail": [[0, 1000, 1500]],
        "unanswered": [4],
    }
    assert (row["order"], row["successor"]) == ([2, 3, 1, 4], 3)


@given(plans())
def test_a_row_is_a_line_so_that_diff_shows_a_changed_row_as_a_changed_line(plan: Plan) -> None:
    lines = to_json(plan).splitlines()
    for tp in [row.tp for row in plan.rows] + [row.tp for row in plan.not_elected]:
        start = f'{{"topic": {json.dumps(tp.topic)}, "partition": {tp.partition}, '
        assert sum(line.startswith(start) for line in lines) == 1


def test_another_leader_is_one_other_line_and_another_digest() -> None:
    plan = story()
    edited = with_leader(plan, TopicPartition("orders", 0), 1)
    before, after = to_json(plan).splitlines(), to_json(edited).splitlines()
    assert [a for a, b in zip(before, after, strict=True) if a != b] == [
        line for line in before if line.startswith('{"topic": "orders"')
    ]
    assert digest(plan) != digest(edited)


@pytest.mark.parametrize(
    ("what", "was", "now"),
    [
        ("a log end", '"logEnd": 1300', '"logEnd": 1301'),
        ("a loss", '"atLeast": 500', '"atLeast": 0'),
        ("the cluster", '"cluster-1"', '"cluster-2"'),
        ("a reason", "did not", "DID NOT"),
        ("the ranking", '"ranking": "last-record"', '"ranking": "specification"'),
        ("whom to wait for", '"waitsFor": [1, 2]', '"waitsFor": [1]'),
    ],
)
def test_what_a_second_person_reviewed_cannot_change_under_the_same_digest(
    what: str, was: str, now: str
) -> None:
    text = to_json(story()).replace("no replica answered", "did not answer")
    assert was in text
    one, other = from_json(text), from_json(text.replace(was, now, 1))
    assert isinstance(one, Plan)
    assert isinstance(other, Plan)
    assert digest(one) != digest(other)


def test_the_specifications_own_file_is_read_as_leaders_without_fences() -> None:
    text = """{
    "partitions": [
    {"topic": "foo", "partition": 1, "designatedLeader": 0},
    {"topic": "foobar", "partition": 2, "designatedLeader": 1}
    ]
    }"""
    bare = BarePlan((BareRow(TopicPartition("foo", 1), 0), BareRow(TopicPartition("foobar", 2), 1)))
    assert from_json(text) == bare
    assert from_json(bare_json(bare)) == bare


def test_a_hand_edited_leader_is_put_first_and_the_rest_by_rank() -> None:
    text = to_json(story()).replace('"designatedLeader": 2', '"designatedLeader": 1')
    plan = from_json(text)
    assert isinstance(plan, Plan)
    assert plan == with_leader(story(), TopicPartition("orders", 0), 1)
    assert plan.rows[0].order == (1, 2, 3, 4)
    assert "by hand" in plan.rows[0].reason


def test_an_order_that_was_edited_behind_the_same_leader_is_kept() -> None:
    plan = from_json(to_json(story()).replace('"order": [2, 3, 1, 4]', '"order": [2, 1, 3, 4]'))
    assert isinstance(plan, Plan)
    assert plan.rows[0].order == (2, 1, 3, 4)
    successor = plan.rows[0].successor
    assert successor is not None
    assert successor.broker == 1


def test_thousands_of_rows_come_back() -> None:
    plan = story()
    row = plan.rows[0]
    many = Plan(HEADER, tuple(row._replace(tp=TopicPartition("t", n)) for n in range(5_000)))
    assert from_json(to_json(many)) == many
