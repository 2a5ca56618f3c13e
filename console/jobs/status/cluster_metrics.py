"""The gauges of ``ktriage watch``: what one reading of a cluster shows, for Prometheus.

What is not known has no sample, and never a 0. Kafka's own gauges of KIP-966 ("Metrics") and of KIP-853 are the
active controller's, in its JMX; here they are computed from what any broker answers.
"""

from __future__ import annotations

import http.server
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from console.errors import InputError
from console.reading.cluster_reading import ClusterReading
from recovery.cluster_health import short_of_replicas
from recovery.membership.quorum_health import BEHIND_MS, MemberRole, QuorumHealth
from recovery.model import PartitionState, Unknown
from recovery.survey_columns import uses_elr
from recovery.wording.missing_extra import missing_extra

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric

GAUGES: Mapping[str, str] = {
    "up": "1: the newest reading of the cluster succeeded; 0: nobody could be asked.",
    "current": "1: leaders and ISRs are current; 0: no controller leads, or the broker that was asked is cut off.",
    "reading_timestamp_seconds": "When the partitions, the quorum, or the log dirs of the broker were last read.",
    "brokers": "Brokers that the cluster lists.",
    "broker_fenced": "1: the broker is fenced; 0: it is not.",
    "partitions": "Partitions that this user may see.",
    "topics_hidden": "Topics that this user may not see.",
    "partitions_offline": "Partitions without a leader.",
    "partitions_under_replicated": "Partitions of which a replica is not in the ISR, offline ones included.",
    "partitions_under_min_isr": "Partitions with an ISR smaller than min.insync.replicas, offline ones included"
    " (KIP-966, global_under_min_isr_partition_count).",
    "partitions_electing_nobody": "Partitions without a leader and without a member of ISR, ELR or LastKnownELR:"
    " Kafka elects nobody by itself (KIP-966, manual_leader_election_required_partition_count).",
    "partitions_with_elr": "Partitions with a member of ELR or LastKnownELR.",
    "topics_electing_uncleanly": "Topics with a partition without a leader and unclean.leader.election.enable.",
    "log_dirs_failed": "Log dirs of the broker that are offline, or were before it stopped.",
    "log_dirs_not_listed": "Brokers of which the log dirs are not known.",
    "quorum_leader": "The node id of the active controller (KIP-853, current-leader).",
    "quorum_leader_epoch": "The epoch of the active controller (KIP-853, current-epoch).",
    "quorum_high_watermark": "Offsets of the metadata log below this one are committed (KIP-853, high-watermark).",
    "quorum_voters": "Voters (KIP-853, number-of-voters).",
    "quorum_observers": "Replicas that fetch the metadata log and have no vote (KIP-853, number-of-observers).",
    "quorum_voters_silent": "Voters that do not fetch.",
    "quorum_voters_behind": f"Voters that fetch and were not caught up for {BEHIND_MS / 1000:g} s.",
    "quorum_failures_tolerated": "How many more voters may fail now; below 0: nothing can be committed.",
}
"""Every gauge without its prefix ``ktriage_``, with its meaning."""


class GaugeValue(NamedTuple):
    gauge: str
    value: float
    labels: Mapping[str, str] = {}


def metrics_library() -> ModuleType:
    """prometheus_client. Raises InputError, with the command that installs it, where it is missing."""
    try:
        import prometheus_client  # noqa: PLC0415  # no other command needs it
    except ImportError:
        needs = missing_extra("--metrics-port and --metrics-file need", "prometheus-client", "metrics")
        raise InputError(needs) from None
    return prometheus_client


def gauge_values(reading: ClusterReading) -> Iterator[GaugeValue]:
    """What one reading shows, without times."""
    states, health = reading.partitions.states, reading.health
    yield GaugeValue("current", health.current)
    yield GaugeValue("brokers", len(reading.cluster.brokers))
    for broker in reading.cluster.brokers:
        if broker.fenced is not None:
            yield GaugeValue("broker_fenced", broker.fenced, {"broker": str(broker.id)})
    short = tuple(short_of_replicas(states))
    offline = [state for state in short if state.offline]
    yield GaugeValue("partitions", len(states))
    yield GaugeValue("topics_hidden", len(reading.partitions.hidden))
    yield GaugeValue("partitions_offline", len(offline))
    yield GaugeValue("partitions_under_replicated", sum(len(s.isr) < len(s.replicas) for s in short))
    under = _under_min_isr(reading, short)
    if under is not None:
        yield GaugeValue("partitions_under_min_isr", under)
    yield GaugeValue("partitions_electing_nobody", sum(not (s.isr or uses_elr(s)) for s in offline))
    if not isinstance(reading.cluster.elr_enabled, Unknown):
        yield GaugeValue("partitions_with_elr", sum(map(uses_elr, states)))
    if health.offline == 0 or all(
        not isinstance(reading.configs.get(s.topic), Unknown | None) for s in offline
    ):
        yield GaugeValue("topics_electing_uncleanly", len(health.self_electing))
    failed = Counter(one.broker for one in reading.failed_dirs())
    for broker_id in sorted({*_listing_dirs(reading), *failed}):
        yield GaugeValue("log_dirs_failed", failed[broker_id], {"broker": str(broker_id)})
    yield GaugeValue("log_dirs_not_listed", len(health.dirs_not_listed))
    members = reading.members_health
    if isinstance(members, QuorumHealth):
        yield from _of_quorum(members)


def _listing_dirs(reading: ClusterReading) -> Iterator[int]:
    return (broker for broker, dirs in reading.log_dirs.items() if not isinstance(dirs, Unknown))


def _under_min_isr(reading: ClusterReading, short: tuple[PartitionState, ...]) -> int | None:
    """None where min.insync.replicas of one of them is not known: a count of the others would be too small."""
    counts = [(len(state.isr), reading.min_isr(state)) for state in short]
    if any(isinstance(needed, Unknown) for _, needed in counts):
        return None
    return sum(isr < needed for isr, needed in counts if isinstance(needed, int))


def _of_quorum(found: QuorumHealth) -> Iterator[GaugeValue]:
    quorum = found.quorum
    yield GaugeValue("quorum_leader", quorum.leader.id)
    yield GaugeValue("quorum_leader_epoch", quorum.leader_epoch)
    if quorum.high_watermark is not None:
        yield GaugeValue("quorum_high_watermark", quorum.high_watermark)
    yield GaugeValue("quorum_voters", len(quorum.voters.voters))
    observers = (MemberRole.CONTROLLER, MemberRole.BROKER)
    fetching = (member for member in found.members if member.fetches)
    yield GaugeValue("quorum_observers", sum(member.role in observers for member in fetching))
    yield GaugeValue("quorum_voters_silent", len(found.dead_voters))
    yield GaugeValue("quorum_voters_behind", sum(member.role not in observers for member in found.behind))
    yield GaugeValue("quorum_failures_tolerated", found.strength.spare)


class ClusterMetrics:
    """What the newest reading showed, as a collector of prometheus_client: each request gets the values of one
    reading. ``cluster`` is the name that the operator gave. Raises InputError where the library is missing.
    """

    def __init__(self, cluster: str, cluster_id: str) -> None:
        self.registry: CollectorRegistry = metrics_library().CollectorRegistry(auto_describe=False)
        self._labels = {"cluster": cluster, "cluster_id": cluster_id}
        self._values: tuple[GaugeValue, ...] = ()
        self._read_at: dict[tuple[str, str], float] = {}
        self.registry.register(self)

    def update(self, reading: ClusterReading, at: float) -> None:
        """``at`` in seconds since 1970."""
        parts = [("partitions", "")]
        if isinstance(reading.members_health, QuorumHealth):
            parts.append(("quorum", ""))
        parts += [("log_dirs", str(broker)) for broker in _listing_dirs(reading)]
        self._read_at.update(dict.fromkeys(parts, at))
        self._values = (GaugeValue("up", 1), *gauge_values(reading))

    def failed(self) -> None:
        """Nobody could be asked: nothing is known now but the times of earlier readings."""
        self._values = (GaugeValue("up", 0),)

    def collect(self) -> Iterator[Metric]:
        """For prometheus_client, in a thread of its own."""
        from prometheus_client.metrics_core import GaugeMetricFamily  # noqa: PLC0415

        times = (
            GaugeValue("reading_timestamp_seconds", at, {"part": part, "broker": broker})
            for (part, broker), at in self._read_at.copy().items()
        )
        families: dict[str, GaugeMetricFamily] = {}
        for gauge, value, labels in (*self._values, *times):
            named = {**self._labels, **labels}
            if gauge not in families:
                families[gauge] = GaugeMetricFamily(f"ktriage_{gauge}", GAUGES[gauge], labels=list(named))
            families[gauge].add_metric(list(named.values()), value)
        yield from families.values()

    def write(self, path: Path) -> str:
        """The text format, as a whole or not at all; why the file could not be written, or ""."""
        try:
            metrics_library().write_to_textfile(str(path), self.registry)
        except OSError as error:
            return error.strerror or str(error)
        return ""


@contextmanager
def served(metrics: ClusterMetrics, address: str, port: int) -> Iterator[int]:
    """The port at which ``/metrics`` is answered until the end; ``port`` 0 lets the system choose.

    Raises InputError where the address cannot be listened at.
    """
    try:
        server, thread = metrics_library().start_http_server(port, address, metrics.registry)
    except OSError as error:
        raise InputError(f"--metrics-port: {address}:{port}: {error.strerror or error}") from None
    assert isinstance(server, http.server.HTTPServer) and isinstance(thread, threading.Thread)
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
