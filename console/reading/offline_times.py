"""Since when partitions are offline, exactly: from the cluster's metadata log, where that can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from backends.base.metadata_log import MetadataLogSource
from backends.base.protocol import Backend
from recovery.acknowledged.disks_to_read import away
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.log_changes import PartitionSubject
from recovery.metadata_log.offline_since import fenced_since_ms, offline_already_ms, offline_since_ms
from recovery.model import PartitionState, TopicPartition, Unknown


class OfflineTimes(NamedTuple):
    """``since`` in seconds of the clock that was handed in, for the partitions that the log tells of. ``problem``
    is why it does not tell of all, "" where it does. ``already``: of others, when they were offline already.
    """

    since: Mapping[TopicPartition, float]
    problem: str = ""
    already: Mapping[TopicPartition, float] = MappingProxyType({})


AGAIN_SECONDS = 30.0


class _Refusal(NamedTuple):
    """Nothing of the log could be read when these partitions were offline; not asked again before ``until``."""

    wanted: frozenset[TopicPartition]
    problem: str
    until: float


class OfflineTimesReader:
    """Reads one cluster's log, as far as is needed and each time further. A log of which nothing could be read is
    asked for again :data:`AGAIN_SECONDS` later, or once other partitions are offline.
    """

    def __init__(self, source: MetadataLogSource) -> None:
        self.source = source
        self._refused: _Refusal | None = None
        self._moments: dict[tuple[TopicPartition, int], float] = {}
        self._fenced: dict[tuple[int, int], float] = {}

    async def read(self, backend: Backend, states: Iterable[PartitionState], now: float) -> OfflineTimes:
        """For those of ``states`` that are offline; ``now`` in seconds since 1970. The log is read for partitions
        with replicas that are away too, which say nothing of times. A log that cannot be read is no error here.
        """
        needed = [state for state in states if state.offline or away(state)]
        offline = [state for state in needed if state.offline]
        wanted = frozenset(state.tp for state in needed)
        if not wanted:
            return OfflineTimes({})
        refused = self._refused
        still = refused is not None and wanted <= refused.wanted and now < refused.until
        if refused is not None and still and isinstance(self.source.history, Unknown):
            return OfflineTimes({}, refused.problem)
        unread = await self.source.read(backend)
        problem = "" if unread is None else unread.detail
        found = self.times_from_history(backend, self.source.history, offline, now)
        if problem and isinstance(self.source.history, Unknown):
            self._refused = _Refusal(wanted, problem, now + AGAIN_SECONDS)
        if not problem and len(found.since) < len(offline):
            problem = "the metadata log does not go back that far"
        return found._replace(problem=problem)

    def fenced_since(self, backend: Backend, brokers: Iterable[int], now: float) -> dict[int, float]:
        """When each of the fenced ``brokers`` was fenced, by what was read of the log; same unit as ``now``."""
        history = self.source.history
        if isinstance(history, Unknown):
            return {}
        shift, found = _shift(backend, now), {}
        for broker in brokers:
            since = fenced_since_ms(history, broker)
            if since is not None:
                found[broker] = self._fenced.setdefault((broker, since), since / 1000 + shift)
        return found

    def times_from_history(
        self,
        backend: Backend,
        history: MetadataHistory | Unknown,
        offline: Sequence[PartitionState],
        now: float,
    ) -> OfflineTimes:
        """As far as ``history`` tells; nothing is read, and ``problem`` is left empty."""
        since = self.from_history(backend, history, offline, now)
        others = [state for state in offline if state.tp not in since]
        return OfflineTimes(
            since, already=self._moments_of(backend, history, others, now, offline_already_ms)
        )

    def from_history(
        self,
        backend: Backend,
        history: MetadataHistory | Unknown,
        offline: Iterable[PartitionState],
        now: float,
    ) -> dict[TopicPartition, float]:
        """Since when each of these partitions is offline, as far as ``history`` tells; nothing is read."""
        return self._moments_of(backend, history, offline, now, offline_since_ms)

    def _moments_of(
        self,
        backend: Backend,
        history: MetadataHistory | Unknown,
        offline: Iterable[PartitionState],
        now: float,
        moment_in: Callable[[MetadataHistory, PartitionSubject, int], int | None],
    ) -> dict[TopicPartition, float]:
        if isinstance(history, Unknown):
            return {}
        shift, found = _shift(backend, now), {}
        alike: dict[tuple[int, int], int | None] = {}
        for state in offline:
            subject = PartitionSubject(state.topic_id, state.partition)
            key = history.likeness(subject), state.leader_epoch
            if key not in alike:
                alike[key] = moment_in(history, subject, state.leader_epoch)
            since = alike[key]
            if since is not None:
                found[state.tp] = self._moments.setdefault((state.tp, since), since / 1000 + shift)
        return found


def _shift(backend: Backend, now: float) -> float:
    """From the log's seconds to those of ``now``. Virtual time does not run with the clock: a moment is converted
    once, so that it does not waver.
    """
    virtual = backend.virtual_time
    return 0.0 if virtual is None else now - virtual.virtual_now / 1e6
