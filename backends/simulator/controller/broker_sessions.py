"""Broker registrations and heartbeats: fencing, unfencing, controlled shutdown (KIP-631, KIP-966)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.simulator.loop import Loop, Timer
from backends.simulator.messages import (
    Done,
    Heartbeat,
    HeartbeatReply,
    NotController,
    RegisterBroker,
    Registered,
)
from backends.simulator.rpc import Answer
from recovery.controller.alter_partition import check_sender
from recovery.controller.broker_changes import (
    begin_controlled_shutdown,
    directories_offline,
    fence,
    register,
    unfence,
)
from recovery.controller.cluster_image import Effect
from recovery.controller.controller_errors import ControllerError, ControllerRefusal

if TYPE_CHECKING:
    from backends.simulator.controller.active_controller import ActiveController


class BrokerSessions:
    """The last heartbeat of each broker. A broker that is silent for the session timeout is fenced."""

    def __init__(self, metadata: ActiveController, loop: Loop, timeout: int) -> None:
        self._metadata = metadata
        self._loop = loop
        self._timeout = timeout
        self._heard: dict[int, int] = {}
        self._timers: dict[int, Timer] = {}
        # A new controller has had no heartbeat yet: each broker gets a full session.
        for broker, registered in metadata.image.brokers.items():
            if not registered.fenced:
                self._touch(broker)

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _touch(self, broker: int) -> None:
        self._heard[broker] = self._loop.now
        if broker not in self._timers:
            self._timers[broker] = self._loop.call_later(self._timeout, self._check, broker)

    def _check(self, broker: int) -> None:
        due = self._heard[broker] + self._timeout
        if due > self._loop.now:
            self._timers[broker] = self._loop.call_at(due, self._check, broker)
            return
        del self._timers[broker]
        registered = self._metadata.image.brokers.get(broker)
        if registered is not None and not registered.fenced:
            effect = fence(self._metadata.image, broker)
            self._metadata.write(effect, f"broker {broker} fenced: session expired", brokers=(broker,))

    def register(self, body: RegisterBroker, answer: Answer) -> None:
        """Register a new incarnation. It is refused while the session of the old one lasts, unless the old one
        was shutting down.
        """
        metadata = self._metadata
        known = metadata.image.brokers.get(body.broker)
        again = known is not None and known.incarnation == body.incarnation
        if known is not None and known.active and not again and body.broker in self._timers:
            last_heartbeat = self._heard[body.broker]
            if last_heartbeat + self._timeout > self._loop.now:
                reason = f"broker {body.broker} is registered and was heard"
                answer(Done(ControllerRefusal(ControllerError.INVALID_REQUEST, reason)))
                return
        if known is not None and again:
            epoch, how = known.epoch, "again"
        else:
            epoch = metadata.next_broker_epoch()
            clean = known is None or known.epoch == body.previous_epoch
            how = "cleanly" if clean else "after an unclean shutdown"
        effect = register(
            metadata.image,
            body.broker,
            epoch,
            body.previous_epoch,
            body.directories,
            incarnation=body.incarnation,
        )
        why = f"broker {body.broker} registered {how}, epoch {epoch}"
        metadata.write(
            effect,
            why,
            then=lambda: answer(Registered(epoch)),
            otherwise=lambda: answer(NotController(None)),
            brokers=(body.broker,),
        )

    def heartbeat(self, body: Heartbeat, answer: Answer) -> None:
        """Unfence a caught-up broker, start a controlled shutdown, take failed log dirs offline."""
        metadata = self._metadata
        refusal = check_sender(metadata.image.brokers, body.broker, body.epoch)
        if refusal is not None:
            answer(HeartbeatReply(refusal, fenced=True, may_shut_down=False))
            return
        registered = metadata.image.brokers[body.broker]
        self._directories(body)
        if body.want_shut_down:
            self._shut_down(body, answer)
            return
        self._touch(body.broker)
        if registered.fenced and body.caught_up:
            effect = unfence(metadata.image, body.broker)
            self._write(effect, body.broker, "unfenced", answer, HeartbeatReply(None, False, False))
            return
        answer(HeartbeatReply(None, registered.fenced, False))

    def _directories(self, body: Heartbeat) -> None:
        metadata = self._metadata
        online = metadata.image.brokers[body.broker].directories
        failed = [directory for directory in body.offline_directories if directory in online]
        if failed:
            effect = directories_offline(metadata.image, body.broker, failed)
            why = f"broker {body.broker} reports {len(failed)} failed log dir(s)"
            metadata.write(effect, why, brokers=(body.broker,))

    def _shut_down(self, body: Heartbeat, answer: Answer) -> None:
        """The leaderships move first; when that is written the broker may stop, and is fenced."""
        metadata = self._metadata
        registered = metadata.image.brokers[body.broker]
        going = HeartbeatReply(None, registered.fenced, True)
        if registered.fenced:
            answer(going)
        elif registered.in_controlled_shutdown:
            self._write(fence(metadata.image, body.broker), body.broker, "fenced: shut down", answer, going)
        else:
            self._touch(body.broker)
            effect = begin_controlled_shutdown(metadata.image, body.broker)
            waits = HeartbeatReply(None, False, False)
            self._write(effect, body.broker, "in controlled shutdown", answer, waits)

    def _write(self, effect: Effect, broker: int, what: str, answer: Answer, reply: HeartbeatReply) -> None:
        self._metadata.write(
            effect,
            f"broker {broker} {what}",
            then=lambda: answer(reply),
            otherwise=lambda: answer(NotController(None)),
            brokers=(broker,),
        )
