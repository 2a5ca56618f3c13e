"""A plan file that is not one: a single line that says where, and what was expected there."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery.plan.read import from_json
from recovery.plan.values import Plan, PlanError
from recovery.plan.write import to_json
from tests.unit.plan.plans import HEADER, plans, story


def one_row(topic: str, partition: str) -> str:
    return f'{{"partitions": [{{"topic": {topic}, "partition": {partition}, "designatedLeader": 1}}]}}'


def refused(text: str) -> str:
    with pytest.raises(PlanError) as caught:
        from_json(text)
    message = str(caught.value)
    assert "\n" not in message
    assert message.isprintable()
    return message


def edited(was: str, now: str) -> str:
    text = to_json(story())
    assert was in text
    return text.replace(was, now, 1)


def with_row(**members: object) -> str:
    """A plan whose first row has those members."""
    document = json.loads(to_json(story()))
    document["partitions"][0] |= members
    return json.dumps(document)


def test_an_order_of_other_brokers_is_refused_for_it_would_move_replicas() -> None:
    row = json.loads(to_json(story()))["partitions"][0]
    other = [99, *row["order"][1:]]
    assert "expected the replicas" in refused(with_row(order=other))


def test_an_upper_limit_is_refused_where_a_replica_was_silent() -> None:
    row = json.loads(to_json(story()))["partitions"][0]
    assert row["silent"], "the story has one"
    candidates = [{**one, "loss": {"atLeast": 0, "atMost": 0}} for one in row["candidates"]]
    assert "a loss has an upper bound, although nobody knows" in refused(with_row(candidates=candidates))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        (" \n\t\n", "the file is empty"),
        ("[]", "line 1: expected one object"),
        ("hello", "line 1: expected one object"),
        ("{", "line 1, column 2: not JSON"),
        ("{}", "partitions: is missing; expected a list"),
        ('{"partitions": []}', "partitions: the file names no partition"),
        ('{"partitions": {}}', "partitions: expected a list, not an object"),
        ('{"partitions": [7]}', "line 1: partitions[0]: expected an object, not 7"),
        ('{"partitions": [{}]}', "partitions[0].topic: is missing; expected a topic name"),
        ('{"partitions": [{"topic": "t"}]}', "partitions[0].partition: is missing; expected an integer from 0"),
        ('{"partitions": [{"topic": "t", "partition": 0}]}', "partitions[0].designatedLeader: is missing"),
        (one_row('"t"', '-1'), "from 0 to 2147483647, not -1"),
        (one_row('"t"', 'true'), "partition: expected an integer"),
        (one_row('"t"', '1.0'), "not 1.0"),
        (one_row('"t"', '"1"'), 'not "1"'),
        (one_row('"t"', '2147483648'), "not 2147483648"),
        (one_row('".."', '0'), 'a topic name, not ".."'),
        (one_row('"a/b"', '0'), 'a topic name, not "a/b"'),
        (one_row('""', '0'), 'a topic name, not ""'),
        ('{"partitions": [],}', "line 1, column 19: not JSON"),
        ('{"partitions": [1,]}', "line 1"),
        ('{partitions: []}', "line 1, column 2: not JSON: Expecting a key in double quotes"),
        ('{"partitions": []} extra', "line 1, column 20: not JSON: Extra data"),
        ('{"a": 1, "a": 2, "partitions": []}', 'line 1: the key "a" stands twice'),
        ('{"partitions": [\n{"topic": "t", "topic": "u"}]}', 'line 2: the key "topic" stands twice'),
        ('{"x": NaN, "partitions": []}', "line 1: NaN is not JSON"),
        ('{"x": -Infinity}', "line 1: -Infinity is not JSON"),
        ('{"x": ' + "[" * 100_000, "line 1: nested too deep"),
        ('{"x": ' + "9" * 5_000 + "}", "line 1: a number of too many digits"),
        ('{"partitions": [{"topic": "t", "partition": ' + "9" * 4_000 + "}]}", "not a number beyond 64 bits"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_plan_is_refused_with_its_place(text: str, said: str) -> None:
    assert said in refused(text)


def test_a_partition_that_stands_twice_is_refused_by_name() -> None:
    row = '{"topic": "t", "partition": 3, "designatedLeader": 1}'
    assert "t-3 stands in the file twice" in refused(f'{{"partitions": [{row}, {row}]}}')


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ('"formatVersion": 2', '"formatVersion": 3', "formatVersion: this version of the tool reads 1 to 2,"),
        ('"formatVersion": 2,\n', "", "formatVersion: is missing"),
        ('"ranking": "last-record"', '"ranking": "longest"', "ranking: expected one of last-record, specification"),
        ('"strategy": "aggressive"', '"strategy": 1', "strategy: expected one of aggressive, balanced"),
        ('"madeAt": "2026', '"madeAt": "noon 2026', "madeAt: expected a time like"),
        ("12:00:00Z", "12:00:00", "madeAt: expected a time like"),
        ('"madeBy": "ann@ops"', '"madeBy": "ann\\u001b[31m"', "madeBy: expected printable text on one line"),
        ('"clusterId": "cluster-1"', '"clusterId": null', "clusterId: expected printable text"),
        ('"designatedLeader": 2', '"designatedLeader": 9', "broker 9 is not in the replica set [1, 2, 3, 4]"),
        ('"designatedLeader": 2', '"designatedLeader": 4', "[0].designatedLeader: broker 4 did not answer"),
        ('"designatedLeader": 2', '"designatedLeader": -1', "from 0 to 2147483647, not -1 (orders-0)"),
        ('"replicas": [1, 2, 3, 4]', '"replicas": [1, 2, 3, 3]', "replicas: broker 3 stands in it twice"),
        ('"replicas": [1, 2, 3, 4]', '"replicas": [1, 2, 4]', "order: expected the replicas [1, 2, 4]"),
        ('"order": [2, 3, 1, 4]', '"order": [2, 3, 1]', "order: expected the replicas [1, 2, 3, 4] in some order"),
        ('"order": [2, 3, 1, 4]', '"order": [2, 3, 1, "4"]', "order: expected broker ids"),
        ('"leaderEpoch": 4, "replicas"', '"leaderEpoch": -1, "replicas"', "leaderEpoch: expected an integer"),
        ('"broker": 3', '"broker": 2', "candidates: broker 2 stands twice among candidates and silent (orders-0)"),
        ('"silent": [{"broker": 4, "standing": "fenced"}], ', "", "replica 4 is neither a candidate nor silent"),
        ('"silent": [{"broker": 4, "st', '"silent": [{"broker": 1, "st', "broker 1 stands twice among candidates"),
        ('4, "standing": "fenced', '4, "standing": "x', "[0].standing"),
        ('"broker": 3', '"broker": 7', "candidates: broker 7 is not in the replica set"),
        ('"standing": "electable"', '"standing": "fine"', "candidates[0].standing: expected one of electable"),
        ('"standing": "electable"', '"standing": "fenced"', "broker 2 was fenced when the plan was made"),
        ('"lastEpoch": 2, ', "", "candidates[0].lastEpoch: is missing; expected an integer from -1"),
        ('"logEnd": 1300', '"logEnd": -1', "partitions[0].candidates[0].logEnd: expected an integer from 0"),
        ('"atMost": null', '"atMost": 499', "loss.atMost: expected an integer from 500"),
        ('"tail": [[0, 1000, 1500]]', '"tail": [[0, 1500, 1000]]', "loss.tail: expected [epoch, start, end]"),
        ('"tail": [[0, 1000, 1500]]', '"tail": [[0, 1500]]', "loss.tail: expected [epoch, start, end]"),
        ('"loss": {', '"lost": {', "candidates[0].loss: expected an object, not null"),
        ('"verdict": "no candidate"', '"verdict": "maybe"', "notElected[0].verdict: expected one of elect"),
        ('"topic": "lost"', '"topic": "orders"', "notElected[0]: orders-0 stands in the file twice"),
        ('"topic": "audit"', '"topic": "orders"', "partitions[1]: orders-0 stands in the file twice"),
    ],
)  # fmt: skip
def test_a_plan_with_a_slip_of_the_pen_is_refused_where_it_is(was: str, now: str, said: str) -> None:
    assert said in refused(edited(was, now))


def test_a_plan_that_names_no_partition_at_all_is_refused() -> None:
    assert refused(to_json(Plan(HEADER, ()))) == "partitions: the plan names no partition"


def test_the_line_in_the_file_is_told() -> None:
    text = edited('"logEnd": 1300', '"logEnd": "1300"')
    line = 1 + next(n for n, one in enumerate(text.splitlines()) if '"1300"' in one)
    assert refused(text).startswith(f"line {line}: partitions[0].candidates[0].logEnd: ")


@given(st.text(max_size=200))
def test_no_text_whatever_ends_in_anything_but_a_plan_or_one_line(text: str) -> None:
    try:
        from_json(text)
    except PlanError as error:
        assert str(error).isprintable()


@given(plans(), st.data())
def test_a_plan_cut_off_anywhere_is_refused(plan: Any, data: st.DataObject) -> None:
    whole = to_json(plan).rstrip()
    refused(whole[: data.draw(st.integers(0, len(whole) - 1))])


@given(plans(), st.data())
def test_any_value_in_any_place_is_read_or_refused_in_one_line(plan: Any, data: st.DataObject) -> None:
    document = json.loads(to_json(plan))
    places: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        for key in keys:
            places.append((value, key))
            walk(value[key])

    walk(document)
    holder, key = data.draw(st.sampled_from(places))
    holder[key] = data.draw(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=5) | st.lists(st.integers(), max_size=3) | st.dictionaries(st.text(), st.none())
    )  # fmt: skip
    try:
        from_json(json.dumps(document))
    except PlanError as error:
        assert str(error).isprintable()
