"""Takes the snapshots of many clusters in one process: each is read by itself, and all are written together.

Each interval has one commit for the rows of the partitions and one for the observations, however many clusters
there are, so that the tables' logs and the number of their files do not grow with the fleet.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from backends.base.protocol import Backend
from console.jobs.pipeline.snapshot_series import OtherCluster, Series, SnapshotSettings
from pipeline.errors import PipelineError
from pipeline.snapshot.catalog import RecordedKeys
from pipeline.snapshot.observation import Observation, SnapshotKind
from pipeline.snapshot.snapshot_writer import TakenSnapshot, append_snapshots
from pipeline.storage import StoragePath

AT_ONCE = 16
"""Clusters that are read at once: more would take each other's time on one core."""

WAITED_FOR = 0.5
"""Of the interval: by then the snapshots that are read are written. A cluster that is still being read is in a
later commit.
"""


@dataclass(frozen=True, slots=True)
class FleetRound:
    """What one interval brought: the ``written`` observations, failed ones among them, the names of clusters that
    are ``late``, and why snapshots were not written (``problem``), "" where they were.
    """

    written: tuple[Observation, ...]
    late: tuple[str, ...]
    problem: str = ""

    @property
    def failed(self) -> list[Observation]:
        """Of clusters that could not be read."""
        return [one for one in self.written if one.kind is SnapshotKind.FAILED]

    @property
    def taken(self) -> list[Observation]:
        """The snapshots."""
        return [one for one in self.written if one.kind is not SnapshotKind.FAILED]


class FleetKeys:
    """The observations that are there: one look at the table's log for a round."""

    def __init__(self) -> None:
        self._found: RecordedKeys | None = None
        self._old = True

    def __call__(self, root: StoragePath) -> RecordedKeys:
        if self._found is None or self._old:
            self._found, self._old = RecordedKeys.listed(root, self._found), False
        return self._found

    def forget(self) -> None:
        """The next look is a new one."""
        self._old = True


class Fleet:
    """The series of several clusters, by their names. ``say`` tells what concerns one cluster for good."""

    def __init__(
        self,
        backends: Sequence[tuple[str, Backend]],
        settings: Callable[[str, Callable[[StoragePath], RecordedKeys]], SnapshotSettings],
        root: StoragePath,
        say: Callable[[str], None],
    ) -> None:
        self._root = root
        self._say = say
        self._keys = FleetKeys()
        self._backends = dict(backends)
        self._series = {name: Series(one, settings(name, self._keys)) for name, one in backends}
        self._reading: dict[str, asyncio.Task[TakenSnapshot]] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)

    @property
    def names(self) -> list[str]:
        """The clusters that are read."""
        return list(self._series)

    @property
    def needs_full(self) -> bool:
        """Whether the next snapshot of a cluster that was read before has to be a full one."""
        return any(one.needs_full for one in self._series.values() if one.began_series)

    async def round(self, seconds: float | None) -> FleetRound:
        """Reads every cluster that is not being read still, and writes what is there after at most ``seconds``;
        None: when every cluster was read.
        """
        self._keys.forget()
        for name, series in self._series.items():
            if name not in self._reading:
                self._reading[name] = asyncio.create_task(self._read(series))
        await asyncio.wait(self._reading.values(), timeout=seconds)
        done = {name: task for name, task in self._reading.items() if task.done()}
        for name in done:
            del self._reading[name]
        snapshots = self._only_one_of_each(self._results(done))
        problem = await self._write(snapshots)
        written = () if problem else tuple(one.observation for one in snapshots.values())
        return FleetRound(written, tuple(self._reading), problem)

    async def close(self) -> None:
        """Ends what is being read, and every connection."""
        for task in self._reading.values():
            task.cancel()
        await asyncio.gather(*self._reading.values(), return_exceptions=True)
        await asyncio.gather(*(one.close() for one in self._backends.values()), return_exceptions=True)

    async def _read(self, series: Series) -> TakenSnapshot:
        async with self._turns:
            return await series.read()

    def _results(self, done: dict[str, asyncio.Task[TakenSnapshot]]) -> dict[str, TakenSnapshot]:
        found: dict[str, TakenSnapshot] = {}
        for name, task in done.items():
            try:
                found[name] = task.result()
            except OtherCluster as error:
                self._leave_out(name, str(error))
            except PipelineError:
                # Not even its failure can be recorded now; the next snapshot counts it.
                self._series[name].not_written()
        return found

    def _only_one_of_each(self, found: dict[str, TakenSnapshot]) -> dict[str, TakenSnapshot]:
        """Without those of a cluster that another name has too."""
        first: dict[str, str] = {}
        for name, snapshot in found.items():
            if snapshot.observation.kind is SnapshotKind.FAILED:
                continue
            other = first.setdefault(snapshot.observation.cluster_id, name)
            if other != name:
                self._leave_out(name, f"it is the same cluster as {other}")
        return {name: snapshot for name, snapshot in found.items() if name in self._series}

    def _leave_out(self, name: str, why: str) -> None:
        del self._series[name]
        self._say(f"{name} is left out from now on: {why}")

    async def _write(self, snapshots: dict[str, TakenSnapshot]) -> str:
        """Why they could not be written; "": they were."""
        with contextlib.ExitStack() as files:
            for snapshot in snapshots.values():
                files.enter_context(snapshot)
            try:
                await asyncio.to_thread(append_snapshots, self._root, list(snapshots.values()))
            except PipelineError as error:
                for name in snapshots:
                    self._series[name].not_written()
                return str(error)
        for name, snapshot in snapshots.items():
            self._series[name].wrote(snapshot)
        return ""


def allow_open_files() -> None:
    """Raises the process's limit of open files as far as it may: each broker of each cluster is a connection."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
