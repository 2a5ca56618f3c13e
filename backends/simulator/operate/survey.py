"""The survey of a simulated cluster: GetReplicaLogInfo of every replica's own broker, then its epochs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from backends.base.answers import Contact, SurveyRequest, SurveyResult
from backends.base.protocol import Progress
from backends.simulator.loop import SECOND
from backends.simulator.messages import Error
from backends.simulator.network import broker as node
from backends.simulator.operate.asking import TIMEOUT, Asking, denied, silence
from backends.simulator.operate.calls import NATIVE_LOGS
from backends.simulator.questions import (
    GetReplicaLogInfo,
    LineageRead,
    LogRead,
    PartitionLogInfo,
    ReadLineage,
    ReplicaLogInfos,
)
from recovery.model import (
    Broker,
    PartitionState,
    Replica,
    ReplicaLog,
    Standing,
    Survey,
    TopicPartition,
    Unknown,
    Why,
)
from recovery.standing import standing

CALL = f"{NATIVE_LOGS}, epochs by Fetch"
LIMIT = 1000
BYTES_A_RECORD = 100
RETRY = SECOND // 2
NOT_ASKED = Unknown(Why.NOT_ANSWERED, "not asked")

Logs = dict[tuple[TopicPartition, int], ReplicaLog | Unknown]


class SurveyRun:
    """One survey; every broker is asked for at most 1,000 partitions at a time, all brokers at once."""

    def __init__(self, asking: Asking, request: SurveyRequest, brokers: Sequence[Broker]) -> None:
        self._asking = asking
        self._request = request
        self._brokers: Mapping[int, Broker] = {broker.id: broker for broker in brokers}
        self._began = asking.now
        self._deadline = asking.now + round(request.duration * SECOND)
        self._logs: Logs = {}
        self._contacts: dict[int, Contact] = {}
        self._left: dict[int, list[TopicPartition]] = {}
        # Most logs of a large cluster are alike, and are told by one object.
        self._alike: dict[Hashable, ReplicaLog] = {}
        for state in request.partitions:
            led, tp = request.leaders_only and not state.offline, state.tp
            for replica in state.replicas:
                if led and replica != state.leader:
                    self._logs[tp, replica] = NOT_ASKED
                else:
                    self._left.setdefault(replica, []).append(tp)

    def run(self, progress: Progress | None) -> None:
        """Until every replica is settled, at the latest until the duration is over."""
        total = sum(map(len, self._left.values()))
        while self._left:
            remaining = self._deadline - self._asking.now
            if remaining <= 0:
                break
            self._round(min(TIMEOUT, remaining))
            if progress is not None:
                progress("asking brokers", len(self._logs), total)
            if self._left and all(broker in self._contacts for broker in self._left):
                self._asking.wait(min(RETRY, max(self._deadline - self._asking.now, 0)))
        for broker, partitions in self._left.items():
            problem = self._contacts[broker].problem if broker in self._contacts else None
            for tp in partitions:
                self._logs.setdefault((tp, broker), problem or Unknown(Why.NOT_ANSWERED, "no answer in time"))

    def _round(self, timeout: int) -> None:
        asked = {broker: tuple(left[:LIMIT]) for broker, left in sorted(self._left.items())}
        questions = [(node(broker), GetReplicaLogInfo(tps)) for broker, tps in asked.items()]
        answers = dict(zip(asked, self._asking.all(questions, timeout), strict=True))
        heard = {broker: tps for broker, tps in asked.items() if isinstance(answers[broker], ReplicaLogInfos)}
        epochs = [(node(broker), ReadLineage(tps)) for broker, tps in heard.items()]
        lineages = dict(zip(heard, self._asking.all(epochs, timeout), strict=True))
        for broker in asked:
            if broker in heard:
                self._heard(broker, answers[broker], lineages[broker])
            else:
                self._silent(broker, answers[broker])

    def _silent(self, broker: int, answer: Any) -> None:
        self._note(broker, silence(answer))
        listed = self._brokers.get(broker)
        if listed is None or listed.fenced:
            # Nobody expects it to be up: what it holds stays unknown.
            problem = silence(answer)
            for tp in self._left.pop(broker):
                self._logs[tp, broker] = problem

    def _heard(self, broker: int, answer: ReplicaLogInfos, epochs: Any) -> None:
        left = self._left[broker]
        if answer.error is not None:
            problem = denied(answer.error, "CLUSTER_ACTION", "the cluster", "GetReplicaLogInfo")
            self._note(broker, problem)
            for tp in self._left.pop(broker):
                self._logs[tp, broker] = problem
            return
        self._note(broker, None)
        read = {row.tp: row for row in epochs.logs} if isinstance(epochs, LineageRead) else {}
        for info in answer.infos:
            self._logs[info.tp, broker] = self._log(info, read.get(info.tp))
        # What was not served (HasMoreData) is asked for in the next round.
        rest = left[len(answer.infos) :]
        if rest:
            self._left[broker] = rest
        else:
            del self._left[broker]

    def _log(self, info: PartitionLogInfo, read: LogRead | None) -> ReplicaLog | Unknown:
        if info.error is not None or read is None or read.lineage is None:
            return _unusual(info, read)
        _, epoch, end, _ = info
        lineage = read.lineage
        _, _, _, start, high_watermark, log_dir = read
        key = (epoch, end, lineage.spans, lineage.last_epoch, start, high_watermark, log_dir)
        log = self._alike.get(key)
        if log is None:
            size = (end - start) * BYTES_A_RECORD
            log = ReplicaLog(epoch, end, start, high_watermark, lineage, log_dir, size)
            self._alike[key] = log
        return log

    def _note(self, broker: int, problem: Unknown | None) -> None:
        seconds = (self._asking.now - self._began) / SECOND
        self._contacts[broker] = Contact(broker, f"broker-{broker}.simulated:9092", problem, seconds, CALL)

    def result(
        self, min_isr: Mapping[str, int | Unknown], reassigning: frozenset[TopicPartition] | Unknown
    ) -> SurveyResult:
        """``min_isr`` is each topic's as configured."""
        surveys = []
        alike: dict[tuple[int, Standing, int], Replica] = {}
        for state in self._request.partitions:
            tp = state.tp
            replicas = []
            for broker in state.replicas:
                stands, log = standing(state, broker, self._brokers), self._logs[tp, broker]
                replica = alike.get((broker, stands, id(log)))
                if replica is None:
                    replica = alike[broker, stands, id(log)] = Replica(broker, stands, log)
                replicas.append(replica)
            busy = reassigning if isinstance(reassigning, Unknown) else tp in reassigning
            surveys.append(Survey(state, tuple(replicas), _effective(min_isr[state.topic], state), busy))
        contacts = tuple(self._contacts[broker] for broker in sorted(self._contacts))
        return SurveyResult(tuple(surveys), contacts)


def _effective(configured: int | Unknown, state: PartitionState) -> int | Unknown:
    return configured if isinstance(configured, Unknown) else min(configured, len(state.replicas))


def _unusual(info: PartitionLogInfo, read: LogRead | None) -> ReplicaLog | Unknown:
    """What is known of a log that was not told, or without its epochs."""
    if info.error is not None:
        return _unknown(info.error, info.tp.topic, "DESCRIBE")
    epoch, end = info.leader_epoch, info.log_end_offset
    if read is None:
        return ReplicaLog(
            epoch, end, lineage=Unknown(Why.NOT_ANSWERED, "the broker died between two questions")
        )
    assert read.error is not None
    return ReplicaLog(epoch, end, lineage=_unknown(read.error, info.tp.topic, "READ"))


def _unknown(error: Error, topic: str, operation: str) -> Unknown:
    return denied(error, operation, f"topic {topic}", "its log")
