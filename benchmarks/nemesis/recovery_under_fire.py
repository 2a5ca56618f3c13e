"""One recovery of many partitions on real Kafka, with one fault while it works."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

from kio.schema.list_partition_reassignments.v0.request import ListPartitionReassignmentsRequest
from kio.schema.list_partition_reassignments.v0.response import ListPartitionReassignmentsResponse
from kio.static.primitive import i32Timedelta

from benchmarks import bench_cluster
from benchmarks.bench_cluster import LAST, SURVIVORS, TOPIC, assignment
from testbed.kafka import KafkaCluster
from testbed.kafka.cluster_metadata import PartitionState
from testbed.kafka.wait import wait_until
from tests.unit.cli.command_process import command_line, environment

TOOL_SECONDS = 240.0
RESUMES = 4
LATEST_FAULT = 0.5
"""Seconds after the first request; a recovery of hundreds of partitions takes about one."""
DESIGNATED = SURVIVORS[1]
"""It has the longer log in every partition, and never stands first in the assignment."""
_TIMEOUT = i32Timedelta.parse(timedelta(seconds=15))


@dataclass
class NemesisResult:
    """``wrong`` has one line for each thing that must not be. ``elected`` as the tool reported it. ``in_time``: the
    tool still ran when the fault came.
    """

    seed: int
    fault: str
    in_time: bool = False
    status: int = 0
    elected: int = 0
    led: Mapping[int, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Tool:
    """The recovery tool on one host: its settings and records lie in ``home``."""

    def __init__(self, home: Path, bootstrap: str) -> None:
        self.home = home
        self._connection = ("--bootstrap-server", bootstrap)
        home.mkdir()

    @contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen(
            [*command_line("ktriage", *words), *self._connection],
            env=environment(self.home),
            cwd=self.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def run(self, *words: str) -> tuple[int, str, str]:
        with self.started(*words) as process:
            out, err = process.communicate(timeout=TOOL_SECONDS)
        return process.returncode, out, err

    def has_begun(self) -> bool:
        """Whether a change is in its journal."""
        return any('"kind":"before"' in path.read_text() for path in self.home.rglob("*.jsonl"))


class RecoveryUnderFire:
    """``partitions`` of the measured topic are offline; a plan designates the broker with the longer log."""

    def __init__(self, cluster: KafkaCluster, partitions: int, seed: int, directory: Path) -> None:
        self._cluster = cluster
        self._partitions = partitions
        self._random = Random(seed)  # noqa: S311 - the seed determines the fault and its moment
        self._faults: dict[str, Callable[[subprocess.Popen[str]], None]] = {
            "kill the designated broker": lambda _: self._cluster.node(DESIGNATED).kill(),
            "stop the designated broker": lambda _: self._cluster.node(DESIGNATED).stop(),
            "kill the other broker": lambda _: self._cluster.node(SURVIVORS[0]).kill(),
            "hang the designated broker": lambda _: self._cluster.node(DESIGNATED).pause(),
            "start the last in-sync broker": lambda _: self._cluster.node(LAST).start(),
            "kill a controller": self._kill_controller,
            "kill the tool": lambda tool: tool.send_signal(signal.SIGKILL),
            "stop the tool": lambda tool: tool.send_signal(signal.SIGTERM),
            "a second tool from another host": self._second_tool,
        }
        self._tool = Tool(directory / f"host-{seed}", cluster.bootstrap())
        self._other = Tool(directory / f"other-{seed}", cluster.bootstrap())
        self.result = NemesisResult(seed, self._random.choice(sorted(self._faults)))

    def run(self) -> NemesisResult:
        began = time.monotonic()
        bench_cluster.take_offline(self._cluster, self._partitions)
        status, out, err = self._tool.run("plan", "--topic", TOPIC, "--strategy", "aggressive", "plan.json")
        if status:
            self.result.wrong.append(f"no plan: {err or out}"[:300])
            return self.result
        words = ("apply", "plan.json", "--yes", "--reason", "nemesis", "--output", "json")
        with self._tool.started(*words) as process:
            wait_until(lambda: self._begun(process), "the first request", 120.0, interval=0.01)
            # The moment of the fault, not a wait for anything.
            time.sleep(self._random.random() * LATEST_FAULT)
            self.result.in_time = process.poll() is None
            self._faults[self.result.fault](process)
            out, err = process.communicate(timeout=TOOL_SECONDS)
        self.result.status = process.returncode
        elections = json.loads(out)["elections"] if out.strip().startswith("{") else []
        self._end_fault()
        self._resume()
        self._check(elections)
        self.result.seconds = time.monotonic() - began
        return self.result

    def _begun(self, process: subprocess.Popen[str]) -> bool:
        return self._tool.has_begun() or process.poll() is not None

    def _kill_controller(self, _tool: subprocess.Popen[str]) -> None:
        self._random.choice(list(self._cluster.controllers.values())).kill()

    def _second_tool(self, _tool: subprocess.Popen[str]) -> None:
        (self._other.home / "plan.json").write_bytes((self._tool.home / "plan.json").read_bytes())
        self._other.run("apply", "plan.json", "--yes", "--reason", "another host")

    def _end_fault(self) -> None:
        """Who was killed or hung is back, but for the broker that was dead before."""
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

    def _check(self, elections: list[dict[str, Any]]) -> None:
        self._cluster.metadata.wait_caught_up()
        states = self._cluster.metadata.partitions(TOPIC)
        self.result.led = bench_cluster.leaders(self._cluster)
        order = [number for number, state in states.items() if state.replicas != assignment(number)]
        if order:
            self.result.wrong.append(f"{len(order)} partitions in a wrong order: {order[:5]}")
        moving = self._cluster.metadata.ask(
            ListPartitionReassignmentsRequest(timeout=_TIMEOUT, topics=None),
            ListPartitionReassignmentsResponse,
        )
        if moving.topics:
            self.result.wrong.append(f"reassignments in flight: {moving.topics}"[:300])
        reported = {row["partition"]: row for row in elections}
        self.result.elected = sum(row["outcome"] == "elected" for row in elections)
        for number, state in states.items():
            problem = self._broken_report(state, reported.get(number))
            if problem:
                self.result.wrong.append(f"{TOPIC}-{number}: {problem}")
        strangers = {LAST} if self.result.fault != "start the last in-sync broker" else set()
        if strangers & self.result.led.keys():
            self.result.wrong.append(f"led by {strangers}, which nobody started")

    @staticmethod
    def _broken_report(state: PartitionState, row: Mapping[str, Any] | None) -> str | None:
        """What the tool reported of the partition that is not so."""
        if row is None or row["outcome"] != "elected":
            return None
        if row["leader"] != DESIGNATED:
            return f"reported as elected with {row['leader']}, which was not designated"
        if state.leader_epoch < row["leaderEpoch"]:
            return f"reported at epoch {row['leaderEpoch']}, and it is at {state.leader_epoch}"
        if state.leader_epoch == row["leaderEpoch"] and state.leader != DESIGNATED:
            return f"reported as led by {DESIGNATED}, and {state.leader} leads at the same epoch"
        return None
