"""One real cluster for each module that asks for it: ``CLUSTER = ClusterSpec(...)`` in the module says which."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testbed.kafka import ClusterSpec, KafkaCluster


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[KafkaCluster]:
    """The module's cluster, up when it is handed out, and gone with all its files after the module."""
    spec = getattr(request.module, "CLUSTER", ClusterSpec())
    with KafkaCluster(spec) as running:
        yield running


@pytest.fixture
def whole_cluster(cluster: KafkaCluster) -> KafkaCluster:
    """The module's cluster with every node running again, whatever the test before did to it."""
    cluster.bring_all_up()
    return cluster
