"""A cluster that can be read but not changed: code that has one of these objects cannot send a change. Only
the read calls of the protocols are passed on. A change is refused here, before anything is recorded or sent.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, TypeVar

from backends.base.errors import Refused
from backends.base.membership import ChangeAnswer, Membership
from backends.base.protocol import Backend

if TYPE_CHECKING:
    from backends.base.consumer_witness import ConsumerWitness
    from backends.base.protocol import Recorder, VirtualTime
    from recovery.membership.quorum import MembershipRules

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

READ_ONLY = "the cluster is only read here; nothing was sent"


def refuse_change() -> NoReturn:
    """Raises Refused."""
    raise Refused(READ_ONLY)


class ReadOnlyMembership:
    """A quorum that can be described; implements :class:`backends.base.membership.Membership`.

    ``refuse`` is called for each change; the change is passed on unless ``refuse`` raises.
    """

    def __init__(self, membership: Membership, refuse: Callable[[], None] = refuse_change) -> None:
        self._membership = membership
        self._refuse = refuse

    @staticmethod
    def _read(
        call: Callable[Concatenate[Membership, P], R],
    ) -> Callable[Concatenate[ReadOnlyMembership, P], R]:
        def passed_on(self: ReadOnlyMembership, /, *given: P.args, **named: P.kwargs) -> R:
            result: R = getattr(self._membership, call.__name__)(*given, **named)
            return result

        return passed_on

    @staticmethod
    def _change(
        call: Callable[Concatenate[Membership, P], Coroutine[Any, Any, T]],
    ) -> Callable[Concatenate[ReadOnlyMembership, P], Coroutine[Any, Any, T]]:
        async def sent(self: ReadOnlyMembership, /, *given: P.args, **named: P.kwargs) -> T:
            self._refuse()
            result: T = await getattr(self._membership, call.__name__)(*given, **named)
            return result

        return sent

    @property
    def title(self) -> str:
        return self._membership.title

    @property
    def simulated(self) -> bool:
        return self._membership.simulated

    @property
    def asks_brokers(self) -> bool:
        return self._membership.asks_brokers

    @property
    def rules(self) -> MembershipRules:
        return self._membership.rules

    open = _read(Membership.open)
    close = _read(Membership.close)
    pause = _read(Membership.pause)
    describe = _read(Membership.describe)
    controllers = _read(Membership.controllers)
    every_address = _read(Membership.every_address)
    probe = _read(Membership.probe)
    nodes = _read(Membership.nodes)
    metadata_log = _read(Membership.metadata_log)
    metadata_log_bytes = _read(Membership.metadata_log_bytes)
    add_voter = _change(Membership.add_voter)
    remove_voter = _change(Membership.remove_voter)
    unregister_controller = _change(Membership.unregister_controller)

    async def upgrade_feature(
        self, feature: str, level: int, recorder: Recorder | None, *, dry_run: bool
    ) -> ChangeAnswer:
        """A dry run changes nothing: the controller validates it only."""
        if not dry_run:
            self._refuse()
        return await self._membership.upgrade_feature(feature, level, recorder, dry_run=dry_run)


class ReadOnlyBackend:
    """A cluster that can be read; implements :class:`backends.base.protocol.Backend`. ``membership`` exists
    if the adapter has one.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @staticmethod
    def _read(call: Callable[Concatenate[Backend, P], R]) -> Callable[Concatenate[ReadOnlyBackend, P], R]:
        def passed_on(self: ReadOnlyBackend, /, *given: P.args, **named: P.kwargs) -> R:
            result: R = getattr(self._backend, call.__name__)(*given, **named)
            return result

        return passed_on

    @staticmethod
    def _change(_call: Callable[Concatenate[Backend, P], R]) -> Callable[Concatenate[ReadOnlyBackend, P], R]:
        """Raises Refused when it is called, before anything could be awaited."""

        def refused(self: ReadOnlyBackend, /, *given: P.args, **named: P.kwargs) -> R:  # noqa: ARG001
            refuse_change()

        return refused

    @property
    def title(self) -> str:
        return self._backend.title

    @property
    def simulated(self) -> bool:
        return self._backend.simulated

    @property
    def membership(self) -> ReadOnlyMembership:
        """Raises AttributeError if the adapter has no quorum."""
        membership: Membership | None = getattr(self._backend, "membership", None)
        if membership is None:
            raise AttributeError("membership")
        return ReadOnlyMembership(membership)

    def consumer_witness(self) -> ConsumerWitness | None:
        """None where the cluster has no listener that a consumer could read from."""
        witness: Callable[[], ConsumerWitness] | None = getattr(self._backend, "consumer_witness", None)
        return None if witness is None else witness()

    @property
    def virtual_time(self) -> VirtualTime | None:
        return self._backend.virtual_time

    open = _read(Backend.open)
    close = _read(Backend.close)
    cluster = _read(Backend.cluster)
    capabilities = _read(Backend.capabilities)
    check = _read(Backend.check)
    partitions = _read(Backend.partitions)
    topic_configs = _read(Backend.topic_configs)
    file_answers = _read(Backend.file_answers)
    survey = _read(Backend.survey)
    record_times = _read(Backend.record_times)
    read_batches = _read(Backend.read_batches)
    log_dirs = _read(Backend.log_dirs)
    quorum = _read(Backend.quorum)
    reassignments = _read(Backend.reassignments)
    consumer_groups = _read(Backend.consumer_groups)
    transactions = _read(Backend.transactions)
    throttle_reader = _read(Backend.throttle_reader)
    elect = _change(Backend.elect)
    designate = _change(Backend.designate)
    revert_orders = _change(Backend.revert_orders)
    record_writer = _change(Backend.record_writer)
    offset_writer = _change(Backend.offset_writer)
    marker_writer = _change(Backend.marker_writer)
    replica_mover = _change(Backend.replica_mover)
