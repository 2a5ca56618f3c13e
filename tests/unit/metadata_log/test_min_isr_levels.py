"""min.insync.replicas in force, after every change of a configuration in a metadata log."""

from __future__ import annotations

import random

import pytest

from recovery.metadata_log.min_isr_levels import MinIsrConfig
from recovery.metadata_log.records import ConfigRecord, ResourceType

REPLICAS = ((1, 2), (2, 3), (3,), ())


def in_force(
    values: dict[tuple[ResourceType, str], int], topic: str, replicas: tuple[int, ...]
) -> int | None:
    own = values.get((ResourceType.TOPIC, topic))
    names = ("", *map(str, replicas))
    others = [values[ResourceType.BROKER, name] for name in names if (ResourceType.BROKER, name) in values]
    return min(others, default=None) if own is None else own


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
                assert config.effective(topic, replicas) == in_force(values, topic, replicas)
