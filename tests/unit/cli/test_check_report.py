"""What ``ktriage check`` says where it could not look."""

from __future__ import annotations

from backends.base.answers import Capabilities, ClusterInfo
from backends.base.check_report import TOPICS, CheckReport, PermissionCheck
from console.jobs.status.check_report import checked_lines, problems
from recovery.cluster_health import ClusterHealth, QuorumFinding, QuorumState
from recovery.model import Unknown, Why

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
