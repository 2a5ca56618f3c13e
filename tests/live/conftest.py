"""One real cluster for each module that uses it, as ``CLUSTER = ClusterSpec(...)`` in the module describes."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from testbed.kafka import ClusterSpec, KafkaCluster
from tests.live.resident_java import ResidentJavas
from tests.live.started_cluster import started_cluster


@pytest.fixture(scope="session")
def resident_javas() -> Iterator[ResidentJavas]:
    with ResidentJavas() as started:
        yield started


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, resident_javas: ResidentJavas) -> Iterator[KafkaCluster]:
    """The module's running cluster; it is removed with all its files after the module.

    Its tools run in one lasting Java process, unless the module says ``TOOLS_ARE_PROCESSES``.
    """
    spec = getattr(request, "param", getattr(request.module, "CLUSTER", ClusterSpec()))

    def say(line: str) -> None:
        # A run that passes shows nothing of what it captured.
        with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            print(f"\n{request.module.__name__}: {line}", file=sys.stderr, flush=True)

    processes = getattr(request.module, "TOOLS_ARE_PROCESSES", False)
    run_tools = (lambda runner: runner) if processes else resident_javas.runner
    with started_cluster(spec, say, run_tools) as running:
        yield running


@pytest.fixture
def whole_cluster(cluster: KafkaCluster) -> KafkaCluster:
    """The module's cluster with every node running again, in any state after the test before."""
    cluster.bring_all_up()
    return cluster
