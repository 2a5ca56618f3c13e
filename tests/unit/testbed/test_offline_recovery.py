"""The check of a measured recovery against brokers that apply the metadata a moment after the controller."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from benchmarks import bench_cluster
from benchmarks.measure import BenchmarkError
from benchmarks.offline_recovery import commands
from testbed.kafka import KafkaCluster
from testbed.kafka.cluster_metadata import DescribedPartition

PARTITIONS = 3
CHOSEN = bench_cluster.SURVIVORS[1]


class LateBrokers:
    """Shows the orders of ``late`` until somebody waits for what the controller has confirmed."""

    def __init__(self, late: tuple[int, ...] | None, confirmed: tuple[int, ...] | None = None) -> None:
        self._shown, self._confirmed = late, confirmed

    def wait_caught_up(self) -> LateBrokers:
        self._shown = self._confirmed
        return self

    def partitions(self, topic: str) -> dict[int, DescribedPartition]:
        assert topic == bench_cluster.TOPIC
        return {
            number: DescribedPartition(
                CHOSEN, 1, self._shown or bench_cluster.assignment(number), (CHOSEN,), (), (), ()
            )
            for number in range(PARTITIONS)
        }


def check_bare_requests(monkeypatch: pytest.MonkeyPatch, brokers: LateBrokers, directory: Path) -> None:
    monkeypatch.setattr(bench_cluster, "PARTITIONS", PARTITIONS)
    cluster = SimpleNamespace(
        metadata=brokers, bootstrap=lambda: "127.0.0.1:9092", spec=SimpleNamespace(version="4.3.1")
    )
    *_, bare = commands(cast("KafkaCluster", cluster), directory)
    bare.check(cast("Any", None))


def test_a_restored_order_that_a_broker_shows_a_moment_later_is_restored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    check_bare_requests(monkeypatch, LateBrokers((CHOSEN, 1, 3)), tmp_path)


def test_an_order_that_was_never_restored_fails_the_benchmark(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    left = (CHOSEN, 1, 3)
    with pytest.raises(BenchmarkError, match="3 assignments are not in their original order"):
        check_bare_requests(monkeypatch, LateBrokers(left, left), tmp_path)
