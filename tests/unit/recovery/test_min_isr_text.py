"""The MIN ISR of a partition whose brokers do not answer alike."""

from __future__ import annotations

import pytest

from recovery.model import MinIsrLevels, Unknown, Why
from recovery.wording.replica_text import min_isr_on_brokers, min_isr_text
from tests.unit.recovery.surveys import SILENT, survey


def levels(broker: int, *, topic: int | None = None, file: int = 1) -> MinIsrLevels:
    return MinIsrLevels(broker, topic, None, None, file)


@pytest.mark.parametrize(
    ("answers", "column", "sentence"),
    [
        ((), "2", "2"),
        ((levels(1, topic=2), levels(2, topic=2)), "2", "2"),
        ((levels(1), levels(2, topic=2), levels(3)), "1 or 2", "1 on brokers 1 and 3, 2 on broker 2"),
        # No more than there are replicas.
        ((levels(1, topic=3), levels(2, topic=4)), "2", "2"),
    ],
)
def test_brokers_that_answer_differently_are_named(
    answers: tuple[MinIsrLevels, ...], column: str, sentence: str
) -> None:
    asked = survey({1: SILENT, 2: SILENT, 3: SILENT})._replace(min_isr=2, min_isr_on=answers)
    assert (min_isr_text(asked), min_isr_on_brokers(asked)) == (column, sentence)


def test_why_it_is_not_known_is_said() -> None:
    asked = survey({1: SILENT})._replace(min_isr=Unknown(Why.NOT_ALLOWED, "needs DESCRIBE_CONFIGS"))
    assert "DESCRIBE_CONFIGS" in min_isr_text(asked)
