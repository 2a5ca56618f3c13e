"""The cluster driver on the simulator: virtual time, no real waits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from backends.base.protocol import Backend
from backends.simulator.adapter import SimulatorBackend
from backends.simulator.config import Config
from backends.simulator.loop import SECOND
from backends.simulator.messages import (
    CreateTopic,
    DeleteRecords,
    Done,
    Produce,
    ProduceReply,
    Reassign,
    ReassignReply,
    RecordsDeleted,
)
from backends.simulator.network import OPERATOR, NetworkNode, NetworkRole
from backends.simulator.network import broker as node
from backends.simulator.rpc import RpcEndpoint
from backends.simulator.scenario.build import Scenario
from backends.simulator.simulation import Simulation
from backends.simulator.topology import BrokerSpec, Topology
from backends.simulator.world import World
from recovery.controller.registration import Registration
from recovery.model import TopicPartition
from tests.contract.cluster_driver import BROKERS, SECONDS, Acks

T = TypeVar("T")
PAUSE = SECOND // 10
ACKS = {"0": 0, "1": 1, "all": -1}

# As the testbed configures real clusters; nothing is flushed, for nobody's power fails.
QUICK = Config(
    broker_heartbeat_interval=SECOND // 2,
    broker_session_timeout=3 * SECOND,
    flush_interval=600 * SECOND,
    auto_leader_rebalance=False,
)


class SimulatedClusterDriver:
    """Implements :class:`tests.contract.cluster_driver.ClusterDriver`; every invariant is checked at every step."""

    def __init__(
        self,
        brokers: Sequence[int] = BROKERS,
        controllers: Sequence[int] = (100, 101, 102),
        seed: int = 1,
        config: Config = QUICK,
    ) -> None:
        specs = tuple(BrokerSpec(number, log_dirs=2) for number in brokers)
        topology = Topology("contract", specs, (), tuple(controllers), config=config)
        scenario = Scenario("contract", "contract", "", "", topology, (), 0, (), 0, ())
        self.simulation = Simulation(scenario, seed, strict=True)
        self._client = RpcEndpoint(
            self.world.loop, self.world.network, NetworkNode(NetworkRole.CLIENT, 0), _nobody
        )

    @property
    def world(self) -> World:
        return self.simulation.world

    @asynccontextmanager
    async def backend(self, *denied: str) -> AsyncIterator[Backend]:
        before = self.world.context.denied.permissions
        self.world.context.denied.permissions = frozenset(denied)
        backend = SimulatorBackend.at(self.simulation)
        try:
            await backend.open()
            yield backend
        finally:
            await backend.close()
            self.world.context.denied.permissions = before

    # Waiting.

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        if not self.world.loop.run_while(lambda: not condition(), round(SECONDS * SECOND)):
            lines = "\n".join(str(line) for line in self.world.history.lines[-30:])
            raise AssertionError(f"waited for {what}\n{lines}")

    async def until(self, ask: Callable[[], Awaitable[T]], condition: Callable[[T], bool], what: str) -> T:
        deadline = self.simulation.now + round(SECONDS * SECOND)
        while not condition(answer := await ask()):
            assert self.simulation.now < deadline, f"waited for {what}; seen instead: {answer}"
            self.simulation.advance_to(self.simulation.now + PAUSE)
        return answer

    def partition(self, tp: TopicPartition) -> Registration:
        return self.world.image.partitions[tp]

    def _caught_up(self) -> bool:
        """Every broker that runs and hears controllers has the newest metadata."""
        newest = self.world.image
        return all(
            process.state.image is newest
            for number, process in self.world.brokers.items()
            if not newest.brokers[number].fenced
        )

    def applied(self, body: Any) -> Any:
        """The active controller's answer, seen by every live broker."""
        answers: list[Any] = []

        def acts() -> bool:
            return self.world.active is not None and self.world.active.active is not None

        self.wait(acts, "an active controller")
        assert self.world.active is not None and self.world.active.active is not None
        self.world.active.active.handle(body, answers.append)
        self.wait(lambda: bool(answers), f"an answer to {body}")
        self.wait(self._caught_up, f"every broker to hear of {body}")
        return answers[0]

    def _at_leader(self, tp: TopicPartition, body: Any) -> Any:
        self.wait(lambda: self.partition(tp).has_leader, f"a leader of {tp}")
        leader = self.partition(tp).leader
        if getattr(body, "acks", None) == 0:
            self._client.send_one_way(node(leader), body)
            return ProduceReply(None)
        return self.asked(leader, body)

    def asked(self, broker: int, body: Any) -> Any:
        """That broker's answer, whatever it is for the partition."""
        answers: list[Any] = []
        self._client.ask(node(broker), body, round(SECONDS * SECOND), answers.append)
        self.wait(lambda: bool(answers), f"an answer to {body}")
        return answers[0]

    # Topics and records.

    def create_topic(
        self, topic: str, assignment: Sequence[Sequence[int]], config: Mapping[str, str] | None = None
    ) -> None:
        min_isr = (config or {}).get("min.insync.replicas")
        rows = tuple(map(tuple, assignment))
        answer = self.applied(CreateTopic(topic, rows, None if min_isr is None else int(min_isr)))
        assert isinstance(answer, Done) and answer.refusal is None, answer
        made = [(TopicPartition(topic, number), b) for number, row in enumerate(rows) for b in row]
        self.wait(
            lambda: all(tp in self.world.disks[b].logs for tp, b in made if b in self.world.brokers),
            f"all logs of {topic}",
        )

    def produce(self, topic: str, count: int, partition: int = 0, acks: Acks = "all") -> None:
        tp = TopicPartition(topic, partition)
        answer = self._at_leader(tp, Produce(tp, count, ACKS[acks]))
        assert isinstance(answer, ProduceReply) and answer.error is None, answer

    def delete_records(self, topic: str, before: int, partition: int = 0) -> None:
        tp = TopicPartition(topic, partition)
        answer = self._at_leader(tp, DeleteRecords(tp, before))
        assert isinstance(answer, RecordsDeleted) and answer.error is None, answer
        live = [number for number in self.partition(tp).replicas if number in self.world.brokers]
        self.wait(
            lambda: all(self.world.disks[number].logs[tp].start == before for number in live),
            f"{tp} to start at {before}",
        )

    def reassign(self, topic: str, partition: int, replicas: Sequence[int] | None) -> None:
        tp = TopicPartition(topic, partition)
        answer = self.applied(Reassign(((tp, None if replicas is None else tuple(replicas)),), True))
        assert isinstance(answer, ReassignReply) and answer.refusals[tp] is None, answer

    # Brokers.

    def _fenced(self, brokers: Iterable[int]) -> bool:
        return all(self.world.image.brokers[number].fenced for number in brokers)

    def _wait_fenced(self, *brokers: int) -> None:
        if self.world.brokers:
            self.wait(lambda: self._fenced(brokers) and self._caught_up(), f"brokers {brokers} to be fenced")

    def kill(self, *brokers: int) -> None:
        for number in brokers:
            self.world.kill_broker(number)
        self._wait_fenced(*brokers)

    def shut_down(self, *brokers: int) -> None:
        for number in brokers:
            self.world.shut_down_broker(number)
            self.wait(lambda number=number: number not in self.world.brokers, f"{number} to end")  # type: ignore[misc]  # bound per turn
        self._wait_fenced(*brokers)

    def start(self, *brokers: int) -> None:
        for number in brokers:
            self.world.start_broker(number)
        self.wait(
            lambda: not any(self.world.image.brokers[b].fenced for b in brokers) and self._caught_up(),
            f"brokers {brokers} to be unfenced",
        )
        # Whoever was killed last was seen by nobody.
        self._wait_fenced(*(self.world.image.brokers.keys() - self.world.brokers.keys()))

    def pause(self, broker: int) -> None:
        self.world.network.cut([node(broker)], [OPERATOR, *self._others(broker)])

    def resume(self, broker: int) -> None:
        self.world.network.heal([node(broker)], [OPERATOR, *self._others(broker)])
        self.start(broker)

    def _others(self, broker: int) -> list[NetworkNode]:
        return [other for other in self.world.nodes() if other != node(broker)]

    def break_log_dir(self, broker: int, index: int) -> None:
        assert index > 0
        self.world.break_log_dir(broker, index)

    def replace_log_dir(self, broker: int, index: int) -> None:
        """An empty disk in the place of the log dir of a dead broker."""
        self.world.replace_log_dir(broker, index)

    def bring_all_up(self) -> None:
        for number, disk in self.world.disks.items():
            for index, directory in enumerate(disk.directories):
                if directory.broken:
                    self.kill(number)
                    self.replace_log_dir(number, index)
        self.start(*self.world.specs)


def _nobody(_source: NetworkNode, _body: Any, _answer: Any) -> None:
    """Nobody asks a client anything."""
