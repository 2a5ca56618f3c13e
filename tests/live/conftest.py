"""One real cluster for each module that uses it, as ``CLUSTER = ClusterSpec(...)`` in the module describes.

Modules that have the very same object share a cluster, as the one before leaves it, and follow one another.
Processes that are started with the same ``--share DIRECTORY`` divide the clusters among them (``claims.py``).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from testbed.kafka import ClusterSpec, KafkaCluster
from tests.live.claims import Claims
from tests.live.resident_java import ResidentJavas
from tests.live.started_cluster import started_cluster

CLAIMS = pytest.StashKey[Claims]()
CLUSTER_PLACE = pytest.StashKey[tuple[int, str]]()
"""The place of the test's cluster among all clusters, and its first test."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--share", type=Path, metavar="DIRECTORY", help="divide the tests on real Kafka with other processes"
    )


def pytest_configure(config: pytest.Config) -> None:
    # Not known where pytest read this file only after the command line.
    directory = config.getoption("--share", None)
    if directory is not None:
        config.stash[CLAIMS] = Claims(directory)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one cluster follow one another: those that share it come where the first of them stands."""
    places: dict[int, tuple[int, str]] = {}
    for item in items:
        item.stash[CLUSTER_PLACE] = places.setdefault(id(_shared(item)), (len(places), item.nodeid))
    items.sort(key=lambda item: item.stash[CLUSTER_PLACE])


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """The tests of a cluster that another process has taken are passed over. What a test leaves standing depends on
    the one that follows it here, so each next cluster is taken while the last test of the one before runs.
    """
    claims = session.config.stash.get(CLAIMS, None)
    if claims is None or session.testsfailed or session.config.option.collectonly:
        return None
    own = (item for item in session.items if claims.own(*item.stash[CLUSTER_PLACE]))
    item = next(own, None)
    while item is not None:
        following = next(own, None)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        item = following
    return True


def _shared(item: pytest.Item) -> object:
    """The cluster's description, or else what has none: the module."""
    if not isinstance(item, pytest.Function):
        return item
    chosen = item.callspec.params.get("cluster") if hasattr(item, "callspec") else None
    return chosen or getattr(item.module, "CLUSTER", None) or item.module


@pytest.fixture(scope="session")
def resident_javas() -> Iterator[ResidentJavas]:
    with ResidentJavas() as started:
        yield started


class StandingCluster:
    """The one cluster that runs; it ends when another is asked for."""

    def __init__(self) -> None:
        self._spec: ClusterSpec | None = None
        self._running = ExitStack()

    def of(
        self, spec: ClusterSpec, start: Callable[[], AbstractContextManager[KafkaCluster]]
    ) -> KafkaCluster:
        if spec is not self._spec:
            self.end()
            self._cluster = self._running.enter_context(start())
            self._spec = spec
        return self._cluster

    def end(self) -> None:
        self._spec = None
        self._running.close()


@pytest.fixture(scope="session")
def standing() -> Iterator[StandingCluster]:
    standing = StandingCluster()
    yield standing
    standing.end()


@pytest.fixture(scope="module")
def cluster(
    request: pytest.FixtureRequest, resident_javas: ResidentJavas, standing: StandingCluster
) -> KafkaCluster:
    """The module's running cluster; it is removed with all its files when another one is asked for.

    Its tools run in one lasting Java process, unless the module says ``TOOLS_ARE_PROCESSES``.
    """
    own = getattr(request.module, "CLUSTER", None) or ClusterSpec()
    spec = getattr(request, "param", own)

    def say(line: str) -> None:
        # A run that passes shows nothing of what it captured.
        with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            print(f"\n{request.module.__name__}: {line}", file=sys.stderr, flush=True)

    processes = getattr(request.module, "TOOLS_ARE_PROCESSES", False)
    run_tools = (lambda runner: runner) if processes else resident_javas.runner
    return standing.of(spec, lambda: started_cluster(spec, say, run_tools))


@pytest.fixture
def whole_cluster(cluster: KafkaCluster) -> KafkaCluster:
    """The module's cluster with every node running again, in any state after the test before."""
    cluster.bring_all_up()
    return cluster
