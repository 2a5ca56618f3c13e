"""Schedules a scenario's faults, and carries them out; its transactional producers too (KIP-98)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from backends.simulator.broker.led_transactions import append_records
from backends.simulator.loop import MILLISECOND, SECOND
from backends.simulator.messages import (
    CreateTopic,
    DeleteTopic,
    Done,
    ElectLeaders,
    ElectLeadersReply,
    Error,
    Reassign,
    ReassignReply,
    SetConfig,
    UpdateFeature,
)
from backends.simulator.network import NetworkNode
from backends.simulator.quorum.quorum_log import KRAFT_VERSION
from backends.simulator.scenario import faults as happens
from backends.simulator.scenario.build import Scenario
from backends.simulator.scenario.fault_targets import nodes, others, partition
from backends.simulator.scenario.faults import Fault
from backends.simulator.transaction_coordinators import TransactionCoordinators
from backends.simulator.transaction_rules import ProducerEpoch, ending, initialised, with_partitions
from backends.simulator.world import World
from recovery.controller.controller_errors import ControllerRefusal
from recovery.controller.rules import ELR_FEATURE
from recovery.controller.transition_targets import ElectionKind
from recovery.groups.group_values import CommittedOffset
from recovery.model import NO_EPOCH, NO_LEADER, TopicPartition
from recovery.transactions.transaction_values import CoordinatedTransaction
from recovery.wording.quantity_text import counted


class ScenarioTransactions:
    """``refused`` is called with what a producer was refused, and why. Its transactions have no timeout."""

    def __init__(self, world: World, refused: Callable[[str], None]) -> None:
        self._world = world
        self._coordinators = TransactionCoordinators(world)
        self._refused = refused

    def write(self, name: str, partitions: Sequence[TopicPartition], records: int) -> None:
        """The producer with that transactional id writes in its open transaction, or in a new one."""
        known = self._initialised(name)
        if known is None:
            self._refused(f"{name}: its coordinator is not available")
            return
        now = self._world.loop.now // MILLISECOND
        begun = with_partitions(known, _producer(known), partitions, now)
        if isinstance(begun, Error):
            self._refused(f"{name}: its last transaction is not ended yet")
            return
        if not self._coordinators.save(begun):
            self._refused(f"{name}: its coordinator refused to add the partitions")
            return
        for tp in partitions:
            leader = self._coordinators.leader_of(tp)
            error = (
                None if leader is None else append_records(self._world.context, leader, tp, begun, records)
            )
            if leader is None or error is not None:
                self._refused(f"{name}: {tp} {'has no leader' if error is None else f'answered {error}'}")

    def end(self, name: str, *, commit: bool) -> None:
        """The coordinator decides, and writes the markers."""
        known = self._coordinators.state(name)
        found = None if known is None else ending(known, _producer(known), commit=commit, new_epoch=False)
        if found is None or isinstance(found, Error) or found.state is None:
            self._refused(f"{name} has no open transaction, or its coordinator is not available")
        elif not self._coordinators.decide(found.state):
            self._refused(f"{name}: its coordinator could not write the decision")

    def _initialised(self, name: str) -> CoordinatedTransaction | None:
        """What the coordinator knows; None without one. An unknown id is given a producer id, as by
        InitProducerId.
        """
        known = self._coordinators.state(name)
        if known is None and self._coordinators.coordinator(name) is not None:
            made = initialised(None, name, ProducerEpoch(), self._world.context.producers.new_id())
            if not isinstance(made, Error) and self._coordinators.save(made):
                return made
        return known


def _producer(known: CoordinatedTransaction) -> ProducerEpoch:
    return ProducerEpoch(known.producer_id, known.epoch)


class Timeline:
    """Schedules every fault of the scenario in the world's loop. ``refused``: what a controller refused, and
    why.
    """

    def __init__(self, world: World, scenario: Scenario) -> None:
        self._world = world
        self._topology = scenario.topology
        self.refused: list[str] = []
        self._transactions = ScenarioTransactions(world, self._refused)
        self._does: dict[type, Callable[[Any], None]] = {
            happens.CutFault: self._cut,
            happens.HealFault: self._heal,
            happens.DelayFault: self._delay,
            happens.BrokerFault: self._broker,
            happens.DiskFault: self._disk,
            happens.PartitionFault: self._partition,
            happens.ControllerFault: self._controller,
            happens.ControllerMove: self._move,
            happens.VoterChangeFault: self._voter,
            happens.KRaftVersionUpgrade: self._kraft_version,
            happens.ConfigFault: self._configure,
            happens.FileEdit: self._edit_file,
            happens.FeatureFault: self._feature,
            happens.ReassignmentFault: self._reassign,
            happens.ElectionFault: self._elect,
            happens.TopicCreation: self._create,
            happens.TopicDeletion: self._delete,
            happens.OffsetCommit: self._commit,
            happens.TransactionalRecords: self._write_transaction,
            happens.TransactionEnd: self._end_transaction,
        }
        for fault in scenario.faults:
            world.loop.call_at(round(fault.at * SECOND), self.happen, fault)

    def happen(self, fault: Fault) -> None:
        """Carry out the fault now. Raises ValueError if the state forbids it, such as a new disk for a running
        broker.
        """
        self._world.history.add("scenario", fault.note or fault.do)
        self._does[type(fault)](fault)

    def _nodes(self, given: tuple[str, ...]) -> tuple[NetworkNode, ...]:
        return nodes(given, self._topology, ())

    def _sides(
        self, fault: happens.CutFault | happens.HealFault
    ) -> tuple[tuple[NetworkNode, ...], tuple[NetworkNode, ...]]:
        inside = self._nodes(fault.nodes)
        outside = others(inside, self._topology) if fault.others == ("others",) else self._nodes(fault.others)
        return inside, outside

    def _cut(self, fault: happens.CutFault) -> None:
        self._world.network.cut(*self._sides(fault), one_way=fault.one_way)

    def _heal(self, fault: happens.HealFault) -> None:
        if fault.nodes:
            self._world.network.heal(*self._sides(fault))
        else:
            self._world.network.heal_all()

    def _delay(self, fault: happens.DelayFault) -> None:
        (source,) = self._nodes((fault.source,))
        for target in self._nodes(fault.target):
            self._world.network.delay(source, target, round(fault.seconds * SECOND), fault.channel)

    def _broker(self, fault: happens.BrokerFault) -> None:
        world = self._world
        does: dict[str, Callable[[int], None]] = {
            "kill": world.kill_broker,
            "power-off": lambda number: world.power_off([number]),
            "start": world.start_broker,
            "shut-down": world.shut_down_broker,
        }
        for turn, node in enumerate(self._nodes(fault.nodes)):
            world.loop.call_later(turn * round(fault.every * SECOND), does[fault.do], node.id)

    def _disk(self, fault: happens.DiskFault) -> None:
        (node,) = self._nodes((fault.node,))
        if fault.do == "break-disk":
            self._world.break_log_dir(node.id, fault.log_dir)
        else:
            self._world.kill_broker(node.id)
            self._world.replace_log_dir(node.id, fault.log_dir)

    def _partition(self, fault: happens.PartitionFault) -> None:
        (node,) = self._nodes((fault.node,))
        tp = partition(fault.partition, self._topology, ())
        if tp in self._world.disks[node.id].logs:
            self._world.break_partition(node.id, tp)
        else:
            self._refused(f"{node} has no replica of {tp}")

    def _controller(self, fault: happens.ControllerFault) -> None:
        (node,) = self._nodes((fault.node,))
        does: dict[str, Callable[[int], None]] = {
            "kill-controller": self._world.kill_controller,
            "start-controller": self._world.start_controller,
            "failover": self._world.failover,
            "break-controller-disk": self._world.break_controller_disk,
            "replace-controller-disk": self._replace_controller_disk,
        }
        does[fault.do](node.id)

    def _replace_controller_disk(self, controller: int) -> None:
        self._world.kill_controller(controller)
        self._world.replace_controller_disk(controller)

    def _move(self, fault: happens.ControllerMove) -> None:
        (node,) = self._nodes((fault.node,))
        self._world.kill_controller(node.id)
        self._world.quorum.configure(node.id, host=fault.host, port=fault.port)
        self._world.start_controller(node.id)

    def _voter(self, fault: happens.VoterChangeFault) -> None:
        (node,) = self._nodes((fault.node,))
        request = self._world.quorum.add if fault.do == "add-voter" else self._world.quorum.remove
        self._world.send_to_quorum(request(node.id))

    def _kraft_version(self, fault: happens.KRaftVersionUpgrade) -> None:
        self._world.send_to_quorum(UpdateFeature(KRAFT_VERSION, fault.level))

    def _tell(self, body: Any) -> None:
        """A request from inside the cluster's network to the active controller."""
        active = self._world.active
        if active is None or active.active is None:
            self._refused("no controller acts at present")
            return
        active.active.handle(body, self._answered)

    def _answered(self, reply: Any) -> None:
        self._world.history.add("scenario", f"answered: {_reply_text(reply)}")
        refusal = reply.refusal if isinstance(reply, Done) else reply
        if isinstance(refusal, ControllerRefusal):
            self.refused.append(str(refusal))

    def _refused(self, why: str) -> None:
        self._world.history.add("scenario", f"refused: {why}")
        self.refused.append(why)

    def _configure(self, fault: happens.ConfigFault) -> None:
        self._tell(SetConfig(fault.topic, fault.name, fault.value, fault.broker))

    def _edit_file(self, fault: happens.FileEdit) -> None:
        (node,) = self._nodes((fault.node,))
        self._world.files[node.id] = fault.min_isr

    def _feature(self, fault: happens.FeatureFault) -> None:
        self._tell(UpdateFeature(ELR_FEATURE, fault.level))

    def _reassign(self, fault: happens.ReassignmentFault) -> None:
        tp = partition(fault.partition, self._topology, ())
        self._tell(Reassign(((tp, fault.replicas),), True))

    def _elect(self, fault: happens.ElectionFault) -> None:
        rows = [(partition(name, self._topology, ()), NO_LEADER) for name in fault.partitions]
        kind = ElectionKind.PREFERRED if fault.kind == "preferred" else ElectionKind.UNCLEAN
        self._tell(ElectLeaders(kind, tuple(rows) or None))

    def _create(self, fault: happens.TopicCreation) -> None:
        self._tell(CreateTopic(fault.topic, fault.replicas, fault.min_isr))

    def _delete(self, fault: happens.TopicDeletion) -> None:
        self._tell(DeleteTopic(fault.topic))

    def _commit(self, fault: happens.OffsetCommit) -> None:
        tp = partition(fault.partition, self._topology, ())
        leader = self._world.image.partitions[tp].leader
        log = self._world.disks[leader].logs.get(tp) if leader != NO_LEADER else None
        if log is None or fault.offset > log.high_watermark:
            self._refused(f"{fault.group} cannot have read {tp} up to {fault.offset}")
            return
        last = next((s.epoch for s in log.spans if s.start < fault.offset <= s.end), NO_EPOCH)
        committed = CommittedOffset(fault.offset, last if fault.epoch else NO_EPOCH)
        self._world.context.groups.commit(fault.group, [(tp, committed)])

    def _write_transaction(self, fault: happens.TransactionalRecords) -> None:
        partitions = [partition(name, self._topology, ()) for name in fault.partitions]
        self._transactions.write(fault.id, partitions, fault.records)

    def _end_transaction(self, fault: happens.TransactionEnd) -> None:
        self._transactions.end(fault.id, commit=fault.outcome == "commit")


def _reply_text(reply: Any) -> str:
    """What the controller answered, in words."""
    if isinstance(reply, ElectLeadersReply | ReassignReply):
        refused = [
            f"{tp} refused: {refusal}" for tp, refusal in reply.refusals.items() if refusal is not None
        ]
        done = len(reply.refusals) - len(refused)
        return "; ".join([*([f"{counted(done, 'partition')} done"] if done else []), *refused]) or "done"
    refusal = reply.refusal if isinstance(reply, Done) else reply
    return str(refusal or "done")
