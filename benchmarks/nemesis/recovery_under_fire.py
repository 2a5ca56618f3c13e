"""One recovery of many partitions on real Kafka, with one fault in the middle of it."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

from kio.schema.describe_quorum.v1.request import DescribeQuorumRequest, PartitionData, TopicData
from kio.schema.describe_quorum.v1.response import DescribeQuorumResponse
from kio.schema.list_partition_reassignments.v0.request import ListPartitionReassignmentsRequest
from kio.schema.list_partition_reassignments.v0.response import ListPartitionReassignmentsResponse
from kio.schema.types import TopicName
from kio.static.primitive import i32, i32Timedelta

from benchmarks import bench_cluster
from benchmarks.bench_cluster import LAST, SURVIVORS, TOPIC, assignment
from benchmarks.nemesis.recovery_tool import TOOL_SECONDS, RecoveryTool, elections_of
from benchmarks.nemesis.request_moments import ProxiedBrokers, random_moment
from testbed.kafka import KafkaCluster
from testbed.kafka.cluster_metadata import DescribedPartition
from testbed.kafka.errors import TimedOut
from testbed.kafka.wait import wait_until

PARTITIONS = 600
PARTS = 2
"""The recovery sends so many partitions in this many parts, which overlap."""
RESUMES = 4
VERIFICATIONS = 5
DESIGNATED = SURVIVORS[1]
"""It has the longer log in every partition, and never stands first in the assignment."""
SECOND_TOOL_SECONDS = 20.0
_TIMEOUT = i32Timedelta.parse(timedelta(seconds=15))
_APPLY = ("apply", "plan.json", "--yes", "--output", "json", "--reason")

Fault = Callable[[subprocess.Popen[str]], object]


@dataclass
class NemesisResult:
    """``wrong`` has one line for each thing that must not be. ``elected`` as the tool reported it. When the fault
    came, ``reordered`` partitions had the order of the plan and ``led_then`` a leader; -1: its moment never came.
    """

    seed: int
    fault: str
    moment: str
    reordered: int = -1
    led_then: int = -1
    status: int = 0
    elected: int = 0
    led: Mapping[int, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def struck(self) -> bool:
        return self.reordered >= 0


class RecoveryUnderFire:
    """``PARTITIONS`` of the measured topic are offline; a plan designates the broker with the longer log."""

    def __init__(self, cluster: KafkaCluster, seed: int, directory: Path) -> None:
        self._cluster = cluster
        self._random = Random(seed)  # noqa: S311 - the seed determines the fault and its moment
        self._faults: dict[str, Fault] = {
            "kill the designated broker": lambda _: cluster.node(DESIGNATED).kill(),
            "stop the designated broker": lambda _: self._meanwhile(cluster.node(DESIGNATED).stop),
            "kill the other broker": lambda _: cluster.node(SURVIVORS[0]).kill(),
            "hang the designated broker": lambda _: cluster.node(DESIGNATED).pause(),
            "start the last in-sync broker": lambda _: cluster.node(LAST).start(),
            "kill the active controller": lambda _: cluster.node(self._active_controller()).kill(),
            "cut the link from the tool to a broker": lambda _: self._proxies.cut(
                self._random.choice(SURVIVORS)
            ),
            "cut the link between the brokers": lambda _: cluster.links.cut(*SURVIVORS),
            "cut the link from a broker to the active controller": lambda _: cluster.links.cut(
                self._random.choice(SURVIVORS), self._active_controller()
            ),
            "cut the link between two controllers": lambda _: self._cut_controllers(),
            "fill the disk of the journal": self._fill_disk,
            "kill the tool": lambda tool: tool.kill(),
            "stop the tool": lambda tool: tool.terminate(),
            "a second tool from another host": lambda _: self._second_tool(DESIGNATED),
            "a second tool that designates the other broker": lambda _: self._second_tool(SURVIVORS[0]),
        }
        names = sorted(self._faults)
        self._moment = random_moment(self._random, PARTS)
        self.result = NemesisResult(seed, names[seed % len(names)], str(self._moment))
        self._proxies = ProxiedBrokers(cluster)
        direct = ("--bootstrap-server", cluster.bootstrap())
        self._tool = RecoveryTool(directory / f"host-{seed}", direct)
        self._other = RecoveryTool(directory / f"other-{seed}", direct)
        self._other_designated = DESIGNATED
        self._other_report: Mapping[int, Mapping[str, Any]] = {}
        self._threads: list[threading.Thread] = []

    def run(self) -> NemesisResult:
        began = time.monotonic()
        bench_cluster.take_offline(self._cluster, PARTITIONS)
        status, out, err = self._tool.run("plan", "--topic", TOPIC, "--strategy", "aggressive", "plan.json")
        if status:
            self.result.wrong.append(f"no plan: {err or out}"[:300])
            return self.result
        with (
            self._proxies,
            self._tool.started(*_APPLY, "nemesis", connection=self._proxies.options()) as process,
        ):
            self._proxies.strike_at(self._moment, lambda: self._strike(process))
            out, err = process.communicate(timeout=TOOL_SECONDS)
        for thread in self._threads:
            thread.join(TOOL_SECONDS)
        self.result.status = process.returncode
        if "internal error" in err:
            self.result.wrong.append(err[:300])
        reported = elections_of(out)
        self.result.elected = sum(row["outcome"] == "elected" for row in reported.values())
        self._end_fault()
        self._resume()
        self._check(reported)
        self.result.seconds = time.monotonic() - began
        return self.result

    # The fault.

    def _strike(self, process: subprocess.Popen[str]) -> None:
        """In the thread of the proxy that holds the request back."""
        try:
            states = self._cluster.metadata.partitions(TOPIC)
            self.result.led_then = sum(state.leader >= 0 for state in states.values())
            self._faults[self.result.fault](process)
            self.result.reordered = sum(state.replicas != assignment(n) for n, state in states.items())
        except Exception as error:  # nobody else would see it
            self.result.wrong.append(f"the fault could not be made: {error!r}"[:300])

    def _meanwhile(self, fault: Callable[[], object]) -> None:
        """What takes longer than a request may be held back."""
        thread = threading.Thread(target=fault)
        thread.start()
        self._threads.append(thread)

    def _active_controller(self) -> int:
        metadata = TopicData(
            topic_name=TopicName("__cluster_metadata"), partitions=(PartitionData(partition_index=i32(0)),)
        )
        answer = self._cluster.metadata.ask(DescribeQuorumRequest(topics=(metadata,)), DescribeQuorumResponse)
        [leader] = [found.leader_id for topic in answer.topics for found in topic.partitions]
        return leader

    def _cut_controllers(self) -> None:
        """The active controller and one of its followers."""
        active = self._active_controller()
        followers = [controller for controller in self._cluster.controllers if controller != active]
        self._cluster.links.cut(active, self._random.choice(followers))

    def _fill_disk(self, process: subprocess.Popen[str]) -> None:
        self._tool.fill_disk(process, self._random.choice((0, 1, 200)))

    def _second_tool(self, designated: int) -> None:
        """It works beside the first from its own first change on, or has ended before it."""
        plan = json.loads((self._tool.home / "plan.json").read_text())
        for row in plan["partitions"]:
            row["designatedLeader"] = designated
        (self._other.home / "plan.json").write_text(json.dumps(plan))
        self._other_designated = designated

        def work() -> None:
            _, out, _ = self._other.run(*_APPLY, "another host")
            self._other_report = elections_of(out)

        self._meanwhile(work)
        worker = self._threads[-1]
        wait_until(
            lambda: self._other.has_begun() or not worker.is_alive(), "the second tool", SECOND_TOOL_SECONDS
        )

    def _end_fault(self) -> None:
        """Who was killed, hung or cut off is back, but for the broker that was dead before."""
        self._cluster.links.mend()
        for node in self._cluster.controllers.values():
            node.start()
        for broker in SURVIVORS:
            self._cluster.node(broker).resume()
            self._cluster.node(broker).start()
        self._cluster.metadata.wait_live(SURVIVORS, 120.0)
        self._cluster.metadata.wait_caught_up()

    def _resume(self) -> None:
        """As an operator does who follows what the tool says."""
        for tool in (self._tool, self._other):
            if not tool.has_begun():
                continue
            for _ in range(RESUMES):
                status, out, err = tool.run("resume")
                if not status:
                    break
            else:
                self.result.wrong.append(f"resume does not end: {err or out}"[:300])

    # What must hold afterwards.

    def _check(self, reported: Mapping[int, Mapping[str, Any]]) -> None:
        states, verified = self._verified_states()
        self.result.led = dict(Counter(state.leader for state in states.values()))
        order = [number for number, state in states.items() if state.replicas != assignment(number)]
        if order:
            self.result.wrong.append(f"{len(order)} partitions in a wrong order: {order[:5]}")
        moving = self._cluster.metadata.ask(
            ListPartitionReassignmentsRequest(timeout=_TIMEOUT, topics=None),
            ListPartitionReassignmentsResponse,
        )
        if moving.topics:
            self.result.wrong.append(f"reassignments in flight: {moving.topics}"[:300])
        for number, state in states.items():
            for problem in (
                _broken_report(state, reported.get(number), DESIGNATED),
                _broken_report(state, self._other_report.get(number), self._other_designated),
                _broken_verify(state, verified.get(number)),
            ):
                if problem:
                    self.result.wrong.append(f"{TOPIC}-{number}: {problem}")
        strangers = {LAST} if self.result.fault != "start the last in-sync broker" else set()
        if strangers & self.result.led.keys():
            self.result.wrong.append(f"led by {strangers}, which nobody started")

    def _verified_states(self) -> tuple[Mapping[int, DescribedPartition], Mapping[int, Mapping[str, Any]]]:
        """The partitions, and what ``verify`` says of them. If they changed while it ran, both are read again: on
        a busy machine a broker may lose its session, and get it back.
        """
        for _ in range(VERIFICATIONS):
            self._cluster.metadata.wait_caught_up()
            states = self._cluster.metadata.partitions(TOPIC)
            verified = self._verified()
            self._cluster.metadata.wait_caught_up()
            if self._cluster.metadata.partitions(TOPIC) == states:
                return states, verified
        raise TimedOut(f"the partitions changed during each of {VERIFICATIONS} verifications")

    def _verified(self) -> Mapping[int, Mapping[str, Any]]:
        _, out, err = self._tool.run("verify", "plan.json", "--output", "json")
        if not out.startswith("{"):
            self.result.wrong.append(f"nothing can be verified: {err}"[:300])
            return {}
        return {row["partition"]: row for row in json.loads(out)["partitions"]}


def _broken_report(state: DescribedPartition, row: Mapping[str, Any] | None, designated: int) -> str | None:
    """What the tool reported of the partition that is not so, or did not report."""
    if row is None:
        return None
    if row["outcome"] != "elected":
        explained = row["detail"] or row["outcome"] in ("already online", "another leader")
        return (
            None if explained or state.leader < 0 else f"led by {state.leader}, and only {row} was reported"
        )
    if row["leader"] != designated:
        return f"reported as elected with {row['leader']}, which was not designated"
    if state.leader_epoch < row["leaderEpoch"]:
        return f"reported at epoch {row['leaderEpoch']}, and it is at {state.leader_epoch}"
    if state.leader_epoch == row["leaderEpoch"] and state.leader != designated:
        return f"reported as led by {designated}, and {state.leader} leads at the same epoch"
    return None


def _broken_verify(state: DescribedPartition, row: Mapping[str, Any] | None) -> str | None:
    """A leader that was not designated must be told in the end, whatever became of the tool that elected."""
    if row is None:
        return "not verified"
    if row["leader"] != state.leader:
        return f"led by {state.leader}, and verify reports {row['leader']}"
    if (row["leading"] == "right") != (state.leader == DESIGNATED):
        return f"led by {state.leader}, and verify calls that {row['leading']}"
    return None
