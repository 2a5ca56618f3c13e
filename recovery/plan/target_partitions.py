"""The recovery tool's input: which partitions to recover (unclean-recovery-tool, ``--path-to-json-file``)."""

from __future__ import annotations

from collections.abc import Iterator

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
from recovery.plan.relaxed_json import parse
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
        groups = objects(as_object(parse(document)), "partitions", entry)
        named = tuple(tp for group in groups for tp in group)
        _check(named)
    except FieldError as wrong:
        raise PlanError(str(wrong)) from None
    return named


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
