"""Users who have exactly the permissions that docs/permissions.md names for a job can do it, and no more.

``check --for`` says so by its exit status, and names what another job would need.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.base.check_report import GROUPS, TOPICS, TRANSACTIONAL_IDS
from console.jobs.status.check_report import Job, needed
from testbed.kafka import ClientListener, ClusterSpec, KafkaCluster, wait_until
from tests.live import group_clients, incident_steps
from tests.live.command_runner import CommandRunner

pytestmark = pytest.mark.long

CLUSTER = ClusterSpec(
    controllers=1,
    brokers=3,
    listeners=(ClientListener("SECURE", "SASL_PLAINTEXT", ("SCRAM-SHA-256",)),),
    users=dict.fromkeys(("admin", *Job), "a-password"),
    authorizer=True,
)
TOPIC, GROUP = "orders", "billing"
AGREED = ("--yes", "--reason", "a test")


class As(CommandRunner):
    """The commands of the user of one job."""

    def __init__(self, cluster: KafkaCluster, job: Job, home: Path) -> None:
        super().__init__(home, cluster.bootstrap("SECURE"))
        config = cluster.client_configs.client_properties(job, listener="SECURE", mechanism="SCRAM-SHA-256")
        self.connection = (*self.connection, "--command-config", str(config))


@pytest.fixture(scope="module")
def incident(cluster: KafkaCluster) -> KafkaCluster:
    """A topic that lost its leader with broker 2, whose only other replica, on broker 3, is older."""
    cluster.client.create_topic(TOPIC, [[2, 3]])
    incident_steps.produce(cluster, TOPIC, 10, "common")
    group_clients.read_and_commit(cluster, GROUP, TOPIC, 10)
    for job in Job:
        grant(cluster, job)
    cluster.node(3).pause()
    try:
        incident_steps.wait_all(cluster, (TOPIC,), lambda state: state.isr == (2,), "with 2 alone in the ISR")
        cluster.node(2).kill()
    finally:
        cluster.node(3).resume()
    cluster.metadata.wait_live([1, 3])
    incident_steps.wait_offline(cluster, (TOPIC,))
    return cluster


def grant(cluster: KafkaCluster, job: Job) -> None:
    allow = cluster.access_control.allow
    for operation, resource in needed(job):
        allow(
            job,
            operation,
            topic="*" if resource == TOPICS else None,
            group="*" if resource == GROUPS else None,
            transactional_id="*" if resource == TRANSACTIONAL_IDS else None,
        )


@pytest.mark.parametrize("job", Job)
def test_check_says_that_the_job_can_be_done_and_what_others_need(
    incident: KafkaCluster, tmp_path: Path, job: Job
) -> None:
    user = As(incident, job, tmp_path)
    wait_until(lambda: user("check", "--for", job).status == 0, f"the permissions for {job}")
    for other in Job:
        ended = user("check", "--for", other)
        lacking = needed(other) - needed(job)
        assert (ended.status == 1) == bool(lacking), (other, ended)
        told = {
            tuple(line.split(",")[0].removeprefix("missing: ").split(" on "))
            for line in ended.err.splitlines()
            if line.startswith("missing: ")
        }
        assert {operation for operation, _ in told} == {operation for operation, _ in lacking}, (other, ended)


def test_who_may_read_sees_everything_and_elects_nothing(incident: KafkaCluster, tmp_path: Path) -> None:
    user = As(incident, Job.READ, tmp_path)
    status = user("status")
    assert status.status == 1 and "1 offline" in status.out, status
    assert "needs " not in status.out + status.err, status
    user.plan_aggressively(TOPIC)
    refused = user("apply", "plan.json", *AGREED)
    assert refused.status != 0 and "ALTER on Cluster:kafka-cluster" in refused.err


def test_each_does_its_own_job(incident: KafkaCluster, tmp_path: Path) -> None:
    assert As(incident, Job.QUORUM, tmp_path)("quorum", "status").status == 0
    elects = As(incident, Job.ELECT, tmp_path)
    elects.plan_aggressively(TOPIC)
    applied = elects("apply", "plan.json", *AGREED)
    assert applied.status == 0, applied
    groups = As(incident, Job.GROUPS, tmp_path)
    shown = groups("groups", "show", "--all")
    assert GROUP in shown.out and "not allowed" not in shown.out + shown.err, shown
    transactions = groups("transactions")
    assert "transactions in 2 partitions: none is open" in transactions.out, transactions
    assert "needs " not in transactions.out + transactions.err, transactions
    moved = As(incident, Job.HEAL, tmp_path)(
        "heal", "apply", "--broker-id", "2", "--gone-for-good", "--throttle", "20MB", *AGREED
    )
    assert "needs " not in moved.out + moved.err and "1 moved" in moved.out, moved
