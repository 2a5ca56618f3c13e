"""What is said first of a cluster: the worst known truth, and nothing well that was not seen to be."""

from __future__ import annotations

import pytest

from recovery.cluster_health import ClusterHealth, QuorumState, quorum_state
from recovery.model import Unknown, Why
from recovery.wording.cluster_health_text import health_line

WELL = ClusterHealth(
    QuorumState.LED, dead_voters=(), brokers_down=(), failed_dirs=0, offline=0, under_min_isr=0, unseen=False
)


def test_a_cluster_without_fault_is_well_and_says_so() -> None:
    assert WELL.well
    assert health_line(WELL) == "no partition offline"


@pytest.mark.parametrize(
    ("health", "line"),
    [
        (WELL._replace(quorum=QuorumState.NO_LEADER), "quorum NO LEADER"),
        (WELL._replace(quorum=QuorumState.CANNOT_COMMIT), "quorum CANNOT COMMIT"),
        (WELL._replace(quorum=QuorumState.NOT_TOLD), "quorum not told · no partition offline"),
        (WELL._replace(brokers_down=(3,), offline=4), "broker 3 down · 4 offline"),
        (WELL._replace(dead_voters=(100, 101)), "voters 100, 101 down · no partition offline"),
        (
            WELL._replace(failed_dirs=1, under_min_isr=2),
            "1 disk failed · 2 under min ISR · no partition offline",
        ),
        (WELL._replace(brokers_down=(1, 2, 3, 4, 5)), "5 brokers down · no partition offline"),
        (WELL._replace(unseen=True), "no partition offline that may be seen"),
        (
            ClusterHealth(QuorumState.NO_LEADER, (), (3,), 1, 4, 2, unseen=True),
            "quorum NO LEADER · broker 3 down · 1 disk failed · 4 offline · 2 under min ISR",
        ),
    ],
)
def test_the_worst_stands_first_and_is_not_well(health: ClusterHealth, line: str) -> None:
    assert not health.well
    assert health_line(health) == line


def test_silence_and_a_controller_that_does_not_lead_mean_that_nobody_leads() -> None:
    for why in (Why.NOT_ANSWERED, Why.FAILED):
        assert quorum_state(Unknown(why, ""), commits=False) is QuorumState.NO_LEADER


def test_a_refusal_says_nothing_about_the_quorum() -> None:
    for why in (Why.NOT_ALLOWED, Why.NOT_OFFERED):
        assert quorum_state(Unknown(why, ""), commits=False) is QuorumState.NOT_TOLD


def test_a_described_quorum_leads_where_it_commits() -> None:
    assert quorum_state(None, commits=True) is QuorumState.LED
    assert quorum_state(None, commits=False) is QuorumState.CANNOT_COMMIT
