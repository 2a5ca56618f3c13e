"""The requests of a broker to the active controller. Changes of the ISR go into AlterPartition requests, one in
flight (KIP-497, KIP-903).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from backends.simulator.broker.broker_state import BrokerState
from backends.simulator.config import Config
from backends.simulator.loop import TimerGroup
from backends.simulator.messages import AlterPartitions, AlterPartitionsReply, NotController
from backends.simulator.network import controller
from backends.simulator.partition_table import generation_of
from backends.simulator.rpc import RpcEndpoint
from recovery.controller.alter_partition import AlterPartition
from recovery.controller.controller_errors import ControllerRefusal
from recovery.controller.registration import Registration
from recovery.model import TopicPartition


class ControllerChannel:
    """Remembers the last known leader. Tries the next controller if one is silent or knows no leader."""

    def __init__(self, controllers: tuple[int, ...], endpoint: RpcEndpoint) -> None:
        self._controllers = controllers
        self._endpoint = endpoint
        self._guess = controllers[0]

    def ask(self, body: Any, timeout: int, then: Callable[[Any], None], channel: str = "") -> None:
        """Send once. ``then`` gets None if no active controller answered; the next request goes to another
        controller.
        """
        asked = self._guess

        def heard(reply: Any) -> None:
            if reply is None or isinstance(reply, NotController):
                self._turn(asked, reply)
                then(None)
            else:
                then(reply)

        self._endpoint.ask(controller(asked), body, timeout, heard, channel)

    def _turn(self, asked: int, reply: NotController | None) -> None:
        if asked != self._guess:
            return
        known = None if reply is None else reply.leader
        ids = self._controllers
        self._guess = (
            known if known is not None and known != asked else ids[(ids.index(asked) + 1) % len(ids)]
        )


ALTER_PARTITION = "alter-partition"
"""The channel of these requests: a connection of their own."""

Answered = Callable[[TopicPartition, AlterPartition, ControllerRefusal | None, Registration | None], None]


class AlterPartitionManager:
    """Collects the changes that partition leaders ask for and sends them together.

    ``answered`` is called once for each partition in a request.
    """

    def __init__(
        self,
        state: BrokerState,
        config: Config,
        timers: TimerGroup,
        channel: ControllerChannel,
        answered: Answered,
    ) -> None:
        self._state = state
        self._config = config
        self._timers = timers
        self._channel = channel
        self._answered = answered
        self._unsent: dict[TopicPartition, tuple[AlterPartition, int]] = {}
        self._in_flight: dict[TopicPartition, tuple[AlterPartition, int]] | None = None

    def ask(self, tp: TopicPartition, request: AlterPartition) -> None:
        self._unsent[tp] = request, generation_of(self._state.image, tp.topic)
        if self._in_flight is None:
            # Changes that are asked for at the same instant go into the same request.
            self._in_flight = {}
            self._timers.later(0, self._send)

    def _send(self) -> None:
        if not self._unsent:
            self._in_flight = None
            return
        self._in_flight, self._unsent = self._unsent, {}
        requests = tuple((tp, request) for tp, (request, _) in self._in_flight.items())
        generations = tuple(generation for _, generation in self._in_flight.values())
        body = AlterPartitions(self._state.id, self._state.epoch, requests, generations)
        timeout = self._config.request_timeout
        self._channel.ask(body, timeout, self._replied, ALTER_PARTITION)

    def _replied(self, reply: Any) -> None:
        asked = self._in_flight or {}
        backoff = self._config.alter_partition_backoff
        if not isinstance(reply, AlterPartitionsReply) or reply.refusal is not None:
            # No answer, or the controller does not know our registration yet: send the same changes again.
            self._unsent = {**asked, **self._unsent}
            self._timers.later(backoff, self._send)
            return
        for tp, refusal, partition in reply.answers:
            request, generation = asked[tp]
            if generation == generation_of(self._state.image, tp.topic):
                self._answered(tp, request, refusal, partition)
        self._send()
