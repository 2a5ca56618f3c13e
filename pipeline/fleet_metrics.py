"""What the tables say of the fleet, in Prometheus' text format: for a file that an exporter of the host serves.

A cluster of which something is not known has no sample of it, and never a 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pipeline.errors import PipelineError
from pipeline.results import read_results
from pipeline.snapshot.catalog import read_newest, snapshots
from pipeline.snapshot.observation import UNKNOWN_CLUSTER, SnapshotKind
from pipeline.storage import StoragePath
from pipeline.tables.delta_table import is_table
from pipeline.tables.schemas import OBSERVATIONS, RUNS
from pipeline.views import view_rows
from pipeline.watch.watch_checkpoint import WatchCheckpoint
from pipeline.watch.watch_result import watch_result
from recovery.wording.missing_extra import missing_extra

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric


class Sample(NamedTuple):
    """A value of a metric about a cluster, with the name by which it was asked."""

    metric: str
    cluster_id: str
    name: str
    value: float


METRICS: Mapping[str, str] = {
    "ktriage_partitions": "Partitions in the newest snapshot.",
    "ktriage_partitions_offline": "Partitions without a leader in the newest snapshot.",
    "ktriage_snapshot_timestamp_seconds": "When the newest snapshot was complete.",
    "ktriage_snapshot_failed": "1: the cluster was asked in vain after its newest snapshot.",
    "ktriage_at_risk": "Partitions whose acknowledged records the worst single failure puts at risk.",
    "ktriage_exposed_offline": "Partitions that the worst single failure takes offline.",
    "ktriage_exposure_timestamp_seconds": "When the newest run of exposure was made.",
    "ktriage_incidents_open": "Incidents in the metadata log that have not ended.",
    "ktriage_watch_lag_seconds": "How much older the last record that watch read is than the newest there.",
}
"""Every metric, a gauge, with its meaning."""


def fleet_samples(places: Sequence[StoragePath]) -> list[Sample]:
    """Of snapshots, the newest exposure, and what watch has written, in these directories. Raises PipelineError."""
    found: list[Sample] = []
    for place in places:
        if is_table(place, OBSERVATIONS):
            found += _of_snapshots(place)
        if is_table(place, RUNS):
            found += _of_exposure(place)
        found += _of_watch(place)
    return found


def _of_snapshots(place: StoragePath) -> Iterator[Sample]:
    for cluster_id, observations in read_newest(place).clusters.items():
        newest, whole = observations[-1], snapshots(observations)
        if cluster_id == UNKNOWN_CLUSTER:
            continue
        name, failed = newest.asked, newest.kind is SnapshotKind.FAILED
        yield Sample("ktriage_snapshot_failed", cluster_id, name, failed)
        if whole:
            yield Sample("ktriage_partitions", cluster_id, name, whole[-1].partitions)
            yield Sample("ktriage_partitions_offline", cluster_id, name, whole[-1].offline)
            at = whole[-1].taken_at.timestamp()
            yield Sample("ktriage_snapshot_timestamp_seconds", cluster_id, name, at)


def _of_exposure(place: StoragePath) -> Iterator[Sample]:
    runs = [result for result in read_results(place) if result.job == "exposure"]
    for row in runs[-1].summary["fleet"] if runs else ():
        cluster_id, name = row["cluster_id"], row["cluster_name"] or ""
        if row["refused"] is None:
            yield Sample("ktriage_at_risk", cluster_id, name, row["acknowledged_at_risk"])
            yield Sample("ktriage_exposed_offline", cluster_id, name, row["offline"])
            yield Sample("ktriage_exposure_timestamp_seconds", cluster_id, name, runs[-1].made_at.timestamp())


def _of_watch(place: StoragePath) -> Iterator[Sample]:
    watched = watch_result(place)
    if watched is None:
        return
    names = watched.asked["names"]
    open_now = dict.fromkeys(names, 0)
    for cluster_id in view_rows(place, "open_incidents")["cluster_id"].to_pylist():
        open_now[cluster_id] += 1
    for cluster_id, count in open_now.items():
        yield Sample("ktriage_incidents_open", cluster_id, names[cluster_id], count)
    ids = {name: cluster_id for cluster_id, name in names.items()}
    for name, at in WatchCheckpoint.below(place).left_by_earlier_run().clusters.items():
        if at.time_ms >= 0:
            yield Sample("ktriage_watch_lag_seconds", ids.get(name, name), name, at.lag_ms / 1000)


def exposition(samples: Iterable[Sample]) -> str:
    """The samples in the text format, metric by metric. Raises PipelineError where the library is missing."""
    try:
        from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415  # of an extra
    except ImportError:
        needs = missing_extra("ktriage pipeline metrics needs", "prometheus-client", "metrics")
        raise PipelineError(needs) from None
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_FleetCollector(tuple(samples)))
    return generate_latest(registry).decode()


class _FleetCollector:
    """Samples as prometheus_client collects them."""

    def __init__(self, samples: tuple[Sample, ...]) -> None:
        self._samples = samples

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.metrics_core import GaugeMetricFamily  # noqa: PLC0415  # of an extra

        for metric, meaning in METRICS.items():
            family = GaugeMetricFamily(metric, meaning, labels=("cluster_id", "cluster"))
            for sample in self._samples:
                if sample.metric == metric:
                    family.add_metric((sample.cluster_id, sample.name), sample.value)
            if family.samples:
                yield family
