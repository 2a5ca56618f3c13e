"""``ktriage check``."""

from __future__ import annotations

from console.cli.base.declaration import option
from console.cli.base.options import connected
from console.cli.base.run import Run
from console.jobs.status.check_report import Job


def check(
    run: Run,
    job: Job | None = option(
        "--for",
        "Whether this job could be done from here by this user: read (status, replicas, plan), elect, heal,"
        " quorum, groups (and transactions). The exit status is 0 only then; what the job does not need is shown,"
        " and does not count.",
    ),
) -> int:
    """Checks a cluster before an incident: which brokers can be reached from here at their advertised
    addresses, which Kafka requests the cluster supports and what they are used for, and which permissions
    this user has and which are missing; and whether changes could be recorded in the state directory. Nothing
    is changed. The exit status is 0 only when every broker was reached and nothing is missing.

    \b
    Examples:
      ktriage check --bootstrap-server kafka-1:9092
      ktriage check --bootstrap-server kafka-1:9092 --for elect
      ktriage check --bootstrap-server kafka-1:9092 --command-config client.properties --broker 3=10.0.0.3:9092
    """
    from console.jobs.status.watch_view import check_cluster  # noqa: PLC0415  # not for --help

    return check_cluster(run, job)


command = connected(check)
