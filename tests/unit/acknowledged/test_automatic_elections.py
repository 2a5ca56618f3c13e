"""Whom Kafka elects by itself when a broker returns: whoever is missing here is never warned of."""

from __future__ import annotations

from recovery.acknowledged.candidate_verdicts import partition_verdicts
from recovery.acknowledged.partition_facts import PartitionFacts
from recovery.acknowledged.verdict import AutomaticElectionKind
from tests.unit.recovery.surveys import SILENT, log, survey

LOGS = {1: log((0, 0, 900)), 2: SILENT, 3: SILENT}


def elected(**state: object) -> dict[int, AutomaticElectionKind]:
    asked = survey(LOGS, **state)  # type: ignore[arg-type]
    found = partition_verdicts(PartitionFacts(asked, elr_enabled=True, unclean_elections=False))
    return {one.broker: one.kind for one in found.automatic_elections}


def test_a_partition_with_a_leader_elects_nobody_whoever_returns() -> None:
    assert elected(leader=1, isr=(1, 2), elr=(3,)) == {}


def test_while_the_isr_has_members_nobody_of_the_elr_is_elected() -> None:
    assert elected(isr=(2,), elr=(3,)) == {2: AutomaticElectionKind.ISR_MEMBER}
    assert elected(elr=(3,)) == {3: AutomaticElectionKind.ELR_MEMBER}


def test_the_one_last_known_leader_is_elected_when_nobody_else_is_left() -> None:
    assert elected(last_known_elr=(2,)) == {2: AutomaticElectionKind.LAST_KNOWN_LEADER}
    assert elected(last_known_elr=(2, 3)) == {}, "of two nobody knows who led last"
    assert elected(elr=(3,), last_known_elr=(2,)) == {3: AutomaticElectionKind.ELR_MEMBER}
