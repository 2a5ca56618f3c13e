"""What the glossary says of the partition under the cursor."""

from __future__ import annotations

import pytest

from recovery.model import ReplicaLog, Unknown
from recovery.ranking import Ranking
from recovery.wording.glossary import LAST_KNOWN_ELR
from recovery.wording.glossary_now import PartitionNow, meaning_now
from tests.unit.recovery.surveys import log, survey


@pytest.mark.parametrize(
    ("elr", "known", "expected"),
    [
        ((1,), (1,), "1 is in the ELR as well: the controller knows of no unclean shutdown of it."),
        ((2,), (1,), "Kafka elects nobody from it while the ISR or the ELR has a member."),
        ((), (1,), "Kafka elects it as soon as it is unfenced, whatever its log lost."),
        ((), (1, 2), "it names more than one, and Kafka elects none of them by itself."),
        ((), (), "Kafka elects nobody from it."),
    ],
)
def test_the_last_known_leader_is_elected_only_where_isr_and_elr_are_empty(
    elr: tuple[int, ...], known: tuple[int, ...], expected: str
) -> None:
    logs: dict[int, ReplicaLog | Unknown] = {1: log((0, 0, 1500)), 2: log((0, 0, 1000))}
    now = PartitionNow(survey(logs, isr=(), elr=elr, last_known_elr=known), Ranking.LAST_RECORD)
    assert expected in meaning_now(LAST_KNOWN_ELR, now)
