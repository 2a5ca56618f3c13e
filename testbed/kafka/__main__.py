"""``python -m testbed.kafka up``: starts a cluster and runs it until Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys

from testbed.kafka import ClusterSpec, KafkaCluster, TestbedError
from testbed.kafka.jars import DEFAULT_VERSION
from testbed.kafka.maven_jars import to_stderr


def main() -> int:
    """Exit status 0 after Ctrl-C or SIGTERM, 1 with an error if the cluster does not start."""
    parser = argparse.ArgumentParser(prog="python -m testbed.kafka", description=__doc__)
    parser.add_argument("command", choices=["up"])
    parser.add_argument("--version", default=DEFAULT_VERSION, help="Kafka's version (default: %(default)s)")
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--controllers", type=int, default=3)
    parser.add_argument("--log-dirs", type=int, default=1, help="log dirs of each broker")
    given = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        spec = ClusterSpec(given.version, given.controllers, given.brokers, log_dirs=given.log_dirs)
        with KafkaCluster(spec, say=to_stderr) as cluster:
            print(f"--bootstrap-server {cluster.bootstrap()}")
            print(f"--bootstrap-controller {cluster.bootstrap_controllers}", flush=True)
            to_stderr(f"files in {cluster.directory}; Ctrl-C stops the cluster and removes them")
            signal.pause()
    except KeyboardInterrupt:
        return 0
    except TestbedError as error:
        to_stderr(f"error: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
