"""One real cluster for each module that uses it, as ``CLUSTER = ClusterSpec(...)`` in the module describes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testbed.kafka import ClusterSpec, KafkaCluster


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[KafkaCluster]:
    """The module's running cluster; it is removed with all its files after the module."""
    spec = getattr(request.module, "CLUSTER", ClusterSpec())
    with KafkaCluster(spec) as running:
        yield running


@pytest.fixture
def whole_cluster(cluster: KafkaCluster) -> KafkaCluster:
    """The module's cluster with every node running again, in any state after the test before."""
    cluster.bring_all_up()
    return cluster
