"""The survey of a simulated cluster: GetReplicaLogInfo of every replica's own broker, then its lineage."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

from backends.base.answers import Contact, SurveyRequest, SurveyResult
from backends.base.protocol import Progress
from backends.simulator.broker.replica_log import BYTES_A_RECORD
from backends.simulator.loop import SECOND
from backends.simulator.messages import Error
from backends.simulator.network import broker as node
from backends.simulator.operate.operator_client import NATIVE_LOGS, TIMEOUT, OperatorClient, denied, silence
from backends.simulator.operator_messages import (
    GetReplicaLogInfo,
    LineageRead,
    LineageRow,
    ReadLineage,
    ReplicaLogInfo,
    ReplicaLogInfos,
)
from recovery.compacted_logs import compacted_logs
from recovery.controller.rules import min_isr_from_config
from recovery.model import (
    Broker,
    Replica,
    ReplicaLog,
    Survey,
    TopicPartition,
    Unknown,
    Why,
)
from recovery.standing import standing

CALL = f"{NATIVE_LOGS}, epochs by Fetch"
LIMIT = 1000
RETRY = SECOND // 2
CATCH_UP_LOOKS = 3
"""How often a broker that knows an older leader epoch than the partition has is asked again, to let it catch up."""
NOT_ASKED = Unknown(Why.NOT_ANSWERED, "not asked")

Logs = dict[int, dict[TopicPartition, ReplicaLog | Unknown]]
"""By broker."""


class SimulatedSurvey:
    """One survey. All brokers are asked at once, each for at most 1,000 partitions per request."""

    def __init__(self, asking: OperatorClient, request: SurveyRequest, brokers: Sequence[Broker]) -> None:
        self._asking = asking
        self._request = request
        self._brokers: Mapping[int, Broker] = {broker.id: broker for broker in brokers}
        self._began = asking.now
        self._deadline = asking.now + round(request.duration * SECOND)
        self._patience = min(TIMEOUT, self._deadline - asking.now)
        self._logs: Logs = {}
        self._contacts: dict[int, Contact] = {}
        # Most logs of a large cluster are equal, and shown by one object.
        self._alike: dict[Hashable, ReplicaLog] = {}
        self._tps = [state.tp for state in request.partitions]
        self._epochs = dict(zip(self._tps, (state.leader_epoch for state in request.partitions), strict=True))
        self._behind: defaultdict[int, list[TopicPartition]] = defaultdict(list)
        left: defaultdict[int, list[TopicPartition]] = defaultdict(list)
        for state, tp in zip(request.partitions, self._tps, strict=True):
            led = request.leaders_only and not state.offline
            for replica in state.replicas:
                if led and replica != state.leader:
                    self._of(replica)[tp] = NOT_ASKED
                else:
                    left[replica].append(tp)
        self._left: dict[int, list[TopicPartition]] = dict(left)

    @property
    def _settled(self) -> int:
        return sum(map(len, self._logs.values()))

    def _of(self, broker: int) -> dict[TopicPartition, ReplicaLog | Unknown]:
        return self._logs.setdefault(broker, {})

    async def run(self, progress: Progress | None) -> None:
        """Run until every replica is settled, at the latest until the duration is over."""
        await self._settle(progress)
        for _ in range(CATCH_UP_LOOKS):
            if not self._behind or self._asking.now + RETRY >= self._deadline:
                return
            self._asking.wait(RETRY)
            self._left, self._behind = dict(self._behind), defaultdict(list)
            await self._settle(None)

    async def _settle(self, progress: Progress | None) -> None:
        total, unasked = sum(map(len, self._left.values())), self._settled
        while self._left:
            remaining = self._deadline - self._asking.now
            if remaining <= 0:
                break
            before = self._settled
            self._round(min(TIMEOUT, remaining))
            if progress is not None:
                progress("asking brokers", self._settled - unasked, total)
            await asyncio.sleep(0)  # a survey of 600,000 logs takes seconds; here it can be cancelled
            if self._left and self._settled == before:
                self._asking.wait(min(RETRY, max(self._deadline - self._asking.now, 0)))
        for broker, partitions in self._left.items():
            problem = self._contacts[broker].problem if broker in self._contacts else None
            logs = self._of(broker)
            for tp in partitions:
                logs.setdefault(tp, problem or Unknown(Why.NOT_ANSWERED, "no answer in time"))

    def _round(self, timeout: int) -> None:
        asked = {broker: tuple(left[:LIMIT]) for broker, left in sorted(self._left.items())}
        questions = [(node(broker), GetReplicaLogInfo(tps)) for broker, tps in asked.items()]
        answers = dict(zip(asked, self._asking.all(questions, timeout), strict=True))
        answered = {
            broker: tps for broker, tps in asked.items() if isinstance(answers[broker], ReplicaLogInfos)
        }
        epochs = [(node(broker), ReadLineage(tps)) for broker, tps in answered.items()]
        lineages = dict(zip(answered, self._asking.all(epochs, timeout), strict=True))
        for broker in asked:
            if broker in answered:
                self._heard(broker, answers[broker], lineages[broker])
            else:
                self._silent(broker, silence(answers[broker], self._patience))

    def _silent(self, broker: int, problem: Unknown) -> None:
        self._note(broker, problem)
        listed = self._brokers.get(broker)
        if listed is None or listed.fenced:
            # It is not expected to be up, so it is not asked again: its logs stay unknown.
            self._of(broker).update(dict.fromkeys(self._left.pop(broker), problem))

    def _heard(self, broker: int, answer: ReplicaLogInfos, epochs: Any) -> None:
        left = self._left[broker]
        if answer.error is not None:
            problem = denied(answer.error, "CLUSTER_ACTION", "the cluster", "GetReplicaLogInfo")
            self._note(broker, problem)
            self._of(broker).update(dict.fromkeys(self._left.pop(broker), problem))
            return
        self._note(broker, None)
        # Both requests name the same partitions, and both answers keep their order.
        reads: Iterable[LineageRow | None] = epochs.logs if isinstance(epochs, LineageRead) else repeat(None)
        logs = self._of(broker)
        alike: dict[tuple[int, int, int, bool | None], ReplicaLog | Unknown] = {}
        for info, read in zip(answer.infos, reads, strict=False):
            tp, epoch, end, _ = info
            described = None if read is None else read.log
            leads = None
            if info.error is None and epoch < self._epochs[tp]:
                self._behind[broker].append(tp)
                leads = None if read is None or read.error is not None else read.leads
            key = (epoch, end, id(described), leads)
            log = alike.get(key)
            if log is None:
                log = self._log(info, read, leads)
                if described is not None and info.error is None:
                    alike[key] = log
            logs[tp] = log
        # The rest (HasMoreData) is requested in the next round.
        rest = left[len(answer.infos) :]
        if rest:
            self._left[broker] = rest
        else:
            del self._left[broker]

    def _log(self, info: ReplicaLogInfo, read: LineageRow | None, leads: bool | None) -> ReplicaLog | Unknown:
        if info.error is not None or read is None or read.log is None:
            return _unusual(info, read)
        _, epoch, end, _ = info
        lineage, start, high_watermark, log_dir = read.log
        key = (epoch, end, lineage.spans, lineage.last_epoch, start, high_watermark, log_dir, leads)
        log = self._alike.get(key)
        if log is None:
            size = (end - start) * BYTES_A_RECORD
            log = ReplicaLog(epoch, end, start, high_watermark, lineage, log_dir, size, leads)
            self._alike[key] = log
        return log

    def _note(self, broker: int, problem: Unknown | None) -> None:
        seconds = (self._asking.now - self._began) / SECOND
        self._contacts[broker] = Contact(broker, f"broker-{broker}.simulated:9092", problem, seconds, CALL)

    def result(
        self,
        configs: Mapping[str, Mapping[str, str] | Unknown],
        reassigning: frozenset[TopicPartition] | Unknown,
    ) -> SurveyResult:
        """``configs`` are the effective configurations of each topic."""
        compacted = {topic: compacted_logs(config) for topic, config in configs.items()}
        min_isr: dict[tuple[str, int], int | Unknown] = {}
        surveys = []
        alike: dict[tuple[int, bool, int], Replica] = {}
        logs = self._logs
        for state, tp in zip(self._request.partitions, self._tps, strict=True):
            offline = state.offline_replicas
            replicas = []
            for broker in state.replicas:
                log = logs[broker][tp]
                # Within one survey a standing depends only on these.
                key = (broker, broker in offline, id(log))
                replica = alike.get(key)
                if replica is None:
                    stands = standing(state, broker, self._brokers)
                    replica = alike[key] = Replica(broker, stands, log)
                replicas.append(replica)
            busy = reassigning if isinstance(reassigning, Unknown) else tp in reassigning
            alike_topic = state.topic, len(state.replicas)
            if alike_topic not in min_isr:
                min_isr[alike_topic] = min_isr_from_config(state, configs[state.topic])
            surveys.append(Survey(state, tuple(replicas), min_isr[alike_topic], busy, compacted[state.topic]))
        contacts = tuple(self._contacts[broker] for broker in sorted(self._contacts))
        return SurveyResult(tuple(surveys), contacts)


def _unusual(info: ReplicaLogInfo, read: LineageRow | None) -> ReplicaLog | Unknown:
    """What is known of a log without a full answer."""
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
