"""What ``ktriage check`` says where it could not look."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backends.base.answers import Capabilities, ClusterInfo
from backends.base.check_report import (
    CLUSTER_RESOURCE,
    GROUPS,
    TOPICS,
    TRANSACTIONAL_IDS,
    CheckReport,
    PermissionCheck,
    Reachability,
)
from console.jobs.status.check_report import Job, checked_lines, needed, problems
from recovery.cluster_health import ClusterHealth, QuorumFinding, QuorumState
from recovery.model import Unknown, Why
from tests.command_server import ROOT
from tests.unit.cli.command_process import Caller

WELL = ClusterHealth(QuorumFinding(QuorumState.LED), offline=0, under_min_isr=0)
NOT_ASKED = Unknown(Why.NOT_ANSWERED, "no broker was asked for its log dirs")


def checked(right: PermissionCheck, hidden: tuple[str, ...] | Unknown) -> CheckReport:
    cluster = ClusterInfo("c", (), -1, True)
    return CheckReport(cluster, (), Capabilities((), {}, "native", "native"), (right,), hidden)


def test_a_permission_on_all_that_is_seen_is_not_denied_where_nobody_told_of_hidden_topics() -> None:
    """The brokers behind a headless service advertise names that do not resolve here; there is no authorizer."""
    right = PermissionCheck("READ", TOPICS, "epochs", NOT_ASKED, (), 2)
    text = "\n".join(checked_lines(checked(right, NOT_ASKED), WELL, ()))
    assert "granted on what is seen; hidden topics: not known (no broker was asked for its log dirs)" in text
    assert "not allowed" not in text
    assert problems(checked(right, NOT_ASKED)) == [
        "hidden topics: not known (no broker was asked for its log dirs)"
    ]


def test_topics_that_may_not_be_seen_are_counted_and_named() -> None:
    right = PermissionCheck("READ", TOPICS, "epochs", False, ("a", "b"), 2)
    missing, named = problems(checked(right, ("a", "b")))
    assert missing == "missing: READ on 2 of 2 topics (a, b), used for epochs"
    assert named == "2 topics may not be seen: a, b"
    assert problems(checked(right._replace(granted=True, missing=()), ())) == []


def permissions(job: Job) -> frozenset[tuple[str, str]]:
    """Those of the page, in its table by job."""
    page = (ROOT / "docs/permissions.md").read_text(encoding="utf-8")
    (row,) = (line for line in page.splitlines() if line.startswith(f"| `{job}`: "))
    cells = row.strip("| ").split("|")[1:]
    kinds = (CLUSTER_RESOURCE, TOPICS, GROUPS, TRANSACTIONAL_IDS)
    return frozenset(
        (operation.strip(), kind)
        for kind, cell in zip(kinds, [*cells, "", "", ""], strict=False)
        for operation in cell.split(",")
        if operation.strip()
    )


@pytest.mark.parametrize("job", Job)
def test_the_page_names_the_permissions_that_check_asks_for(job: Job) -> None:
    assert permissions(job) == needed(job)


def test_for_a_job_only_what_it_needs_counts_and_what_is_not_known_counts_as_missing() -> None:
    rights = (
        PermissionCheck("ALTER", CLUSTER_RESOURCE, "", False),
        PermissionCheck("READ", GROUPS, "offsets", NOT_ASKED),
    )
    dead = Reachability(3, "b:1", False, NOT_ASKED, False, None, fenced=True)
    cut_off = dead._replace(broker=2, fenced=False)
    report = replace(checked(rights[0], ()), rights=rights, reach=(dead, cut_off))
    assert [problems(report, job) for job in (Job.READ, Job.QUORUM)] == [
        [line for line in problems(report) if line.startswith("broker 2 ")],
        [
            "missing: ALTER on Cluster:kafka-cluster, used for elections, assignments, voters, transaction"
            " markers, unregistering brokers"
        ],
    ]
    assert [line.split(" (")[0] for line in problems(report, Job.GROUPS)][1:] == [
        "missing: ALTER on Cluster:kafka-cluster, used for elections, assignments, voters, transaction markers,"
        " unregistering brokers",
        "not known: READ on Group:*",
    ]


def test_a_script_learns_from_the_status_whether_a_job_can_be_done(call: Caller) -> None:
    incident = ("--simulate", "last-replica-standing")
    assert call("ktriage", "check", *incident).status == 1  # brokers are down
    elect = call("ktriage", "check", "--for", "elect", *incident)
    assert elect.status == 0 and "for elect: nothing is missing" in elect.out
