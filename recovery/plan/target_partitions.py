"""The recovery tool's input: which partitions to recover (unclean-recovery-tool, ``--path-to-json-file``)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from recovery.model import TopicPartition
from recovery.plan.json_fields import (
    MAX_INT32,
    FieldError,
    Object,
    as_object,
    integer,
    items,
    objects,
    shown,
    topic,
    topic_partition,
)
from recovery.plan.json_rows import read_document
from recovery.plan.values import PlanError

_LEADER_KEYS = ("designatedLeader", "designatedLeaders")


def targets(document: str, *, leaders_refused: bool = False) -> tuple[TopicPartition, ...]:
    """The partitions named in the text, in its order.

    Both shapes are read: ``{topic: "foo", partitions: [0, 3]}`` of the specification, and
    ``{"topic": "foo", "partition": 0}`` of Kafka's own tools, a plan file's rows among them. Raises PlanError:
    not JSON, no partition named, or one named twice; with ``leaders_refused`` also where an entry names a
    designated leader, which an election of another type would not elect.
    """

    def entry(fields: Object) -> tuple[TopicPartition, ...]:
        named = tuple(_entry(fields))
        if leaders_refused and any(key in fields for key in _LEADER_KEYS):
            raise FieldError(".designatedLeader", _LEADER_REFUSED.format(named[0]))
        return named

    try:
        groups = objects(as_object(_parsed(document)), "partitions", entry)
        named = tuple(tp for group in groups for tp in group)
        _check(named)
    except FieldError as wrong:
        raise PlanError(str(wrong)) from None
    return named


def _parsed(document: str) -> object:
    """The value in the text: JSON, or JSON whose keys stand without quotes, as in the specification's example,
    which is the flow style of YAML. JSON comes first, because a plan can have 200,000 rows. Raises PlanError.
    """
    try:
        return read_document(document, {})
    except PlanError as not_json:
        if not document.strip():
            raise
        try:
            value: object = yaml.load(document.replace("\t", " "), _FlowStyle)  # noqa: S506  # derived from the safe loader
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
            raise PlanError(f"{place}not JSON: {error.problem}") from None
        except (yaml.YAMLError, RecursionError):
            raise not_json from None
        if not isinstance(value, dict):
            raise
    return value


class _FlowStyle(yaml.SafeLoader):
    """Plain words stay text, except JSON's own: no topic is called by YAML's false, and 010 is not the number 8."""

    yaml_implicit_resolvers = {}  # noqa: RUF012  # PyYAML's own attribute of a class

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        for number, (key, _) in enumerate(node.value):
            if any(key.value == earlier.value for earlier, _ in node.value[:number]):
                problem = f'the key "{key.value}" stands twice in one object'
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.composer.ComposerError(None, None, "an alias", None)
        return super().compose_node(parent, index)


for _tag, _words in {
    "int": r"-?(?:0|[1-9][0-9]{0,18})$",
    "bool": r"(?:true|false)$",
    "null": r"null$",
}.items():
    _FlowStyle.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_words), None)

_LEADER_REFUSED = (
    "the file designates a leader for {}, and this type of election may elect another broker:"
    " use kafka-elect-leaders --election-type designated, or ktriage apply; nothing was sent"
)


def _entry(fields: Object) -> Iterator[TopicPartition]:
    if "partitions" not in fields:
        yield topic_partition(fields)
        return
    if "partition" in fields:
        raise FieldError(".partition", 'expected either "partition" or "partitions", not both')
    name = topic(fields)
    numbers = items(fields, "partitions")
    if not numbers:
        raise FieldError(".partitions", f"no partition of {name} is named")
    for index, number in enumerate(numbers):
        if type(number) is not int or not 0 <= number <= MAX_INT32:
            raise FieldError(
                f".partitions[{index}]", f"expected an integer from 0 to {MAX_INT32}, not {shown(number)}"
            )
        yield TopicPartition(name, integer({"partition": number}, "partition"))


def _check(named: tuple[TopicPartition, ...]) -> None:
    if not named:
        raise FieldError(".partitions", "the file names no partition")
    checked: set[TopicPartition] = set()
    for tp in named:
        if tp in checked:
            raise FieldError("", f"{tp} stands in the file twice")
        checked.add(tp)
