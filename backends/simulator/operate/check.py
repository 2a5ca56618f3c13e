"""``ktriage check`` on a simulated cluster: which brokers answer, and what the scenario denies the operator."""

from __future__ import annotations

from dataclasses import replace

from backends.base.answers import Capabilities, ClusterInfo, Partitions
from backends.base.check_report import (
    CLUSTER_RIGHTS,
    TOPIC_RIGHTS,
    TOPICS,
    CheckReport,
    PermissionCheck,
    Reachability,
)
from backends.live.errors import CLUSTER_RESOURCE
from backends.simulator.network import broker as node
from backends.simulator.operate.operator_client import OperatorClient, silence
from backends.simulator.operator_messages import ClusterDescribed, DescribeCluster
from recovery.model import Unknown, Why

OF_CLUSTER = ("DESCRIBE", "ALTER", "CLUSTER_ACTION")
OF_TOPICS = ("DESCRIBE", "READ", "DESCRIBE_CONFIGS")
"""Operations that a scenario can deny to the operator. It has no throttles."""


def reached(asking: OperatorClient, cluster: ClusterInfo) -> tuple[Reachability, ...]:
    """Ask every listed broker once."""
    answers = asking.all([(node(broker.id), DescribeCluster()) for broker in cluster.brokers])
    newest = max((a.offset for a in answers if isinstance(a, ClusterDescribed)), default=-1)
    found = []
    for broker, answer in zip(cluster.brokers, answers, strict=True):
        answered = isinstance(answer, ClusterDescribed)
        problem = None if answered else silence(answer)
        caught_up = answer.offset == newest if answered else None
        address = f"{broker.host}:{broker.port}"
        found.append(Reachability(broker.id, address, False, problem, answered, caught_up, broker.fenced))
    return tuple(found)


def checked(
    asking: OperatorClient,
    cluster: ClusterInfo,
    capabilities: Capabilities,
    partitions: Partitions,
    denied: frozenset[str],
) -> CheckReport:
    """``partitions`` are all partitions. ``denied`` is as in the scenario: "READ topic payments"."""
    topics = {state.topic for state in partitions.states}
    rights = [
        PermissionCheck(name, CLUSTER_RESOURCE, CLUSTER_RIGHTS[name], f"{name} cluster" not in denied)
        for name in OF_CLUSTER
    ]
    for name in OF_TOPICS:
        lacking = {topic for topic in topics if f"{name} topic {topic}" in denied}
        missing = tuple(sorted(lacking | set(partitions.hidden)))
        looked_at = len(topics) + len(partitions.hidden)
        rights.append(
            PermissionCheck(
                name, TOPICS, TOPIC_RIGHTS[name], partitions.not_compared or not missing, missing, looked_at
            )
        )
    hidden = partitions.not_compared or partitions.hidden
    if "CLUSTER_ACTION cluster" in denied:
        needs = "needs CLUSTER_ACTION on the cluster"
        capabilities = replace(
            capabilities,
            replica_logs=f"not to be had: GetReplicaLogInfo {needs}",
            designated_elections=Unknown(Why.NOT_ALLOWED, f"ElectLeaders v3 {needs}"),
        )
    return CheckReport(cluster, reached(asking, cluster), capabilities, tuple(rights), hidden)
