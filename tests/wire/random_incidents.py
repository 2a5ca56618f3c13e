"""Random incidents: a served cluster that has been through something, the recovery tool in a process of its own,
and more that happens while it works; afterwards what must hold is held against the simulator's own knowledge.
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from backends.base.answers import ELECTION_ALIVE_FOR
from backends.simulator.broker.replica_log import Log, missing
from backends.simulator.config import Config
from backends.simulator.events import Event, MetadataCommitted
from backends.simulator.loop import MILLISECOND, SECOND
from backends.simulator.network import OPERATOR
from backends.simulator.network import broker as node
from backends.simulator.scenario.build import Scenario
from backends.simulator.served.api_versions import Api, hidden
from backends.simulator.served.served_cluster import ServedCluster, ServedClusterOptions
from backends.simulator.simulation import Simulation
from backends.simulator.topology import BrokerSpec, ProducerSpec, TopicSpec, Topology
from backends.simulator.world import World
from recovery.loss import count, union
from recovery.model import NO_LEADER, EpochSpan, TopicPartition
from tests.unit.cli.command_process import environment
from tests.wire.fork_server import ForkedRun, ForkServer
from tests.wire.journal_checks import journal_problems

SAFE, QUICK = "safe", "quick"
PARTITIONS = 4
LIMIT = 90.0
"""Seconds for one run of the tool."""
WRITES = (Api.AlterPartitionReassignments, Api.ElectLeaders)


class IncidentResult(NamedTuple):
    """One incident: what was wrong, in sentences, and what happened in it."""

    seed: int
    wrong: tuple[str, ...]
    offline: int
    elected: int
    faults: tuple[str, ...]
    killed: bool
    runs: int


@dataclass
class Elections:
    """Every log of a partition at the moment in which it was given a leader again, and what was acknowledged with
    acks=all until then, since the last unclean election. ``fenced``: who was so at any time while it was watched;
    ``orders``: in which each assignment stood.
    """

    simulation: Simulation
    at: dict[TopicPartition, Mapping[int, Log]] = field(default_factory=dict)
    acknowledged: dict[TopicPartition, tuple[EpochSpan, ...]] = field(default_factory=dict)
    fenced: set[int] = field(default_factory=set)
    orders: dict[TopicPartition, list[tuple[int, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for tp, held in self.simulation.world.image.partitions.items():
            self.orders[tp] = [held.replicas]

    def __call__(self, event: Event) -> None:
        if not isinstance(event, MetadataCommitted):
            return
        for image in (event.before, event.image):
            self.fenced.update(number for number, broker in image.brokers.items() if broker.fenced)
        for tp in event.touched:
            before, after = event.before.partitions.get(tp), event.image.partitions.get(tp)
            if before is None or after is None:
                continue
            if after.replicas != self.orders[tp][-1]:
                self.orders[tp].append(after.replicas)
            if before.leader != NO_LEADER or after.leader == NO_LEADER:
                continue
            disks = self.simulation.world.disks
            self.acknowledged[tp] = self.simulation.checker.known.acknowledged(tp)
            self.at[tp] = {
                number: disks[number].logs[tp] for number in after.replicas if tp in disks[number].logs
            }


def topology(random: Random) -> Topology:
    """Four or five brokers, a topic with min ISR 2 and one with 1, and producers that never rest."""
    ids = tuple(range(1, random.choice((4, 5)) + 1))
    topics = tuple(
        TopicSpec(
            name,
            PARTITIONS,
            tuple(tuple(random.sample(ids, 3)) for _ in range(PARTITIONS)),
            least,
            records=50,
        )
        for name, least in ((SAFE, 2), (QUICK, 1))
    )
    config = Config(
        broker_heartbeat_interval=SECOND // 2,
        broker_session_timeout=3 * SECOND,
        replica_lag_time_max=2 * SECOND,
        flush_interval=random.choice((1, 600)) * SECOND,
        auto_leader_rebalance=False,
    )
    producers = tuple(
        ProducerSpec(name, tuple(range(PARTITIONS)), acks, 3, every * MILLISECOND, stop=60 * SECOND)
        for name in (SAFE, QUICK)
        for acks, every in ((-1, 400), (1, 700))
    )
    return Topology(
        "incident", tuple(BrokerSpec(number) for number in ids), topics, config=config, producers=producers
    )


def prelude(world: World, random: Random) -> None:
    """Brokers die and return until some partitions wait for one that is dead."""
    for _ in range(40):
        world.loop.run_for(random.randrange(SECOND // 2, 5 * SECOND))
        number = random.choice(list(world.specs))
        what = random.choice(("kill", "kill", "power", "start", "start", "shut down"))
        if what == "kill":
            world.kill_broker(number)
        elif what == "power":
            world.power_off([number])
        elif what == "shut down":
            world.shut_down_broker(number)
        else:
            world.start_broker(number)
        offline = len(list(world.image.leaderless()))
        if world.loop.now > 20 * SECOND and offline and len(world.brokers) >= 2:
            break
    world.loop.run_for(5 * SECOND)
    waiting = list(world.image.leaderless())
    awaited: set[int] = set()
    if waiting and random.random() < 0.8:
        # Whoever one of them waits for stays away; everybody else comes back, and has something to say.
        held = world.image.partitions[random.choice(waiting)]
        awaited = {*held.isr, *held.elr, *held.last_known_elr}
    for number in world.specs:
        if number in awaited:
            world.kill_broker(number)
        else:
            world.start_broker(number)
    world.loop.run_for(6 * SECOND)


class Incident:
    """One seed, from its prelude to what is checked."""

    def __init__(self, seed: int, directory: Path, ready: ForkServer) -> None:
        self._ready = ready
        self.seed = seed
        self.random = Random(f"incident {seed}")
        self.directory = directory
        self.wrong: list[str] = []
        self.faults: list[str] = []
        self.killed = False
        self.runs = 0
        self.simulation = Simulation(
            Scenario("incident", "", "", "", topology(self.random), (), 0, (), 0, ()), seed
        )
        self.world = self.simulation.world
        self.strategy = self.random.choice(("balanced", "aggressive", "aggressive"))
        self.native = self.random.random() < 0.5
        self._run: ForkedRun | None = None
        self._planned = dict.fromkeys(self.random.sample(range(1, 60), self.random.choice((0, 1, 2))))
        # Natively one write is all there is; otherwise an order, an election, and the order again.
        writes = 1 if self.native else self.random.randrange(1, 4)
        self._kill_at = writes if self.random.random() < 0.4 else 0
        self._answers = self._writes = 0
        self._statuses: dict[int, int] = {}
        self._resumed = False
        self._documents: list[dict[str, Any]] = []

    async def run(self) -> IncidentResult:
        """Everything in turn; a defect of the tool is a sentence, not an exception."""
        prelude(self.world, self.random)
        orders = {tp: held.replicas for tp, held in self.world.image.partitions.items()}
        offline = list(self.world.image.leaderless())
        self._elections = Elections(self.simulation)
        self.world.events.subscribers.append(self._elections)
        without = "" if self.native else "GetReplicaLogInfo,ElectLeaders:3"
        options = ServedClusterOptions(speed=2.0, without=hidden(without))
        async with ServedCluster(self.simulation.scenario, options, self.simulation) as served:
            for one in served.ports:
                served.listener(one).frame_faults.change = self._passing
            await self._recover(served)
            if self.killed:
                self._planned.clear()
                await self._tool(served, "ktriage", "resume")
                await self._recover(served)
        self.simulation.advance_to(self.simulation.now + 2 * SECOND)
        self._check(orders)
        elected = sum(
            row["outcome"] == "elected" for document in self._documents for row in document["elections"]
        )
        return IncidentResult(
            self.seed, tuple(self.wrong), len(offline), elected, tuple(self.faults), self.killed, self.runs
        )

    # While it runs.

    async def _passing(self, api_key: int, frame: bytes) -> bytes | None:
        """Sees every answer: at some of them something happens."""
        self._answers += 1
        if self._answers in self._planned:
            self._something()
        if api_key in WRITES:
            self._writes += 1
            if self._writes == self._kill_at and self._run is not None and not self.killed:
                self.killed = True
                self._run.kill()
                if self.random.random() < 0.5:
                    return None
        return frame

    def _something(self) -> None:
        number = self.random.choice(list(self.world.specs))
        what = self.random.choice(("kill", "start", "start", "cut off", "failover", "power"))
        self.faults.append(f"{what} {number}")
        if what == "kill":
            self.world.kill_broker(number)
        elif what == "power":
            self.world.power_off([number])
        elif what == "start":
            self.world.start_broker(number)
        elif what == "failover":
            self.world.failover(self.random.choice(self.world.topology.controllers))
        else:
            self.world.network.cut([node(number)], [OPERATOR])

    async def _recover(self, served: ServedCluster) -> None:
        out = await self._tool(
            served,
            "kafka-unclean-recovery",
            *("--all-offline-partitions", "--automated-recovery", "--strategy", self.strategy),
            *("--recovery-duration-ms", "4000", "--output", "json"),
        )
        if out:
            document = json.loads(out)
            if document.get("elections"):
                self._documents.append(document)

    async def _tool(self, served: ServedCluster, name: str, *words: str) -> str:
        self.runs += 1
        self._run = run = await self._ready.run(
            name,
            *words,
            *("--bootstrap-server", served.bootstrap),
            env=environment(self.directory),
            directory=self.directory,
        )
        ending = asyncio.ensure_future(run.ended())
        limit = LIMIT + ELECTION_ALIVE_FOR * ("resume" in words)
        if not (await asyncio.wait((ending,), timeout=limit))[0]:
            run.kill()
            self.wrong.append(f"{name} did not come to an end within {limit:g} s")
        ended = await ending
        self._run = None
        self._statuses[run.pid] = ended.status
        self._resumed = (name == "ktriage" and ended.status == 0) or self._resumed
        if ended.status not in (0, 1, 3, 4, -signal.SIGKILL):
            self.wrong.append(f"{name} ended with status {ended.status}: {ended.err[-300:]}")
        if "internal error" in ended.err or "Traceback" in ended.err:
            self.wrong.append(f"{name} crashed: {ended.err[-300:]}")
        return ended.out if ended.status in (0, 1, 4) else ""

    # Afterwards.

    def _check(self, orders: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        for tp, held in self.world.image.partitions.items():
            if held.replicas != orders[tp]:
                self.wrong.append(f"{tp}: the order {list(orders[tp])} was left as {list(held.replicas)}")
        for document in self._documents:
            rows = {(row["topic"], row["partition"]): row for row in document["partitions"]}
            for row in document["elections"]:
                tp = TopicPartition(row["topic"], row["partition"])
                if row["outcome"] == "elected":
                    self._elected(tp, row, rows[row["topic"], row["partition"]]["loss"])
        settled = self._resumed if self.killed else True
        self.wrong += journal_problems(
            self.directory, self._elections.orders, self._statuses, settled=settled
        )

    def _elected(
        self,
        tp: TopicPartition,
        row: Mapping[str, Any],
        told: Mapping[str, Any],
    ) -> None:
        """``told`` is the loss that the plan named."""
        held = self.world.image.partitions[tp]
        if held.leader_epoch < row["leaderEpoch"]:
            self.wrong.append(f"{tp}: epoch {row['leaderEpoch']} was told, and it is {held.leader_epoch}")
        if held.leader_epoch == row["leaderEpoch"] and held.leader not in (row["leader"], NO_LEADER):
            self.wrong.append(f"{tp}: {row['leader']} was told to lead, and {held.leader} does")
        logs = self._elections.at.get(tp)
        if logs is None or row["leader"] not in logs:
            return
        chosen = logs[row["leader"]]
        # A broker whose log is known has answered, whatever became of it in the same survey.
        answered = logs.keys() - {row["leader"]} - set(told["unanswered"])
        others = [logs[number] for number in answered]
        lost = count(_missing(chosen, others))
        # A machine that lost its power after it had answered has lost records by itself.
        fewer = lost < told["atLeast"] and not any(fault.startswith("power") for fault in self.faults)
        if fewer or (told["atMost"] is not None and lost > told["atMost"]):
            self.wrong.append(f"{tp}: {lost} offsets lost, told {told['atLeast']} to {told['atMost']}")
        if tp.topic == SAFE:
            # Only balanced waits for one that answered while it could not be elected yet.
            waited = answered if self.strategy == "balanced" else answered - self._elections.fenced
            self._kept(tp, chosen, [logs[number] for number in waited])

    def _kept(self, tp: TopicPartition, chosen: Log, others: Iterable[Log]) -> None:
        """Nothing acknowledged with acks=all, and held by somebody who could be elected and answered, is gone."""
        gone = missing(chosen, self._elections.acknowledged[tp])
        for log in others:
            held = [span for span in gone if not missing(log, (span,))]
            if held:
                self.wrong.append(f"{tp}: {held} were acknowledged, held by a candidate, and are lost")


def _missing(chosen: Log, others: Iterable[Log]) -> tuple[EpochSpan, ...]:
    """What the others hold and the chosen does not, each (epoch, offset) once."""
    spans: list[EpochSpan] = []
    for log in others:
        spans.extend(_lacking(chosen, log.spans))
    return union(spans)


def _lacking(log: Log, spans: Iterable[EpochSpan]) -> list[EpochSpan]:
    held = {span.epoch: span for span in log.spans}
    lacking = []
    for span in spans:
        mine = held.get(span.epoch)
        parts = (
            [(span.start, span.end)]
            if mine is None
            else [(span.start, min(span.end, mine.start)), (max(span.start, mine.end), span.end)]
        )
        lacking += [EpochSpan(span.epoch, start, end) for start, end in parts if start < end]
    return lacking


async def incident(seed: int, directory: Path, ready: ForkServer) -> IncidentResult:
    """One incident; its records are in ``directory``, and ``ready`` starts the tool."""
    return await Incident(seed, directory, ready).run()
