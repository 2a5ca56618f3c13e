"""One run of a controller process: serves brokers while it leads, and names the leader while it does not."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

from backends.simulator.context import Context
from backends.simulator.controller.active_controller import ActiveController
from backends.simulator.loop import Timer
from backends.simulator.messages import MetadataBatch, MetadataFetch, MetadataUpdate, NotController
from backends.simulator.network import NetworkNode, NetworkRole
from backends.simulator.network import controller as node
from backends.simulator.quorum.quorum_log import CommittedRead
from backends.simulator.rpc import Answer, RpcEndpoint
from recovery.membership.voters import ReplicaKey

BATCH = 64


class ControllerProcess:
    """One run of a controller, from its start until ``stop``."""

    def __init__(self, context: Context, controller: int, halted: Callable[[int], None]) -> None:
        self.id = controller
        self.node = node(controller)
        self._context = context
        self._halted = halted
        self.active: ActiveController | None = None
        self._waiting: dict[int, tuple[MetadataFetch, Answer, Timer]] = {}
        self.endpoint = RpcEndpoint(context.loop, context.network, self.node, self._handle)
        context.history.add(self.node, "started")
        context.metadata.start(controller, self.endpoint, self)

    def stop(self) -> None:
        """The process has ended, by SIGKILL or a power loss."""
        self._context.history.add(self.node, "stopped")
        self._step_down()
        self.endpoint.close()
        self._context.metadata.stop(self.id)

    def lead(self, epoch: int, last: Any | None) -> None:
        assert isinstance(last, MetadataUpdate)
        self._context.history.add(self.node, f"active controller, epoch {epoch}")
        self.active = ActiveController(self._context, self.endpoint, last, self._committed)

    def resign(self) -> None:
        self._context.history.add(self.node, "no longer the active controller")
        self._step_down()

    def halt(self) -> None:
        self._halted(self.id)

    def _step_down(self) -> None:
        if self.active is not None:
            self.active.close()
            self.active = None
        for _, _, timer in self._waiting.values():
            timer.cancel()
        self._waiting.clear()

    def _handle(self, source: NetworkNode, body: Any, answer: Answer) -> None:
        if self._context.metadata.receive(self.id, body, answer):
            return
        if self.active is None:
            answer(NotController(self._context.metadata.leader_known_to(self.id)))
        elif isinstance(body, MetadataFetch):
            self._metadata(body, answer)
        elif source.role is NetworkRole.BROKER and not self._context.metadata.is_voter(self.id):
            return  # Kafka's brokers look for the address of their controller among the voters, and find none
        else:
            self.active.handle(body, answer)

    def _metadata(self, fetch: MetadataFetch, answer: Answer) -> None:
        """Answer at once if there is news; otherwise when there is, or after the wait."""
        observer = ReplicaKey(fetch.broker, fetch.directory)
        self._context.metadata.observed(self.id, observer, fetch.offset)
        read = self._context.metadata.committed(self.id, fetch.offset, BATCH)
        if read.entries:
            answer(_batch(read))
            return
        timer = self._context.loop.call_later(
            self._context.config.metadata_fetch_wait_max, self._release, fetch.broker
        )
        previous = self._waiting.get(fetch.broker)
        if previous is not None:
            previous[2].cancel()
        self._waiting[fetch.broker] = (fetch, answer, timer)

    def _release(self, broker: int) -> None:
        fetch, answer, timer = self._waiting.pop(broker)
        timer.cancel()
        answer(_batch(self._context.metadata.committed(self.id, fetch.offset, BATCH)))

    def _committed(self) -> None:
        for broker in list(self._waiting):
            self._release(broker)


def _batch(read: CommittedRead) -> MetadataBatch:
    """The committed updates as one batch; without an image if no update is for brokers."""
    if not read.entries:
        return MetadataBatch(read.reached, None, (), ())
    newest: MetadataUpdate = read.entries[-1].payload
    if len(read.entries) == 1 and read.whole:
        return MetadataBatch(
            read.reached,
            newest.image,
            newest.touched,
            newest.brokers,
            newest.placed,
            newest.configs,
            complete=read.complete,
        )
    updates: list[MetadataUpdate] = [entry.payload for entry in read.entries]
    brokers = tuple(dict.fromkeys(broker for update in updates for broker in update.brokers))
    changed = None
    if read.whole:
        changed = tuple(dict.fromkeys(chain.from_iterable(update.touched for update in updates)))
    placed = frozenset(chain.from_iterable(update.placed for update in updates))
    # What is before a snapshot is known by its state alone.
    snapshot = None if read.whole else updates[0].image
    since = updates if read.whole else updates[1:]
    configs = tuple(chain.from_iterable(update.configs for update in since))
    return MetadataBatch(
        read.reached, newest.image, changed, brokers, placed, configs, snapshot, complete=read.complete
    )
