from __future__ import annotations

from collections.abc import Callable
from typing import Any

from backends.simulator.loop import SECOND, Loop
from backends.simulator.network import OPERATOR, Network, NetworkConditions, NetworkNode, broker, controller
from backends.simulator.rpc import Answer, RpcEndpoint

ONE, TWO = broker(1), broker(2)


def _receiver(node: NetworkNode, arrived: list[tuple[str, Any]]) -> Callable[[NetworkNode, Any], None]:
    return lambda source, message: arrived.append((f"{source}>{node}", message))


def _network(
    seed: int = 1, weather: NetworkConditions | None = None
) -> tuple[Loop, Network, list[tuple[str, Any]]]:
    loop = Loop(seed)
    network = Network(loop, weather)
    arrived: list[tuple[str, Any]] = []
    for node in (ONE, TWO, controller(100), OPERATOR):
        network.attach(node, _receiver(node, arrived))
    return loop, network, arrived


def test_messages_between_two_nodes_keep_their_order() -> None:
    for seed in range(20):
        loop, network, arrived = _network(seed, NetworkConditions(latency=100, jitter=5000))
        for number in range(10):
            network.send(ONE, TWO, number)
        loop.run_for(SECOND)
        assert [message for _, message in arrived] == list(range(10))


def test_a_cut_loses_what_is_in_flight_and_heals() -> None:
    loop, network, arrived = _network()
    network.send(ONE, TWO, "in flight")
    network.cut([ONE], [TWO, OPERATOR])
    network.send(ONE, TWO, "cut off")
    network.send(TWO, ONE, "cut off too")
    network.send(ONE, controller(100), "elsewhere")
    loop.run_for(SECOND)
    assert arrived == [("broker-1>controller-100", "elsewhere")]
    assert not network.connected(ONE, OPERATOR)
    network.heal([ONE], [TWO, OPERATOR])
    network.send(ONE, TWO, "healed")
    loop.run_for(SECOND)
    assert arrived[-1] == ("broker-1>broker-2", "healed")


def test_a_one_way_cut_lets_the_other_direction_pass() -> None:
    loop, network, arrived = _network()
    network.cut([ONE], [TWO], one_way=True)
    network.send(ONE, TWO, "lost")
    network.send(TWO, ONE, "heard")
    loop.run_for(SECOND)
    assert arrived == [("broker-2>broker-1", "heard")]


def test_what_was_sent_before_a_restart_never_reaches_the_new_process() -> None:
    loop, network, arrived = _network()
    network.send(ONE, TWO, "for the old process")
    network.detach(TWO)
    network.attach(TWO, lambda source, message: arrived.append((str(source), message)))
    loop.run_for(SECOND)
    assert arrived == []


def test_loss_is_drawn_from_the_seed() -> None:
    def run(seed: int) -> list[tuple[str, Any]]:
        loop, network, arrived = _network(seed, NetworkConditions(loss=0.5))
        for number in range(100):
            network.send(ONE, TWO, number)
        loop.run_for(SECOND)
        return arrived

    assert run(1) == run(1)
    assert run(1) != run(2)
    assert 20 < len(run(1)) < 80


def test_a_delayed_link_is_late_and_in_order() -> None:
    loop, network, arrived = _network()
    network.delay(ONE, TWO, SECOND)
    network.send(ONE, TWO, "slow")
    network.delay(ONE, TWO, 0)
    network.send(ONE, TWO, "behind it")
    loop.run_until(SECOND // 2)
    assert arrived == []
    loop.run_until(2 * SECOND)
    assert [message for _, message in arrived] == ["slow", "behind it"]


def test_an_answer_comes_once_and_silence_ends_at_the_deadline() -> None:
    loop = Loop(1)
    network = Network(loop)

    def echo(_source: NetworkNode, body: Any, answer: Answer) -> None:
        if body != "ignore":
            answer(f"{body}!")

    asker = RpcEndpoint(loop, network, ONE, echo)
    other = RpcEndpoint(loop, network, TWO, echo)
    heard: list[Any] = []
    asker.ask(TWO, "hello", SECOND, heard.append)
    asker.ask(TWO, "ignore", SECOND, heard.append)
    loop.run_for(SECOND // 2)
    assert heard == ["hello!"]
    loop.run_for(SECOND)
    assert heard == ["hello!", None]
    other.close()
    other.close()
    asker.ask(TWO, "anybody?", SECOND, heard.append)
    asker.close()
    loop.run_for(2 * SECOND)
    assert heard == ["hello!", None], "a closed endpoint's callers hear nothing any more"
