"""A served simulator in a separate process."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measure import BenchmarkError, environment

BROKERS = 12
PARTITIONS_A_TOPIC = 100
HIDDEN = "GetReplicaLogInfo,ElectLeaders:3"
READY = "ready: "

_WHOLE = """\
title: {partitions} partitions on {brokers} brokers
about: Nothing happens.
cluster:
  brokers: {{count: {brokers}}}
  min_isr: 2
  config: {{auto.leader.rebalance.enable: false}}
topics:
  - {{name: "events-{{n}}", count: {topics}, partitions: 100, replication_factor: 3, records: 10000}}
operator: {{at: 5}}
expect: {{offline: 0}}
"""
_OFFLINE = """\
title: {partitions} partitions are offline
about: Three of {brokers} brokers die one after the other; two come back after unclean shutdowns.
cluster:
  brokers: {{count: {brokers}}}
  min_isr: 2
  config:
    broker.session.timeout.ms: 3000
    broker.heartbeat.interval.ms: 500
    auto.leader.rebalance.enable: false
topics:
  - name: "orders-{{n}}"
    count: {topics}
    partitions: 100
    replicas: [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
    records: 1000
faults:
  - {{at: 10, do: kill, nodes: [broker-1]}}
  - {{at: 20, do: kill, nodes: [broker-2]}}
  - {{at: 30, do: kill, nodes: [broker-3]}}
  - {{at: 40, do: start, nodes: [broker-1, broker-2]}}
operator: {{at: 60}}
expect: {{offline: {partitions}}}
"""


def whole(partitions: int) -> str:
    """A scenario of a healthy cluster."""
    return _WHOLE.format(partitions=partitions, brokers=BROKERS, topics=partitions // PARTITIONS_A_TOPIC)


def offline(partitions: int) -> str:
    """A scenario in which all partitions wait for one dead broker."""
    return _OFFLINE.format(partitions=partitions, brokers=BROKERS, topics=partitions // PARTITIONS_A_TOPIC)


@contextmanager
def served(scenario: str, directory: Path, *, native: bool) -> Iterator[str]:
    """Gives the bootstrap servers once all brokers listen. Raises BenchmarkError."""
    path = directory / "scenario.yaml"
    path.write_text(scenario)
    start = "import sys; sys.argv[0] = 'ktriage'; from console.cli.main import main; main()"
    argv = [sys.executable, "-c", start, "simulate", "serve", str(path), "--port-base", "0"]
    if not native:
        argv += ["--without", HIDDEN]
    with (directory / "serve.log").open("w") as log:
        process = subprocess.Popen(
            argv, env=environment(directory), stdout=subprocess.PIPE, stderr=log, text=True
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line.startswith(READY):
            raise BenchmarkError(f"not served: {(directory / 'serve.log').read_text()[-500:]}")
        yield line.split(" brokers at ")[1].split(", controllers")[0].strip()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        process.stdout.close()
