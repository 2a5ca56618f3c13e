"""``ktriage check``."""

from __future__ import annotations

from console.cli.base.options import connected
from console.cli.base.run import Run


def check(run: Run) -> int:
    """Checks a cluster before an incident: which brokers can be reached from here at their advertised
    addresses, which Kafka requests the cluster supports and what they are used for, and which permissions
    this user has and which are missing; and whether changes could be recorded in the state directory. Nothing
    is changed. The exit status is 0 only when every broker was reached and nothing is missing.

    \b
    Examples:
      ktriage check --bootstrap-server kafka-1:9092
      ktriage check --bootstrap-server kafka-1:9092 --command-config client.properties --broker 3=10.0.0.3:9092
    """
    from console.jobs.status.watch_view import check_cluster  # noqa: PLC0415  # not for --help

    return check_cluster(run)


command = connected(check)
