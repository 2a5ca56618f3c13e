"""The recovery tool's input file: as the specification writes it, and as strict JSON."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recovery.model import TopicPartition
from recovery.plan.json_fields import MAX_INT32
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
    assert targets(commas.replace(", ", ",\n\t")) == NAMED


def test_no_word_is_anything_but_a_topics_name() -> None:
    named = targets("{partitions: [{topic: no, partitions: [1]}, {topic: 2026-11-29, partitions: [1]}]}")
    assert named == (TopicPartition("no", 1), TopicPartition("2026-11-29", 1))


def test_a_list_for_kafkas_own_election_tool_and_a_plan_name_partitions_too() -> None:
    assert targets('{"partitions": [{"topic": "foo", "partition": 1}]}') == (TopicPartition("foo", 1),)
    assert targets(to_json(story())) == (TopicPartition("orders", 0), TopicPartition("audit", 0))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("  \n ", "the file is empty"),
        ("[0]", "expected one object"),
        ("not JSON", "line 1: expected one object"),
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
        ('{partitions: [{\n  topic: "t",\n  topic: "u"}]}', 'line 3, column 3: not JSON: the key "topic"'),
        ('{"partitions": [{"topic": "t", "topic": "u"}]}', 'line 1, column 32: not JSON: the key "topic"'),
        ("{partitions: [1 2]}", 'partitions[0]: expected an object, not "1 2"'),
        ("{partitions: [", "line 1, column 15: not JSON: expected the node content, but found '<stream end>'"),
        ("{partitions: [,]}", "line 1, column 15: not JSON: expected the node content, but found ','"),
        ("{partitions [1]}", "line 1, column 13: not JSON: expected ',' or '}', but got '['"),
        ("{partitions: []} x", "line 1, column 18: not JSON"),
        ("{partitions: [{topic: t, partitions: [010]}]}", 'expected an integer from 0 to 2147483647, not "010"'),
        ("{partitions: [{topic: t, partitions: [" + "9" * 5_000 + "]}]}", "expected an integer from 0"),
        ('{partitions: ["\\q"]}', "found unknown escape character 'q'"),
        ("{partitions: [] // mine\n}", "line 1, column 17: not JSON"),
        ("{partitions: &all [*all]}", "not JSON: an alias"),
        ("{partitions: !!python/object [1]}", "line 1, column 14: not JSON"),
        ("[" * 10_000, "expected one object"),
        ("{partitions: " + "[" * 10_000, "not JSON: Expecting a key in double quotes"),
    ],
)  # fmt: skip
def test_anything_else_is_one_line_with_its_place(text: str, said: str) -> None:
    with pytest.raises(PlanError) as caught:
        targets(text)
    assert said in str(caught.value)
    assert str(caught.value).isprintable()


_rows = st.dictionaries(
    st.from_regex(r"[A-Za-z0-9._-]{1,20}", fullmatch=True).filter(lambda name: name.strip(".")),
    st.lists(st.integers(0, MAX_INT32), min_size=1, max_size=4, unique=True),
    min_size=1,
)


@given(_rows)
def test_keys_with_and_without_quotes_name_the_same_partitions(rows: dict[str, list[int]]) -> None:
    groups = [{"topic": name, "partitions": numbers} for name, numbers in rows.items()]
    strict = json.dumps({"partitions": groups})
    bare = re.sub(r'"(topic|partitions)":', r"\1:", strict)
    assert targets(bare) == targets(strict) == targets(json.dumps({"partitions": groups}, indent=1))


@given(st.text(alphabet='{}[]:,"\\0123456789.eE+-truefalsnl &*!#|> \n\x00ab', max_size=30))
def test_no_text_ends_in_anything_but_partitions_or_one_line(text: str) -> None:
    for document in (text, f"{{partitions: [{{topic: {text}, partitions: [0]}}]}}"):
        try:
            assert targets(document)
        except PlanError as error:
            assert str(error).isprintable()
