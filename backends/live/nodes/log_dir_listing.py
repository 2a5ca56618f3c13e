"""Log dirs of all brokers, and the list of all partitions compared with them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from backends.base.answers import LogDir, Partitions
from backends.base.errors import BackendError
from backends.base.hidden_topics import unlisted
from backends.live.calls.describe_acls import has_no_authorizer
from backends.live.calls.describe_log_dirs import BrokerLogDirs, ReplicaSizes, replicas_by_dir
from backends.live.calls.describe_partitions import describe_partitions, topics_only_in_log_dirs, with_hidden
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import BrokerError, as_unknown
from backends.live.nodes.brokers import BrokerFleet
from recovery.model import Broker, Unknown, Why

LISTING_TIMEOUT = 2.0
"""Seconds that the list of all partitions waits for log dirs; a broker that is silent is left out of it."""

FRESH_FOR = 15.0
"""Seconds for which a survey does without asking the same connection for its log dirs again."""


class _LogDirAnswer(NamedTuple):
    connection: int
    at: float
    dirs: BrokerLogDirs


class LogDirListing:
    """Asks for log dirs; keeps the newest answer of each broker for the sizes in a survey."""

    def __init__(self, fleet: BrokerFleet) -> None:
        self._fleet = fleet
        self._newest: dict[int, _LogDirAnswer] = {}
        self._asking: dict[int, asyncio.Task[tuple[LogDir, ...] | Unknown]] = {}
        self._open_to_all: bool | None = None

    async def everything(self) -> Partitions:
        """All partitions that the caller may see, with the topics that only the brokers' log dirs show."""
        reported, dirs, _ = await asyncio.gather(
            self._fleet.any(describe_partitions),
            self._of_brokers_that_should_be_up(),
            self._see_whether_open_to_all(any(broker.fenced for broker in self._fleet.brokers)),
        )
        found = reported.value
        unseen = topics_only_in_log_dirs(found, dirs)
        if unseen:
            found = (await self._fleet.any(lambda conn: with_hidden(conn, found, unseen))).value
        return replace(found, not_compared=_refused(dirs) or await self._unlisted(found, dirs))

    async def _unlisted(
        self, found: Partitions, dirs: Mapping[int, tuple[LogDir, ...] | Unknown]
    ) -> Unknown | None:
        """Why topics may be hidden on brokers that listed no log dirs; None: every broker did, or none of them
        checks permissions.
        """
        unread = without_log_dirs(found, self._fleet.brokers, dirs)
        if not unread:
            return None
        await self._see_whether_open_to_all(True)
        return None if self._open_to_all else unlisted(unread)

    async def _see_whether_open_to_all(self, wanted: bool) -> None:
        """Asks once whether anything checks permissions, where that is ``wanted``."""
        if wanted and self._open_to_all is None:
            with suppress(BackendError):
                self._open_to_all = (await self._fleet.any(has_no_authorizer)).value

    async def _of_brokers_that_should_be_up(self) -> Mapping[int, tuple[LogDir, ...] | Unknown]:
        brokers = [broker.id for broker in self._fleet.brokers if not broker.fenced]
        tasks = {broker: asyncio.ensure_future(self._ask(broker)) for broker in brokers}
        if not tasks:
            return {}
        done, late = await asyncio.wait(tasks.values(), timeout=LISTING_TIMEOUT)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        return {broker: task.result() for broker, task in tasks.items() if task in done}

    async def log_dirs(self, brokers: Sequence[int] | None) -> Mapping[int, tuple[LogDir, ...] | Unknown]:
        """Of the brokers named, or of all that are listed."""
        wanted = [broker.id for broker in self._fleet.brokers] if brokers is None else list(brokers)
        answers = await asyncio.gather(*(self._ask(broker) for broker in wanted))
        return dict(zip(wanted, answers, strict=True))

    async def _ask(self, broker: int) -> tuple[LogDir, ...] | Unknown:
        """The log dirs of that broker; callers that want them at the same time share one request."""
        task = self._asking.get(broker)
        if task is None:
            task = self._asking[broker] = asyncio.ensure_future(self._describe(broker))
            task.add_done_callback(lambda _: self._asking.pop(broker, None))
        return await asyncio.shield(task)

    async def _describe(self, broker: int) -> tuple[LogDir, ...] | Unknown:
        try:
            connection = await self._fleet.connection(broker)
            found = await replicas_by_dir(connection)
        except BackendError as error:
            return as_unknown(error)
        self._keep(broker, connection, found)
        return found.dirs

    def _keep(self, broker: int, connection: BrokerConnection, found: BrokerLogDirs) -> None:
        now = asyncio.get_running_loop().time()
        self._newest[broker] = _LogDirAnswer(connection.identity, now, found)

    async def note_dirs(self, broker: int, connection: BrokerConnection) -> None:
        """Asks for the log dirs during a survey, unless this connection has just reported them.

        What is not allowed or not offered costs the sizes only. Raises BrokerError.
        """
        newest = self._newest.get(broker)
        now = asyncio.get_running_loop().time()
        if newest is not None and newest.connection == connection.identity and now - newest.at < FRESH_FOR:
            return
        try:
            self._keep(broker, connection, await replicas_by_dir(connection))
        except BrokerError:
            raise
        except BackendError:
            self._newest.pop(broker, None)

    def sizes(self) -> Mapping[int, ReplicaSizes]:
        """By broker the log dirs and sizes; a replica that is being moved counts where it is."""
        return {broker: reported.dirs.sizes for broker, reported in self._newest.items()}


def without_log_dirs(
    found: Partitions, brokers: Sequence[Broker], dirs: Mapping[int, tuple[LogDir, ...] | Unknown]
) -> frozenset[int]:
    """The brokers that did not list their log dirs. Releases before 4.0 list no fenced broker: there they are those
    that have a replica and are not listed.
    """
    unread = {one.id for one in brokers if isinstance(dirs.get(one.id), Unknown | None)}
    if any(one.fenced is None for one in brokers):
        listed = {one.id for one in brokers}
        unread |= {broker for state in found.states for broker in state.replicas if broker not in listed}
    return frozenset(unread)


def _refused(dirs: Mapping[int, tuple[LogDir, ...] | Unknown]) -> Unknown | None:
    reported = [answer for answer in dirs.values() if isinstance(answer, Unknown)]
    refused = next((answer for answer in reported if answer.why is Why.NOT_ALLOWED), None)
    if refused is not None or len(reported) < len(dirs):
        return refused
    return reported[0] if reported else Unknown(Why.NOT_ANSWERED, "no broker told of its log dirs")
