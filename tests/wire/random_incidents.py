"""Random incidents: a served cluster that has been through something, the recovery tool in a process of its own,
and more that happens while it works: to brokers, controllers, links, the journal's disk and the tool itself, and a
second tool on another host. Afterwards what must hold is held against the simulator's own knowledge.
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from backends.live.codec.apis import Api
from backends.simulator.broker.replica_log import Log, missing
from backends.simulator.config import Config
from backends.simulator.loop import MILLISECOND, SECOND
from backends.simulator.network import OPERATOR
from backends.simulator.network import broker as node
from backends.simulator.scenario.build import Scenario
from backends.simulator.served.api_versions import hidden
from backends.simulator.served.served_cluster import ServedCluster, ServedClusterOptions
from backends.simulator.simulation import Simulation
from backends.simulator.topology import BrokerSpec, ProducerSpec, TopicSpec, Topology
from backends.simulator.world import World
from recovery.loss import count
from recovery.model import NO_LEADER, TopicPartition
from recovery.requests_in_doubt import ELECTION_ALIVE_FOR
from tests.unit.cli.command_process import environment
from tests.wire.fork_server import ForkedRun, ForkServer
from tests.wire.journal_checks import journal_problems
from tests.wire.watched_elections import Elections, lost

SAFE, QUICK = "safe", "quick"
SIZES = (4, 4, 4, 4, 4, 4, 4, 4, 4, 60)
"""Partitions of each topic, one of these."""
LIMIT = 90.0
"""Seconds for one run of the tool."""
HAPPENINGS = (
    *("kill", "start", "start", "cut off", "failover", "power"),
    *("hang", "continue", "cut a link", "full disk", "second tool"),
)
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


def topology(random: Random) -> Topology:
    """Four or five brokers, a topic with min ISR 2 and one with 1, and producers that never rest."""
    ids = tuple(range(1, random.choice((4, 5)) + 1))
    partitions = random.choice(SIZES)
    topics = tuple(
        TopicSpec(
            name,
            partitions,
            tuple(tuple(random.sample(ids, 3)) for _ in range(partitions)),
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
        ProducerSpec(name, tuple(range(partitions)), acks, 3, every * MILLISECOND, stop=60 * SECOND)
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
        registration = world.image.partitions[random.choice(waiting)]
        awaited = {*registration.isr, *registration.elr, *registration.last_known_elr}
    for number in world.specs:
        if number in awaited:
            world.kill_broker(number)
        else:
            world.start_broker(number)
    world.loop.run_for(6 * SECOND)


class Incident:
    """One seed, from its prelude to what is checked."""

    def __init__(self, seed: int, directory: Path, servers: list[ForkServer]) -> None:
        self._servers = servers
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
        self._served: ServedCluster
        self._planned = dict.fromkeys(self.random.sample(range(1, 60), self.random.choice((0, 1, 2, 4))))
        self._cut_short: set[int] = set()
        self._filled = False
        self._second: asyncio.Task[None] | None = None
        # Natively one write is all there is; otherwise an order, an election, and the order again.
        writes = 1 if self.native else self.random.randrange(1, 4)
        self._kill_at = writes if self.random.random() < 0.4 else 0
        self._answers = self._writes = 0
        self._resumed = False
        self._documents: list[dict[str, Any]] = []

    async def run(self) -> IncidentResult:
        """Everything in turn; a defect of the tool is a sentence, not an exception."""
        prelude(self.world, self.random)
        orders = {tp: registration.replicas for tp, registration in self.world.image.partitions.items()}
        offline = list(self.world.image.leaderless())
        self._elections = Elections(self.simulation)
        self.world.events.subscribers.append(self._elections)
        without = "" if self.native else "GetReplicaLogInfo,ElectLeaders:3"
        options = ServedClusterOptions(speed=2.0, without=hidden(without))
        async with ServedCluster(self.simulation.scenario, options, self.simulation) as served:
            self._served = served
            for one in served.ports:
                served.listener(one).frame_faults.change = self._passing
            await self._recover(served)
            if self._second is not None:
                await self._second
            if self.killed or self._filled:
                self._planned.clear()
                self._kill_at = 0
                self.world.network.heal_all()
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
        what = self.random.choice(HAPPENINGS)
        self.faults.append(f"{what} {number}")
        others = [one for one in self.world.nodes() if one != node(number)]
        network = self.world.network
        match what:
            case "kill":
                self.world.kill_broker(number)
            case "power":
                self.world.power_off([number])
            case "start":
                self.world.start_broker(number)
            case "failover":
                self.world.failover(self.random.choice(self.world.topology.controllers))
            case "cut off":
                network.cut([node(number)], [OPERATOR])
            case "hang":
                network.cut([node(number)], [*others, OPERATOR])
            case "cut a link":
                network.cut([node(number)], [self.random.choice(others)])
            case "continue":
                network.heal_all()
            case "full disk" if self._run is not None:
                self._filled = True
                self._cut_short |= {self._run.pid, 0}
                self._run.fill_disk()
            case "second tool" if self._second is None:
                self._second = asyncio.ensure_future(self._elsewhere(self._served))

    async def _elsewhere(self, served: ServedCluster) -> None:
        """The same recovery, started by somebody else on another host."""
        if len(self._servers) == 1:
            self._servers.append(ForkServer())
        home = self.directory / "elsewhere"
        home.mkdir()
        await self._recover(served, self._servers[1], home)

    async def _recover(
        self, served: ServedCluster, server: ForkServer | None = None, home: Path | None = None
    ) -> None:
        out = await self._tool(
            served,
            "kafka-unclean-recovery",
            *("--all-offline-partitions", "--automated-recovery", "--strategy", self.strategy),
            *("--recovery-duration-ms", "4000", "--output", "json"),
            server=server,
            home=home,
        )
        if out:
            document = json.loads(out)
            if document.get("elections"):
                self._documents.append(document)

    async def _tool(
        self,
        served: ServedCluster,
        name: str,
        *words: str,
        server: ForkServer | None = None,
        home: Path | None = None,
    ) -> str:
        self.runs += 1
        home = home or self.directory
        run = await (server or self._servers[0]).run(
            name,
            *words,
            *("--bootstrap-server", served.bootstrap),
            env=environment(home),
            directory=home,
        )
        if server is None:
            self._run = run
        ending = asyncio.ensure_future(run.ended())
        limit = LIMIT + ELECTION_ALIVE_FOR * ("resume" in words)
        if not (await asyncio.wait((ending,), timeout=limit))[0]:
            run.kill()
            self.wrong.append(f"{name} did not come to an end within {limit:g} s")
        ended = await ending
        if server is None:
            self._run = None
        if ended.status == -signal.SIGKILL:
            self._cut_short.add(run.pid)
        self._resumed = (name == "ktriage" and ended.status == 0) or self._resumed
        if ended.status not in (0, 1, 3, 4, -signal.SIGKILL):
            self.wrong.append(f"{name} ended with status {ended.status}: {ended.err[-300:]}")
        if "internal error" in ended.err or "Traceback" in ended.err:
            self.wrong.append(f"{name} crashed: {ended.err[-300:]}")
        return ended.out if ended.status in (0, 1, 4) else ""

    # Afterwards.

    def _check(self, orders: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        for tp, registration in self.world.image.partitions.items():
            if registration.replicas != orders[tp]:
                self.wrong.append(
                    f"{tp}: the order {list(orders[tp])} was left as {list(registration.replicas)}"
                )
        for document in self._documents:
            rows = {(row["topic"], row["partition"]): row for row in document["partitions"]}
            for row in document["elections"]:
                tp = TopicPartition(row["topic"], row["partition"])
                if row["outcome"] == "elected":
                    self._elected(tp, row, rows[row["topic"], row["partition"]]["loss"])
        settled = self._resumed if self.killed or self._filled else True
        self.wrong += journal_problems(
            self.directory, self._elections.orders, self._cut_short, settled=settled
        )

    def _elected(
        self,
        tp: TopicPartition,
        row: Mapping[str, Any],
        planned: Mapping[str, Any],
    ) -> None:
        """``planned`` is the loss that the plan named."""
        state = self.world.image.partitions[tp]
        if state.leader_epoch < row["leaderEpoch"]:
            self.wrong.append(f"{tp}: epoch {row['leaderEpoch']} was told, and it is {state.leader_epoch}")
        if state.leader_epoch == row["leaderEpoch"] and state.leader not in (
            row["leader"],
            NO_LEADER,
        ):
            self.wrong.append(f"{tp}: {row['leader']} was told to lead, and {state.leader} does")
        logs = self._elections.at.get(tp)
        if logs is None or row["leader"] not in logs:
            return
        chosen = logs[row["leader"]]
        # A broker whose log is known has answered, whatever became of it in the same survey.
        answered = logs.keys() - {row["leader"]} - set(planned["unanswered"])
        others = [logs[number] for number in answered]
        offsets = count(lost(chosen, others))
        # A machine that lost its power after it had answered has lost records by itself.
        fewer = offsets < planned["atLeast"] and not any(fault.startswith("power") for fault in self.faults)
        if fewer or (planned["atMost"] is not None and offsets > planned["atMost"]):
            self.wrong.append(
                f"{tp}: {offsets} offsets lost, told {planned['atLeast']} to {planned['atMost']}"
            )
        if tp.topic == SAFE:
            # Only balanced waits for one that answered while it could not be elected yet.
            waited = answered if self.strategy == "balanced" else answered - self._elections.fenced
            self._check_nothing_acknowledged_is_lost(tp, chosen, [logs[number] for number in waited])

    def _check_nothing_acknowledged_is_lost(
        self, tp: TopicPartition, chosen: Log, others: Iterable[Log]
    ) -> None:
        """Nothing acknowledged with acks=all, and held by somebody who could be elected and answered, is gone."""
        gone = missing(chosen, self._elections.acknowledged[tp])
        for log in others:
            survivors = [span for span in gone if not missing(log, (span,))]
            if survivors:
                self.wrong.append(f"{tp}: {survivors} were acknowledged, held by a candidate, and are lost")


async def incident(seed: int, directory: Path, servers: list[ForkServer]) -> IncidentResult:
    """One incident; its records are in ``directory``, and ``servers`` start the tool. A second one is added for a
    second tool.
    """
    return await Incident(seed, directory, servers).run()
