"""The requests of a broker to the active controller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from backends.simulator.messages import NotController
from backends.simulator.network import controller
from backends.simulator.rpc import RpcEndpoint


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
