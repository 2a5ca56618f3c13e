"""min.insync.replicas in force, after every change of a configuration in a metadata log."""

from __future__ import annotations

import random

import pytest

from recovery.metadata_log.min_isr_levels import MinIsrConfig
from recovery.metadata_log.records import ConfigRecord, ResourceType

REPLICAS = ((1, 2), (2, 3), (3,), ())


def lowest_in_force(
    values: dict[tuple[ResourceType, str], int], topic: str, replicas: tuple[int, ...]
) -> int | None:
    if (ResourceType.TOPIC, topic) in values:
        return values[ResourceType.TOPIC, topic]
    cluster = values.get((ResourceType.BROKER, ""))
    each = [values.get((ResourceType.BROKER, str(broker)), cluster) for broker in replicas] or [cluster]
    known = [value for value in each if value is not None]
    return min(known) if len(known) == len(each) else None


@pytest.mark.parametrize("seed", range(5))
def test_a_value_is_in_force_from_its_change_on(seed: int) -> None:
    rng = random.Random(seed)
    config, values = MinIsrConfig(), dict[tuple[ResourceType, str], int]()
    for _ in range(200):
        kind = rng.choice((ResourceType.TOPIC, ResourceType.BROKER))
        name = rng.choice(("t", "u")) if kind is ResourceType.TOPIC else rng.choice(("", "1", "2", "3"))
        value = rng.choice((None, 1, 2, 3))
        config.take(ConfigRecord(kind, name, "min.insync.replicas", None if value is None else str(value)))
        values.pop((kind, name), None)
        if value is not None:
            values[kind, name] = value
        for topic in ("t", "u", "v"):
            for replicas in REPLICAS:
                assert config.effective(topic, replicas) == lowest_in_force(values, topic, replicas)


def test_a_deleted_topic_takes_its_value_with_it() -> None:
    config = MinIsrConfig()
    config.take(ConfigRecord(ResourceType.BROKER, "", "min.insync.replicas", "1"))
    config.take(ConfigRecord(ResourceType.TOPIC, "t", "min.insync.replicas", "2"))
    assert config.effective("t", (1,)) == 2
    config.removed("t")
    assert config.effective("t", (1,)) == 1


def test_a_broker_without_a_value_has_that_of_its_file_whatever_another_one_has() -> None:
    config = MinIsrConfig()
    config.take(ConfigRecord(ResourceType.BROKER, "1", "min.insync.replicas", "2"))
    assert (config.effective("t", (1,)), config.effective("t", (1, 2))) == (2, None)
