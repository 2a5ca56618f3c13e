"""What somebody asks of a served cluster happens whole, or is refused in one line and nothing happens."""

from __future__ import annotations

import pytest

from backends.simulator.network import NetworkNode
from backends.simulator.scenario.files import read
from backends.simulator.served.control_socket import ControlError, checked, inject, read_fault
from backends.simulator.served.served_cluster import ServedCluster, ServedClusterOptions
from recovery.model import TopicPartition
from tests.wire.response_faults import SCENARIO


def happen(served: ServedCluster, words: str) -> None:
    inject(served, checked(read_fault(words.split())))


def answering(served: ServedCluster) -> set[NetworkNode]:
    return {node for node in served.ports if served.listener(node).answers}


WRONG_KINDS = {
    "kill controllers": "for a controller: kill-controller",
    "kill broker-1 controller-100": "controller-100",
    "start brokers controllers": "for a controller: start-controller",
    "power-off controllers": "for a controller: kill-controller",
    "shut-down operator": "operator",
    "kill-controller broker-1": "a controller, not broker-1",
    "kill-controller controller-100 controller-101": "takes one node: give one command for each of controller-100",
    "break-disk broker-1 broker-2": "takes one node: give one command for each of broker-1, broker-2",
    "break-disk controller-100": "for a controller: break-controller-disk",
    "break-disk broker-1 log_dir=7": "log dir of broker-1",
    "break-disk brokers": "one node",
    "add-voter broker-1": "a controller",
}


@pytest.mark.parametrize("speed", [0.0, 1.0])
async def test_a_fault_of_the_wrong_kind_is_refused_and_nothing_happens(speed: float) -> None:
    async with ServedCluster(read(str(SCENARIO)), ServedClusterOptions(speed=speed)) as served:
        before = answering(served)
        for words, said in WRONG_KINDS.items():
            with pytest.raises(ControlError, match=said):
                happen(served, words)
            served.clock.step(5)
            assert answering(served) == before, words
        happen(served, "kill broker-1")
        assert before - answering(served) == {node for node in before if str(node) == "broker-1"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("set-config topic=orders name=min.insync.replicas value=banana", "Not a number of type INT"),
        ("set-config topic=orders name=min.insync.replicas value=0", "Value must be at least 1"),
        ("set-config topic=orders name=cleanup.policy value=compact,banana", "value banana.*compact, delete"),
        ("set-config topic=orders name=min.cleanable.dirty.ratio value=2", "2.0.*no more than 1"),
        ("set-config topic=orders name=no.such.thing value=1", "Unknown topic config name"),
        ("set-config topic=nope name=min.insync.replicas value=1", "does not exist"),
        ("set-config topic=orders name=unclean.recovery.strategy value=banana", "is none of"),
        ("set-config name=no.such.thing value=1", "Unknown topic config name"),
        ("set-config topic=orders name=retention.ms value=soon", "Not a number of type LONG"),
        ("create-topic orders replicas=[[1,2]]", "orders"),
    ],
)
async def test_what_the_controller_refuses_is_not_told_as_done(words: str, said: str) -> None:
    async with ServedCluster(read(str(SCENARIO)), ServedClusterOptions(speed=0)) as served:
        with pytest.raises(ControlError, match=said):
            happen(served, words)


async def test_a_topic_that_a_client_made_is_one_that_faults_can_happen_to() -> None:
    async with ServedCluster(read(str(SCENARIO)), ServedClusterOptions(speed=0)) as served:
        with pytest.raises(ControlError, match="an existing partition"):
            happen(served, "reassign new-0 replicas=[2,1]")
        happen(served, "create-topic new replicas=[[1,2]]")
        served.clock.step(1)
        happen(served, "reassign new-0 replicas=[2,1]")
        served.clock.step(5)
        assert served.world.image.partitions[TopicPartition("new", 0)].replicas == (2, 1)


def test_a_fault_that_there_is_not_is_named() -> None:
    with pytest.raises(ControlError, match=r"'explode' is not a fault: one of add-voter, .*start-controller"):
        read_fault(["explode", "broker-1"])


def test_a_fault_happens_now() -> None:
    with pytest.raises(ControlError, match="faults happen now"):
        read_fault(["kill", "broker-1", "at=5"])


async def test_a_configuration_that_can_be_is_made() -> None:
    async with ServedCluster(read(str(SCENARIO)), ServedClusterOptions(speed=0)) as served:
        happen(served, "set-config topic=orders name=min.insync.replicas value=1")
        happen(served, "set-config topic=orders name=retention.ms value=1000")
        happen(served, "set-config name=unclean.recovery.manager.enabled value=true")
        served.clock.step(1)
        assert served.world.image.rules.recovery_manager
        assert served.world.image.min_isr.topics["orders"] == 1
        assert "1000" in {value for held in served.inert_configs.values() for value in held.values()}


def test_a_value_that_stands_for_a_huge_one_is_refused() -> None:
    with pytest.raises(ControlError, match=r"nodes=.*not a value"):
        read_fault(["kill", "nodes=[&a broker-1, *a]"])
