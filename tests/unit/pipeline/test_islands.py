"""The islands of partitions are those that one row after the other tells."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pyarrow as pa

from pipeline.history.islands import LINES, islands_of
from pipeline.plan.row_checks import NAMELESS

Row = dict[str, Any]


def row(partition: int, number: int, bad: bool | None = False, **others: Any) -> Row:
    """A row that is ``bad`` for all three kinds."""
    known = {"cluster_id": "c", "topic": "t", "topic_id": "id", "segment": 0, "has_full": True, "gone": False}
    known |= {"known_before": number > 0, "leader": number, "isr": [number], "last_number": number}
    told = {f"bad_{kind}": bad for kind in range(3)}
    return known | told | {"partition": partition, "number": number} | others


def islands(rows: list[Row]) -> list[Row]:
    batch = pa.RecordBatch.from_pylist(rows, LINES)
    return [one for found in islands_of([batch]) for one in found.to_pylist()]


def one_after_the_other(rows: list[Row]) -> Iterator[tuple[Any, ...]]:
    """Of one kind, as (partition, first, last, bad, segment, topic made again, the next one's first, its bad, the
    bad of the one before, ISR of the last row).
    """
    ordered = sorted(rows, key=lambda one: (one["partition"], one["number"]))
    for partition, mine in groupby(ordered, key=lambda one: one["partition"]):
        found: list[list[Any]] = []
        made, before = None, None
        for one in mine:
            remade = one["topic_id"] is not None and made is not None and one["topic_id"] != made
            made = one["topic_id"] or made
            state = (one["bad_0"], one["segment"])
            if state != before or one["gone"] or remade:
                found.append([remade, one, one])
            found[-1][2] = one
            before = state
        for place, (remade, head, tail) in enumerate(found):
            after = found[place + 1][1] if place + 1 < len(found) else None
            if head["bad_0"] or (after is None and (head["bad_0"] is None or not head["has_full"])):
                yield (
                    partition,
                    *(head["number"], tail["number"], head["bad_0"], head["segment"], remade),
                    *((after["number"], after["bad_0"]) if after else (None, None)),
                    found[place - 1][1]["bad_0"] if place else None,
                    tail["isr"],
                )


def test_random_partitions_have_the_islands_that_one_row_after_the_other_tells() -> None:
    chance = random.Random(1)
    seen = 0
    for _ in range(200):
        rows = [
            row(
                partition,
                number,
                False if gone else chance.choice((True, False, False, None)),
                gone=gone,
                segment=number // 4,
                has_full=full,
                topic_id=None if gone else chance.choice("aaaab"),
            )
            for full in (chance.random() < 0.7,)
            for partition in range(3)
            for number in range(chance.randint(1, 9))
            for gone in (chance.random() < 0.1,)
            if chance.random() < 0.7
        ]
        names = (
            "partition",
            "first_number",
            "last_number",
            "bad",
            "segment",
            "remade",
            "next_number",
            "next_bad",
        )
        chance.shuffle(rows)
        told = [
            (*(one[name] for name in names), one["previous_bad"], one["isr"])
            for one in islands(rows)
            if one["kind"] == "under min ISR"
        ]
        expected = list(one_after_the_other(rows))
        assert sorted(told, key=lambda one: one[:2]) == expected
        seen += len(expected)
    assert seen > 500


def test_a_partition_that_stands_twice_in_a_snapshot_is_unknown_there_and_counted() -> None:
    found = islands([row(0, 0, bad=True), row(0, 1, bad=True), row(0, 1), row(0, 2), row(1, 1)])
    assert [(one["copies"], one["flaw"]) for one in found if one["kind"] is None] == [(2, None)]
    offline = [one for one in found if one["kind"] == "offline"]
    assert [(one["first_number"], one["next_number"], one["next_bad"]) for one in offline] == [(0, 1, None)]


def test_rows_without_a_name_are_broken_rows_and_of_no_partition() -> None:
    nameless = [row(0, 0, bad=None, topic=None, flaw=NAMELESS) for _ in range(3)]
    found = islands([*nameless, row(0, 0, bad=True)])
    assert [(one["kind"], one["flaw"], one["copies"]) for one in found[:3]] == [(None, NAMELESS, 1)] * 3
    assert [one["kind"] for one in found[3:]] == ["offline", "under min ISR", "ELR in use"]


def test_a_state_that_an_earlier_run_left_is_of_its_kind_alone() -> None:
    left = row(0, 3, bad=None, of_kind=1, bad_1=True, last_number=5)
    found = islands([left, row(0, 6)])
    told = [(one["kind"], one["first_number"], one["last_number"], one["next_number"]) for one in found]
    assert told == [("under min ISR", 3, 5, 6)]


def test_no_row_has_no_island() -> None:
    assert islands([]) == []
