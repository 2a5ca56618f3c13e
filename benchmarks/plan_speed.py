"""CPU time of ranking, loss and planning: ``python -m benchmarks.plan_speed PARTITIONS SHAPE`` prints JSON.

One process for each size and shape, so that each has its own peak memory.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime

from console.cli.main import collect_seldom
from recovery.loss import loss
from recovery.model import EpochSpan, Lineage, PartitionState, Replica, ReplicaLog, Standing, Survey
from recovery.plan.make import make_plan
from recovery.plan.values import Header
from recovery.ranking import Ranking
from recovery.strategy import DecisionKind, Strategy, decide

BROKERS = 12
TOPIC_SIZE = 100
LEADER_EPOCH = 9

Spans = tuple[tuple[int, int, int], ...]


def _agree(number: int) -> tuple[Spans, ...]:
    end = 1_000 + number % 97
    return (((0, 0, 400), (3, 400, end)),) * 3


def _tails(number: int) -> tuple[Spans, ...]:
    """The same log, truncated at different offsets."""
    end = 1_000 + number % 97
    return ((0, 0, 400), (3, 400, end)), ((0, 0, 400), (3, 400, end - 50)), ((0, 0, 400), (3, 400, end - 120))


def _diverge(number: int) -> tuple[Spans, ...]:
    """Three logs that diverge at different epochs; the longest is not the newest."""
    end = 1_000 + number % 97
    return (
        ((0, 0, 400), (1, 400, end + 500)),
        ((0, 0, 400), (1, 400, 600), (2, 600, end)),
        ((0, 0, 300), (4, 300, end - 200)),
    )


SHAPES: dict[str, tuple[str, Callable[[int], tuple[Spans, ...]]]] = {
    "agree": ("all logs agree", _agree),
    "tails": ("one log, truncated at three offsets", _tails),
    "diverge": ("three logs that diverge", _diverge),
}


def surveys(partitions: int, shape: Callable[[int], tuple[Spans, ...]]) -> tuple[Survey, ...]:
    """The survey of so many offline partitions. Every log is a separate value."""
    return tuple(_survey(number, shape(number)) for number in range(partitions))


def _survey(number: int, logs: tuple[Spans, ...]) -> Survey:
    topic, partition = f"topic-{number // TOPIC_SIZE}", number % TOPIC_SIZE
    replicas = tuple((number + step) % BROKERS for step in range(3))
    state = PartitionState(
        topic, partition, "AAAAAAAAAAAAAAAAAAAAAA", -1, LEADER_EPOCH, replicas, (), (), (), ()
    )
    surveyed = tuple(
        Replica(broker, Standing.ELECTABLE, _log(spans)) for broker, spans in zip(replicas, logs, strict=True)
    )
    return Survey(state, surveyed, 2)


def _log(spans: Spans) -> ReplicaLog:
    lineage_spans = tuple(EpochSpan(*span) for span in spans)
    return ReplicaLog(
        LEADER_EPOCH, lineage_spans[-1].end, 0, 0, Lineage(lineage_spans[-1].epoch, lineage_spans, 0)
    )


def main(partitions: int, shape: str) -> None:
    collect_seldom()
    made = surveys(partitions, SHAPES[shape][1])
    surveyed = _peak()
    clock = time.process_time  # one thread that never waits: other work on the machine does not count
    began = clock()
    decisions = [decide(survey, Ranking.LAST_RECORD, Strategy.BALANCED) for survey in made]
    decided = clock()
    lost = sum(loss(s, d.leader).at_least for s, d in zip(made, decisions, strict=True))
    counted = clock()
    plan = make_plan(_header(), zip(made, decisions, strict=True))
    planned = clock()
    if len(plan.rows) != partitions or any(d.verdict is not DecisionKind.ELECT for d in decisions):
        raise SystemExit("not every partition was planned for")
    print(
        json.dumps(
            {
                "decide": decided - began,
                "loss": counted - decided,
                "plan": planned - counted,
                "offsets_lost": lost,
                "peak_of_surveys": surveyed,
                "peak": _peak(),
            }
        )
    )


def _peak() -> int:
    """The peak memory of this process, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _header() -> Header:
    made_at = datetime(2026, 1, 1, tzinfo=UTC)
    return Header("bench", "bench", made_at, "bench", "0", Ranking.LAST_RECORD, Strategy.BALANCED)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
