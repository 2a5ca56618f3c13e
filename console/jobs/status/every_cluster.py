"""``ktriage status --all``: every profile's cluster at once, one row each, the worst first."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from backends.base.errors import BackendError
from backends.base.protocol import Backend
from backends.base.read_only import ReadOnlyBackend
from console.errors import ConsoleError, InputError, Status
from console.jobs.status.overview_report import overview_counts
from console.output.json_document import document
from console.paths import use_state_dir_in_task
from console.reading.cluster_reading import ClusterReading, not_answered
from console.reading.read_cluster import read_cluster
from console.target import Target
from recovery.wording.cluster_health_text import health_line
from recovery.wording.quantity_text import counted, printable
from widgets.fields import Field, json_row, text_rows

AT_ONCE = 16
"""Clusters that are read at the same time."""


@dataclass(frozen=True, slots=True)
class ProfileStatus:
    """A profile, and its cluster as it was read; or why it was not (one line)."""

    name: str
    reading: ClusterReading | None
    problem: str = ""

    @property
    def counts(self) -> Mapping[str, int]:
        return {} if self.reading is None else overview_counts(self.reading)

    @property
    def unknown(self) -> tuple[str, ...]:
        """What should have been answered and was not."""
        return () if self.reading is None else not_answered(self.reading)

    @property
    def well(self) -> bool:
        return self.reading is not None and self.reading.health.well and not self.unknown

    @property
    def rank(self) -> tuple[int, int, str]:
        """The worst first: what cannot be written, what was not read, what is wrong, what is well."""
        if self.reading is None:
            return 1, 0, self.name
        urgent = self.reading.health.urgent
        return 0 if urgent else 3 if self.well else 2, -(self.counts["offline"]), self.name


def state_line(row: ProfileStatus) -> str:
    """The head of the cluster's own report, or why there is none."""
    if row.reading is None:
        return f"not read: {printable(row.problem)}"
    return health_line(row.reading.health)


def _count(name: str, title: str) -> Field[ProfileStatus]:
    """The count; "?" where the cluster was not read."""
    return Field(
        name,
        title,
        lambda row: row.counts.get(name),
        lambda row: f"{row.counts[name]:,}" if row.counts else "?",
        right=True,
    )


EVERY_CLUSTER: tuple[Field[ProfileStatus], ...] = (
    Field("profile", "PROFILE", lambda row: row.name, lambda row: printable(row.name)),
    Field("clusterId", "CLUSTER", lambda row: row.reading and row.reading.cluster.cluster_id, printed=False),
    Field("well", "WELL", lambda row: row.well, printed=False),
    _count("brokers", "BROKERS"),
    _count("fenced", "FENCED"),
    _count("unreachable", "NOT REACHED"),
    _count("partitions", "PARTITIONS"),
    _count("offline", "OFFLINE"),
    _count("underMinIsr", "UNDER MIN ISR"),
    _count("failedLogDirs", "FAILED DIRS"),
    Field("problem", "NOT READ", lambda row: row.problem or None, printed=False),
    Field("unknown", "NOT ANSWERED", lambda row: list(row.unknown), printed=False),
    Field("state", "STATE", state_line, below=True),
)


async def read_all(
    clusters: Iterable[tuple[str, Target | None, Backend | InputError]], duration: float
) -> tuple[ProfileStatus, ...]:
    """Reads every cluster; one that cannot be read has that as its problem. Each backend is closed."""
    places = asyncio.Semaphore(AT_ONCE)

    async def one(name: str, target: Target | None, backend: Backend | InputError) -> ProfileStatus:
        if isinstance(backend, InputError):
            return ProfileStatus(name, None, str(backend))
        use_state_dir_in_task(None if target is None else target.state_dir)
        async with places:
            try:
                reading = await read_cluster(ReadOnlyBackend(backend), duration, time.time())
            except (BackendError, ConsoleError) as error:
                return ProfileStatus(name, None, str(error))
            finally:
                await backend.close()
        return ProfileStatus(name, reading)

    found = await asyncio.gather(*(asyncio.ensure_future(one(*cluster)) for cluster in clusters))
    return tuple(sorted(found, key=lambda row: row.rank))


def every_cluster_lines(rows: Sequence[ProfileStatus]) -> Iterator[str]:
    """For a person."""
    read = [row for row in rows if row.reading is not None]
    bad = sum(not row.well for row in read)
    line = f"{counted(len(rows), 'cluster')}: {len(read) - bad} well, {bad} not"
    yield line + (f", {len(rows) - len(read)} not read" if len(read) < len(rows) else "")
    yield from text_rows(EVERY_CLUSTER, rows)


def every_cluster_document(rows: Sequence[ProfileStatus]) -> Iterator[str]:
    """``ktriage.status-all/1``."""
    return document("status-all", {"clusters": [json_row(EVERY_CLUSTER, row) for row in rows]})


def status_of_all(rows: Sequence[ProfileStatus]) -> Status:
    """DONE where every cluster is well, NOT_ASKED where none could be read."""
    if all(row.well for row in rows):
        return Status.DONE
    return Status.PARTLY if any(row.reading is not None for row in rows) else Status.NOT_ASKED
