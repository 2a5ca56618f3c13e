"""What Prometheus is told of a cluster: what one reading shows, and nothing of what is not known."""

from __future__ import annotations

import urllib.request
from dataclasses import replace
from pathlib import Path

from backends.base.answers import ClusterInfo, Partitions
from console.errors import InputError
from console.jobs.status.cluster_metrics import GAUGES, ClusterMetrics, gauge_values, served
from console.jobs.status.overview_report import overview_counts
from recovery.model import Broker, Unknown, Why
from tests.unit.cli.command_process import Caller
from tests.unit.cli.memory_backend import cluster_of
from tests.unit.cli.planned_orders import ANY
from tests.unit.cli.test_overview import LED, OFFLINE, ONLINE, dirs, fetched, partition, quorum, view
from tests.unit.cli.test_short_sentences import read_whole
from tests.unit.recovery.surveys import SILENT

NAMES = {"cluster": "eu", "cluster_id": "cluster-a"}


def metric_lines(metrics: ClusterMetrics, path: Path) -> dict[str, float]:
    """What node_exporter would read: each sample without the cluster's labels, and its value."""
    assert metrics.write(path) == ""
    named = ",".join(f'{name}="{value}"' for name, value in NAMES.items())
    samples = (line.rsplit(" ", 1) for line in path.read_text().splitlines() if not line.startswith("#"))
    return {
        name.replace(f",{named}", "").replace(f"{{{named}}}", ""): float(value) for name, value in samples
    }


def test_the_gauges_are_the_counts_of_status() -> None:
    reading = read_whole("zone-power-loss")
    values = {one.gauge: one.value for one in gauge_values(reading) if not one.labels}
    counts = overview_counts(reading)
    assert counts["offline"] > 0, "nothing to compare"
    assert {
        "brokers": values["brokers"],
        "partitions": values["partitions"],
        "offline": values["partitions_offline"],
        "underMinIsr": values["partitions_under_min_isr"],
        "underReplicated": values["partitions_under_replicated"],
        "elrInUse": values["partitions_with_elr"],
        "logDirsNotListed": values["log_dirs_not_listed"],
    }.items() <= counts.items()
    fenced = [one.value for one in gauge_values(reading) if one.gauge == "broker_fenced"]
    assert (len(fenced), sum(fenced)) == (counts["brokers"], counts["fenced"])


def test_a_failed_disk_and_a_silent_voter_are_counted_where_they_are(tmp_path: Path) -> None:
    silent = fetched(101, 400, 10_000, 10_000)
    reading = view(
        OFFLINE,
        partition(1, ONLINE),
        log_dirs={1: dirs(1, "KAFKA_STORAGE_ERROR"), 3: SILENT},
        told_quorum=quorum(silent),
    )
    metrics = ClusterMetrics("eu", "cluster-a")
    metrics.update(reading, 1000.5)
    lines = metric_lines(metrics, tmp_path / "k.prom")
    assert lines["ktriage_up"] == 1
    assert [lines.get(f'ktriage_log_dirs_failed{{broker="{id}"}}') for id in (1, 2, 3)] == [
        1,
        0,
        None,
    ]
    assert lines["ktriage_quorum_voters_silent"] == 1
    assert lines["ktriage_quorum_leader"] == LED.key.id
    read_at = "ktriage_reading_timestamp_seconds"
    assert lines[f'{read_at}{{broker="1",part="log_dirs"}}'] == 1000.5
    assert f'{read_at}{{broker="3",part="log_dirs"}}' not in lines


def test_what_is_not_known_has_no_sample(tmp_path: Path) -> None:
    unknown = Unknown(Why.NOT_ALLOWED, "needs DESCRIBE on the cluster")
    reading = replace(view(OFFLINE), quorum=unknown, configs={OFFLINE.state.topic: unknown})
    brokers = tuple(Broker(one, "", 9092, None, None) for one in (1, 2, 3))
    reading = replace(reading, cluster=ClusterInfo("cluster-a", brokers, 1, True, "3.9"))
    metrics = ClusterMetrics("eu", "cluster-a")
    metrics.update(reading, 1.0)
    names = {name.partition("{")[0] for name in metric_lines(metrics, tmp_path / "k.prom")}
    assert "ktriage_partitions_offline" in names
    assert names.isdisjoint(
        f"ktriage_{gauge}"
        for gauge in GAUGES
        if gauge.startswith("quorum_")
        or gauge in ("partitions_under_min_isr", "broker_fenced", "topics_electing_uncleanly")
    )


def test_a_cluster_that_cannot_be_asked_keeps_only_the_times_of_its_readings(tmp_path: Path) -> None:
    metrics = ClusterMetrics("eu", "cluster-a")
    metrics.update(view(ONLINE), 1.0)
    metrics.failed()
    lines = metric_lines(metrics, tmp_path / "k.prom")
    assert lines.pop("ktriage_up") == 0
    assert {name.partition("{")[0] for name in lines} == {"ktriage_reading_timestamp_seconds"}


def test_a_scrape_gets_the_newest_reading_and_a_taken_port_is_one_clear_line() -> None:
    metrics = ClusterMetrics('the "eu" cluster', "cluster-a")
    metrics.update(view(ONLINE), 1.0)
    with served(metrics, "127.0.0.1", 0) as port:
        for partitions in (1, 0):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
                text = answer.read().decode()
            assert (
                f'ktriage_partitions{{cluster="the \\"eu\\" cluster",cluster_id="cluster-a"}} {partitions}.0'
                in text
            )
            metrics.update(replace(view(ONLINE), partitions=Partitions(())), 2.0)
        try:
            with served(metrics, "127.0.0.1", port):
                raise AssertionError("two servers at one port")
        except InputError as error:
            assert str(error) == f"--metrics-port: 127.0.0.1:{port}: Address already in use"


def test_watch_writes_the_file_while_it_waits(call: Caller, tmp_path: Path) -> None:
    file = tmp_path / "kafka.prom"
    words = ("--broker-id", "1", "--interval-ms", "200", "--metrics-file", str(file))
    ended = call.on(cluster_of(1))("ktriage", "watch", *ANY, *words)
    assert ended.status == 0, str(ended)
    assert "\nktriage_partitions_offline{" in file.read_text()
    missing = call.on(cluster_of(1))("ktriage", "watch", *ANY, *words[:-1], str(tmp_path / "none" / "k.prom"))
    assert missing.status == 0, "somebody waits, with or without the file"
    assert f"--metrics-file {tmp_path / 'none' / 'k.prom'}: No such file or directory" in missing.err
