"""The order of a plan: what an operator wants to have back first."""

from __future__ import annotations

from recovery.model import Survey
from recovery.plan.importance import NO_TIERS, Importance, TopicTier
from tests.unit.recovery.surveys import log, survey

CRITICAL_FIRST = Importance(
    (TopicTier("critical", ("payments*", "ledger")), TopicTier("standard", ("orders-?", "pay*")))
)


def of(topic: str, size: int = 0, partition: int = 0) -> Survey:
    found = survey({1: log((0, 0, 10))._replace(size=size)})
    return found._replace(state=found.state._replace(topic=topic, partition=partition))


def topics(importance: Importance, *surveys: Survey) -> list[str]:
    return [str(one.tp) for one in importance.ordered(surveys)]


def test_internal_topics_come_first_then_the_tiers_in_the_order_of_the_profile() -> None:
    asked = [
        of(topic) for topic in ("logs", "orders-a", "ledger", "__consumer_offsets", "payments.eu", "payslips")
    ]
    assert topics(CRITICAL_FIRST, *asked) == [
        "__consumer_offsets-0",
        "ledger-0",
        "payments.eu-0",
        "orders-a-0",
        "payslips-0",
        "logs-0",
    ]


def test_in_a_tier_the_largest_comes_first_and_what_has_no_known_size_last() -> None:
    asked = (of("logs", -1), of("small", 10), of("large", 2000), of("payments", 5))
    assert topics(NO_TIERS, *asked) == ["large-0", "small-0", "payments-0", "logs-0"]
    assert topics(CRITICAL_FIRST, *asked)[0] == "payments-0"


def test_partitions_of_equal_importance_stand_by_name_and_number() -> None:
    asked = (of("b", 7), of("a", 7, 10), of("a", 7, 9))
    assert topics(NO_TIERS, *asked) == ["a-9", "a-10", "b-0"]
