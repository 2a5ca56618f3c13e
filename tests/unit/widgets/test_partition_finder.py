"""A partition is found by the letters that somebody remembers of its name."""

from __future__ import annotations

import pytest

from recovery.model import TopicPartition
from widgets.dialogs.partition_finder import PartitionNames

NAMES = PartitionNames(
    [
        TopicPartition(topic, number)
        for topic in ("orders", "orders-17", "customer-records", "topic-2", "topic-10", "clicks", "a" * 200)
        for number in range(20)
    ]
)


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("ord 17", ["orders-17"]),
        ("orders-17", ["orders-17"]),
        ("orders-17-3", ["orders-17-3"]),
        ("ORD 1", ["orders-1"]),
        ("xo 4", []),
        ("cr 4", ["customer-records-4"]),
        ("crec 12", ["customer-records-12"]),
        ("topic 3", ["topic-2-3", "topic-10-3"]),
        ("nowhere", []),
    ],
)
def test_the_letters_lead_to_the_partition(typed: str, first: list[str]) -> None:
    assert [str(tp) for tp in NAMES.matching(typed)][: len(first) or 1] == first


def test_names_of_many_equal_letters_are_searched_at_once() -> None:
    """Every way to have forty of two hundred equal letters would take for ever."""
    assert NAMES.matching("a" * 40)[0].topic == "a" * 200
