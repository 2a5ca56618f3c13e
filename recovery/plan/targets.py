"""The recovery tool's input: which partitions to recover (unclean-recovery-tool, ``--path-to-json-file``)."""

from __future__ import annotations

from collections.abc import Iterator

from recovery.model import TopicPartition
from recovery.plan.fields import (
    MAX_INT32,
    Object,
    Wrong,
    as_object,
    integer,
    items,
    objects,
    shown,
    topic,
    topic_partition,
)
from recovery.plan.relaxed import parse
from recovery.plan.values import PlanError


def targets(document: str) -> tuple[TopicPartition, ...]:
    """The partitions named in the text, in its order.

    Both shapes are read: ``{topic: "foo", partitions: [0, 3]}`` of the specification, and
    ``{"topic": "foo", "partition": 0}`` of Kafka's own tools, a plan file's rows among them. Raises PlanError:
    not JSON, no partition named, or one named twice.
    """
    try:
        groups = objects(as_object(parse(document)), "partitions", lambda entry: tuple(_entry(entry)))
        named = tuple(tp for group in groups for tp in group)
        _check(named)
    except Wrong as wrong:
        raise PlanError(str(wrong)) from None
    return named


def _entry(fields: Object) -> Iterator[TopicPartition]:
    if "partitions" not in fields:
        yield topic_partition(fields)
        return
    if "partition" in fields:
        raise Wrong(".partition", 'expected either "partition" or "partitions", not both')
    name = topic(fields)
    numbers = items(fields, "partitions")
    if not numbers:
        raise Wrong(".partitions", f"no partition of {name} is named")
    for index, number in enumerate(numbers):
        if type(number) is not int or not 0 <= number <= MAX_INT32:
            raise Wrong(
                f".partitions[{index}]", f"expected an integer from 0 to {MAX_INT32}, not {shown(number)}"
            )
        yield TopicPartition(name, integer({"partition": number}, "partition"))


def _check(named: tuple[TopicPartition, ...]) -> None:
    if not named:
        raise Wrong(".partitions", "the file names no partition")
    seen: set[TopicPartition] = set()
    for tp in named:
        if tp in seen:
            raise Wrong("", f"{tp} stands in the file twice")
        seen.add(tp)
