"""An operator who doubts a verdict asks for its proof: ``ktriage replicas --explain``.

The stale long tail: 1 holds 0 to 1499 in epoch 0, 2 holds 1000 to 1299 in epoch 2, 3 is down, nobody leads.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recovery.acknowledged.beliefs import Belief
from recovery.acknowledged.candidate_verdicts import partition_verdicts
from recovery.acknowledged.partition_facts import PartitionFacts
from recovery.acknowledged.verdict import Evidence, EvidenceKind
from recovery.model import (
    EpochSpan,
    Lineage,
    PartitionState,
    Replica,
    ReplicaLog,
    Standing,
    Survey,
    Unknown,
    Why,
)
from recovery.wording.proof_text import evidence_step, explained_lines
from tests.command_server import Ended
from tests.unit.cli.command_process import invoke

SILENT = Unknown(Why.NOT_ANSWERED, "connection refused")


def simulated(home: Path, *words: str) -> Ended:
    return invoke(home, "ktriage", "replicas", "--simulate", "stale-long-tail", "--explain", *words)


def test_the_proof_has_the_offsets_epochs_and_times_that_the_verdict_rests_on(tmp_path: Path) -> None:
    text = simulated(tmp_path, "--topic", "payments").out
    known, _, choices = text.partition("payments-0, electing broker 1: 300+ committed")
    assert "Broker 1: offsets 0 to 1,500" in known and "Broker 3: its log is not known" in known
    assert "led by 2, RECOVERING, ISR 2 of 1,2,3, min ISR 1: acks=all could be confirmed" in known
    first, _, second = choices.partition("payments-0, electing broker 2: 500+ committed")
    assert "Broker 1 lacks of broker 2: epoch 2 from 1,000 to 1,300" in first
    assert "Broker 2 lacks of broker 1: epoch 0 from 1,000 to 1,500" in second
    assert "What would decide more: the answer of broker 3" in second


def test_each_belief_that_a_step_names_is_explained_once_with_its_place_in_kafka(tmp_path: Path) -> None:
    text = simulated(tmp_path, "--topic", "payments").out
    explained = text.partition("What these steps believe of Kafka")[2]
    numbers = {part.partition("]")[0] for part in text.split("[")[1:] if part.partition("]")[0].isdecimal()}
    assert numbers == {str(number) for number in range(1, len(numbers) + 1)} and numbers
    for number in numbers:
        assert explained.count(f"[{number}]") == 1
    assert "kafka.cluster.Partition.checkEnoughReplicasReachOffset" in explained


def test_a_program_gets_the_same_steps_with_the_names_of_the_beliefs(tmp_path: Path) -> None:
    told = json.loads(simulated(tmp_path, "--topic", "payments", "--output", "json").out)
    proofs = told["partitions"][0]["proofs"]
    assert [choice["broker"] for choice in proofs["choices"]] == [1, 2]
    steps = [*proofs["known"], *(step for choice in proofs["choices"] for step in choice["steps"])]
    believed = {name for step in steps for name in step["believes"]}
    assert believed == {belief["name"] for belief in proofs["beliefs"]} and believed <= set(
        Belief.__members__
    )
    assert all(belief["sentence"] and belief["sources"] for belief in proofs["beliefs"])


def test_without_the_metadata_log_it_is_said_what_is_not_known() -> None:
    log = ReplicaLog(3, 40, 0, 20, Lineage(3, (EpochSpan(3, 0, 40),), 0))
    state = PartitionState("orders", 0, "an-id", -1, 3, (1, 2), (2,), None, None, (2,))
    replicas = (Replica(1, Standing.ELECTABLE, log), Replica(2, Standing.FENCED, SILENT))
    survey = Survey(state, replicas, 2)
    text = "\n".join(explained_lines(survey, partition_verdicts(PartitionFacts(survey, in_sync=SILENT))))
    assert "The metadata log was not used (not answered: connection refused)" in text
    assert "This was not checked: min ISR was never lower." in text


def test_of_a_partition_without_a_verdict_the_reason_is_said() -> None:
    state = PartitionState("orders", 0, "an-id", -1, 3, (1,), (1,), None, None, (1,))
    silent = Survey(state, (Replica(1, Standing.FENCED, SILENT),), 1)
    led = Survey(state._replace(leader=1), (), 1)
    judged = partition_verdicts(PartitionFacts(silent))
    assert list(explained_lines(silent, judged)) == [
        "orders-0: no verdict: no replica told where its log ends in which epoch"
    ]
    assert list(explained_lines(led, None)) == [
        "orders-0: no verdict: broker 1 leads, so nobody has to be elected"
    ]


@pytest.mark.parametrize("kind", EvidenceKind, ids=lambda kind: kind.name)
def test_each_kind_of_evidence_is_a_sentence(kind: EvidenceKind) -> None:
    text = evidence_step(Evidence(kind, (7,), 40, 1_000)).text
    assert text.endswith(".") and "{" not in text
