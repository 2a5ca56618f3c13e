"""One test suite for every implementation of ``backends.base.protocol.Backend``; a class for each cluster state.

A module that runs it derives from the classes and gives them a ``driver`` fixture, a ``ClusterDriver``.
"""

import pytest

pytest.register_assert_rewrite(
    "tests.contract.healthy_cluster",
    "tests.contract.missing_permissions",
    "tests.contract.broken_brokers",
    "tests.contract.offline_partitions",
)
