"""What a failure does to acknowledged records is what the verdicts say of the logs that are left."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from pipeline.exposure.failure_counts import failure_counts
from pipeline.exposure.what_if import NOTHING_ASKED, WHAT_IF, WhatIf, parsed_losses
from pipeline.snapshot.survey_rows import batch_of
from pipeline.tables.schemas import ACKNOWLEDGED
from recovery.acknowledged.candidate_verdicts import partition_verdicts
from recovery.acknowledged.partition_facts import PartitionFacts
from recovery.acknowledged.verdict import EvidenceKind
from recovery.model import Replica, ReplicaLog, Standing, Survey, Unknown, Why
from tests.pipeline.partition_histories import partition
from tests.repetitions import repetitions

SILENT = Unknown(Why.NOT_ANSWERED, "connection refused")


def counted(
    rows: Sequence[Survey], what_if: WhatIf = NOTHING_ASKED, *, unclean: bool | None = None
) -> dict[tuple[str, str], dict[str, Any]]:
    """The counts by kind and failure; ``unclean``: whether every topic elects uncleanly by itself."""
    settings = {row.state.topic: unclean for row in rows}
    batch = batch_of(rows, {}, settings).append_column("cluster_id", pa.array(["c"] * len(rows)))
    found = [row for part in failure_counts([batch], {}, what_if) for row in part.to_pylist()]
    return {(row["kind"], " + ".join(row["failed"])): row for row in found}


def told(row: dict[str, Any]) -> list[int]:
    return [row[name] for name in ("offline", *ACKNOWLEDGED)]


def without(row: Survey, lost: Sequence[int]) -> Survey:
    """After those brokers have failed and nobody else can lead."""
    replicas = tuple(
        Replica(one.broker, Standing.FENCED if one.broker in lost else one.standing, SILENT)
        if one.broker in lost
        else one
        for one in row.replicas
    )
    state = row.state._replace(leader=-1, isr=(), elr=())
    return row._replace(state=state, replicas=replicas)


def drawn(random: Random, number: int) -> Survey:
    assignment = tuple(random.sample(range(1, 8), random.randint(1, 4)))
    isr = tuple(random.sample(assignment, random.randint(1, len(assignment))))
    rest = [broker for broker in assignment if broker not in isr]
    elr = tuple(random.sample(rest, random.randint(0, len(rest))))
    row = partition(
        number,
        leader=isr[0],
        assignment=assignment,
        isr=isr,
        elr=elr,
        min_isr=random.randint(1, len(assignment)),
    )
    replicas = []
    for replica in row.replicas:
        log = replica.log
        assert isinstance(log, ReplicaLog)
        if random.random() < 0.2:
            replicas.append(replica._replace(log=SILENT, standing=Standing.FENCED))
        elif random.random() < 0.1:
            replicas.append(replica._replace(log=log._replace(lineage=SILENT)))
        else:
            replicas.append(replica)
    return row._replace(replicas=tuple(replicas))


@pytest.mark.parametrize("seed", range(repetitions(1, 5)))
def test_nothing_is_at_risk_exactly_where_a_verdict_proves_it(seed: int) -> None:
    random = Random(seed)
    seen = dict.fromkeys(ACKNOWLEDGED[:2], 0)
    for number in range(100):
        row = drawn(random, number)
        found = counted([row])
        for size in (1, 2):
            for lost in combinations(sorted(row.state.replicas), size):
                counts = found["broker", " + ".join(map(str, lost))]
                if not counts["offline"]:
                    assert told(counts) == [0, 0, 0, 0]
                    continue
                verdicts = partition_verdicts(PartitionFacts(without(row, lost))).candidates
                proved = any(
                    verdict.none and any(one.kind is EvidenceKind.FEW_SILENT for one in verdict.evidence)
                    for verdict in verdicts.values()
                )
                assert (counts["acknowledged_outside_isr"] == 1) == proved, (row, lost, verdicts)
                assert counts["acknowledged_at_risk"] + counts["acknowledged_outside_isr"] == 1
                for name in seen:
                    seen[name] += counts[name]
    assert min(seen.values()) > 5, seen


def test_a_leader_that_acknowledges_alone_takes_its_records_along() -> None:
    alone = partition(0, isr=(1,), min_isr=1)
    refusing = partition(0, isr=(1,), min_isr=2)
    assert told(counted([alone])["broker", "1"]) == [1, 1, 0, 0]
    assert told(counted([refusing])["broker", "1"]) == [1, 0, 1, 0]
    assert told(counted([alone], WhatIf(min_isr=2))["broker", "1"]) == [1, 0, 1, 0]


def test_without_a_known_min_isr_nothing_is_proved() -> None:
    row = partition(0, isr=(1,))._replace(min_isr=SILENT)
    assert told(counted([row])["broker", "1"]) == [1, 1, 0, 0]


def test_without_the_elr_kafka_elects_what_comes_back_whatever_it_lost() -> None:
    row = partition(0, isr=(1,), elr=(2,))
    none = row._replace(state=row.state._replace(elr=None))
    assert told(counted([row])["broker", "1"]) == [0, 0, 0, 0]
    assert told(counted([none])["broker", "1"]) == [1, 0, 1, 1]
    assert told(counted([row], WhatIf(elr=False))["broker", "1"]) == [1, 0, 1, 1]
    # Nobody is put into an ELR that nobody has seen.
    assert told(counted([none], WhatIf(elr=True))["broker", "1"]) == [1, 0, 1, 0]


def test_a_topic_that_elects_uncleanly_is_not_offline_and_its_records_are_at_risk() -> None:
    names = ("offline", *ACKNOWLEDGED, "elected_at_once", "under_min_isr")
    behind, alone = partition(0, isr=(1,), min_isr=1), partition(1, assignment=(1,), min_isr=1)

    def of(rows: Sequence[Survey], *, unclean: bool | None) -> list[int]:
        failed = counted(rows, unclean=unclean)["broker", "1"]
        return [failed[name] for name in names]

    assert of([behind], unclean=True) == [0, 1, 0, 0, 1, 0]
    assert of([behind], unclean=False) == of([behind], unclean=None) == [1, 1, 0, 0, 0, 1]
    # Nobody is left to be elected.
    assert of([alone], unclean=True) == of([alone], unclean=False) == [1, 1, 0, 0, 0, 1]
    # A member of the ELR is elected before anybody else.
    assert of([partition(0, isr=(1,), elr=(2,))], unclean=True) == [0, 0, 0, 0, 0, 0]
    # The log that has most is not looked for, although one of two is proved to have every record.
    assert of([partition(0, isr=(1,), min_isr=2)], unclean=True)[:5] == [0, 1, 0, 0, 1]


def test_a_drain_is_counted_first_and_every_failure_on_top_of_it() -> None:
    rows = [partition(0), partition(1, assignment=(1, 2)), partition(2, assignment=(1,), min_isr=1)]
    found = counted(rows, WhatIf(parsed_losses(["broker=2"]), drained=(1,)))
    drain, one = found[WHAT_IF, "drain=1"], found["broker", "2"]
    assert [drain[name] for name in ("partitions", "offline", "under_min_isr")] == [3, 1, 2]
    # Partition 2 has no leader after the drain, so no failure takes it; partition 1 has one replica left.
    assert [one[name] for name in ("partitions", "offline", "under_min_isr", "already_under_min_isr")] == [
        2,
        1,
        1,
        1,
    ]
    assert told(found[WHAT_IF, "broker=2"]) == told(one)
    assert (found["broker", "1"]["partitions"], found["broker", "1"]["offline"]) == (2, 0)
    assert counted(rows)["broker", "2"]["offline"] == 0
