"""The recovery tool's input file: as the specification writes it, and as strict JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery.model import TopicPartition
from recovery.plan.relaxed_json import parse
from recovery.plan.target_partitions import targets
from recovery.plan.values import PlanError
from recovery.plan.write import to_json
from tests.unit.plan.plans import story

SPECIFICATION = """{
"partitions": [
{
topic: "foo",
partitions: [0, 3, 5]
},
{
topic: "bar",
partitions: [0, 1, 4]
}
]
}
"""
NAMED = tuple(
    TopicPartition(topic, number)
    for topic, numbers in {"foo": (0, 3, 5), "bar": (0, 1, 4)}.items()
    for number in numbers
)


def test_the_specifications_own_example_is_read() -> None:
    assert targets(SPECIFICATION) == NAMED


def test_strict_json_and_trailing_commas_are_read_alike() -> None:
    foo, bar = '{"topic": "foo", "partitions": [0, 3, 5]}', '{"topic": "bar", "partitions": [0, 1, 4]}'
    strict = f'{{"partitions": [{foo}, {bar}]}}'
    commas = (
        '{partitions: [{topic: "foo", partitions: [0, 3, 5,],}, {"topic": "bar", partitions: [0, 1, 4]},],}'
    )
    assert targets(strict) == NAMED
    assert targets(commas) == NAMED


def test_a_list_for_kafkas_own_election_tool_and_a_plan_name_partitions_too() -> None:
    assert targets('{"partitions": [{"topic": "foo", "partition": 1}]}') == (TopicPartition("foo", 1),)
    assert targets(to_json(story())) == (TopicPartition("orders", 0), TopicPartition("audit", 0))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("  \n ", "the file is empty"),
        ("[0]", "expected an object"),
        ("{}", "partitions: is missing; expected a list"),
        ("{partitions: []}", "partitions: the file names no partition"),
        ("{partitions: 3}", "partitions: expected a list, not 3"),
        ("{partitions: [{}]}", "partitions[0].topic: is missing"),
        ('{partitions: [{topic: "t", partitions: []}]}', "no partition of t is named"),
        ('{partitions: [{topic: "t", partitions: [1, "2"]}]}', 'partitions[0].partitions[1]: expected an integer'),
        ('{partitions: [{topic: "t", partitions: [-1]}]}', "[0].partitions[0]: expected an integer"),
        ('{partitions: [{topic: "t", partitions: [true]}]}', "not true"),
        ('{partitions: [{topic: "t", partitions: [1], partition: 1}]}', 'either "partition" or "partitions"'),
        ('{partitions: [{topic: "t", partitions: [1, 1]}]}', "t-1 stands in the file twice"),
        ('{partitions: [{topic: "t", partition: 1}, {topic: "t", partitions: [1]}]}', "t-1 stands in"),
        ('{partitions: [{topic: "a b", partitions: [1]}]}', 'expected a topic name, not "a b"'),
        ('{partitions: [{\n  topic: "t",\n  topic: "u"}]}', 'line 3, column 3: the key "topic" stands twice'),
        ('{partitions: [{\n  topic: t}]}', "line 2, column 10: expected a value, found 't'"),
        ("{'partitions': []}", "line 1, column 2: expected JSON, found"),
        ("{partitions: [1 2]}", 'line 1, column 17: expected "," or "]", found \'2\''),
        ("{partitions: [", "line 1, column 15: expected a value, found the end of the file"),
        ("{partitions: [,]}", "line 1, column 15: expected a value, found ','"),
        ("{partitions [1]}", "line 1, column 13: expected \":\", found '['"),
        ("{partitions: []} x", "line 1, column 18: expected nothing more, found 'x'"),
        ("{partitions: [01]}", "line 1, column 15: expected JSON, found '0'"),
        ("{partitions: [" + "9" * 5_000 + "]}", "a number of at most 20 digits"),
        ('{partitions: ["\\q"]}', "a text with JSON's escapes"),
        ("{partitions: [] // mine\n}", 'line 1, column 17: expected JSON, found'),
        ("[" * 10_000, "nested too deep"),
    ],
)  # fmt: skip
def test_anything_else_is_one_line_with_its_place(text: str, said: str) -> None:
    with pytest.raises(PlanError) as caught:
        targets(text)
    assert said in str(caught.value)
    assert str(caught.value).isprintable()


_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 60), 1 << 60) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(_values)
def test_strict_json_means_the_same_to_the_lenient_reader(value: object) -> None:
    assert parse(json.dumps(value)) == value
    assert parse(json.dumps(value, indent=1, ensure_ascii=False)) == value


@given(st.text(alphabet='{}[]:,"\\0123456789.eE+-truefalsnl \n\x00ab', max_size=30))
def test_no_text_ends_in_anything_but_a_value_or_one_line(text: str) -> None:
    try:
        parse(text)
    except PlanError as error:
        assert str(error).isprintable()


@given(st.text(alphabet='{}[]:,"\\0123456789.eE+-truefalsnl \n', max_size=20))
def test_what_strict_json_refuses_is_only_read_for_keys_and_commas(text: str) -> None:
    try:
        value = parse(text)
    except PlanError:
        return
    try:
        strict = json.loads(text)
    except ValueError:
        assert "," in text or ":" in text
    else:
        assert strict == value
