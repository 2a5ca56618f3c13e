"""The course of ``ktriage snapshot``."""

from __future__ import annotations

import asyncio
import re
import shlex
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from backends.base.errors import BackendError
from backends.base.protocol import Backend
from console.cli.base.run import Run
from console.errors import InputError
from console.exit_status import Status
from console.output.json_document import document
from console.provenance import now
from console.signals import StopRequest
from console.version import version

try:
    from console.operations.snapshot_series import Series, Taking
    from pipeline.errors import PipelineError
    from pipeline.snapshot.catalog import read_catalog
    from pipeline.snapshot.manifest import Manifest, SnapshotKind
    from pipeline.snapshot.retention import RetentionResult, compact, sweep
    from pipeline.snapshot.retention import keep as keep_newest
    from pipeline.storage import StoragePath, storage_path
except ModuleNotFoundError as missing:
    if missing.name != "pyarrow":
        raise
    raise InputError("snapshots need pyarrow, which is not installed: make pipeline-setup") from None

FULL_EVERY = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Wanted:
    """``every`` and ``duration`` in seconds; one snapshot where ``every`` is None."""

    out: str
    every: float | None
    count: int | None
    keep: int | None
    duration: float


def seconds(text: str) -> float:
    """``30s``, ``5m``, ``1h`` or a bare number of seconds. Raises InputError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|h)?", text.strip())
    if not found or not float(found[1]):
        raise InputError(f"--every {text!r}: give a time such as 30s, 5m or 1h")
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600, None: 1}[found[2]]


@contextmanager
def told() -> Iterator[None]:
    """What the pipeline refuses is wrong input to the command."""
    try:
        yield
    except PipelineError as error:
        raise InputError(str(error)) from None


def take(run: Run, wanted: Wanted) -> int:
    """Takes one snapshot, or a series of them; returns the exit status. Raises InputError."""
    if run.target.kind == "simulated" and wanted.every is not None and wanted.count is None:
        raise InputError(
            "--every with --simulate needs --count: virtual time goes by at once, without waiting"
        )
    with told():
        root = storage_path(wanted.out)

    async def job(backend: Backend, stop: StopRequest) -> list[Manifest]:
        await backend.open()
        taking = Taking(root, wanted.duration, _clock(backend), lambda: uuid.uuid4().hex[:8], version())
        series = Series(backend, taking)
        if wanted.every is None:
            manifest = await series.full(run.screen.progress)
            _bound(run, root, wanted.keep, manifest)
            return [manifest]
        return await _go_on(run, backend, series, wanted, stop)

    with told():
        taken = run.work(job)
    if wanted.every is None:
        _report(run, taken)
    silent = sorted({broker for manifest in taken for broker in manifest.silent})
    run.screen.say(
        f"next: {shlex.join(('ktriage', 'pipeline', 'plan', '--in', wanted.out, '--out', 'RESULT'))}"
    )
    if not taken:
        return Status.PARTLY
    for manifest in taken[-1:]:
        for topic in manifest.hidden:
            run.screen.say(f"not told: topic {topic} may not be seen")
    if silent:
        run.screen.say(f"did not answer: broker {', '.join(map(str, silent))}; its logs are unknown there")
    return Status.PARTLY if taken[-1].hidden else Status.DONE


def _clock(backend: Backend) -> Callable[[], datetime]:
    """A simulation's time goes by as it is asked, from now on."""
    simulation = getattr(backend, "simulation", None)
    if simulation is None:
        return now
    began, first = now(), simulation.now
    return lambda: began + timedelta(microseconds=simulation.now - first)


async def _go_on(
    run: Run, backend: Backend, series: Series, wanted: Wanted, stop: StopRequest
) -> list[Manifest]:
    """A snapshot each interval until stopped; one that fails is told, and is a gap that history calls unknown."""
    taken: list[Manifest] = []
    loop = asyncio.get_running_loop()
    assert wanted.every is not None
    tries = 0
    while not stop:
        due = loop.time() + wanted.every
        tries += 1
        try:
            base = series.base
            whole = base is None or series.now() - base.began >= FULL_EVERY
            manifest = await (series.full(series=True) if whole else series.changes())
            _bound(run, storage_path(wanted.out), wanted.keep, manifest)
        except (BackendError, PipelineError) as error:
            run.screen.say(f"no snapshot at {series.now():%H:%M:%S}: {error}")
        else:
            taken.append(manifest)
            _report(run, [manifest])
        if wanted.count is not None and tries >= wanted.count:
            break
        if backend.simulated:
            await backend.advance(wanted.every)  # type: ignore[attr-defined]  # a simulation's time is its own
        else:
            await asyncio.sleep(max(0.0, due - loop.time()))
    return taken


def _bound(run: Run, root: StoragePath, count: int | None, taken: Manifest) -> None:
    """``--keep`` after a full snapshot, of the cluster that it is of; others have writers of their own."""
    if count is None or taken.kind is not SnapshotKind.FULL:
        return
    removed = keep_newest(read_catalog(root), count, taken.cluster_id).removed
    if removed:
        run.screen.say(f"taken away: {removed:,} older snapshots of {taken.cluster_id}")


def _report(run: Run, taken: list[Manifest]) -> None:
    if run.json:
        run.screen.out(document("snapshot", {"snapshots": [manifest_json(manifest) for manifest in taken]}))
        return
    for m in taken:
        rows = sum(part.rows for part in m.parts if part.table == "partitions")
        size = sum(part.size for part in m.parts)
        what = f"{m.partitions:,} partitions" if m.kind == "full" else f"{rows:,} of {m.partitions:,} changed"
        run.screen.out([f"{m.snapshot}: {m.kind}, {what}, {m.offline:,} offline, {size / 1e6:,.1f} MB"])


def manifest_json(manifest: Manifest) -> dict[str, Any]:
    """A snapshot as the JSON output has it."""
    return {
        "snapshot": manifest.snapshot,
        "clusterId": manifest.cluster_id,
        "kind": manifest.kind.value,
        "takenAt": manifest.taken_at.isoformat(),
        "partitions": manifest.partitions,
        "offline": manifest.offline,
        "changed": sum(part.rows for part in manifest.parts if part.table == "partitions"),
        "bytes": sum(part.size for part in manifest.parts),
        "silent": list(manifest.silent),
        "hiddenTopics": list(manifest.hidden),
    }


def list_snapshots(run: Run, out: str) -> int:
    """Prints what is there; returns the exit status."""
    with told():
        catalog = read_catalog(storage_path(out))
    if run.json:
        rows = [manifest_json(m) for manifests in catalog.clusters.values() for m in manifests]
        run.screen.out(document("snapshot", {"snapshots": rows}))
    else:
        for cluster_id, manifests in catalog.clusters.items():
            run.screen.out([f"cluster {cluster_id}"])
            _report(run, list(manifests))
    for broken in catalog.broken:
        run.screen.say(broken.reason)
    for file in catalog.unfinished:
        run.screen.say(f"{file.uri}: never finished, and not counted")
    return Status.PARTLY if catalog.broken else Status.DONE


def bound(run: Run, out: str, count: int | None) -> int:
    """Compacts, and with a count takes older snapshots away; returns the exit status."""
    with told():
        root = storage_path(out)
        done = compact(read_catalog(root), uuid.uuid4().hex[:8])
        kept = keep_newest(read_catalog(root), count) if count is not None else RetentionResult(0, 0, 0)
        swept = sweep(read_catalog(root), now())
    removed = done.removed + kept.removed
    run.screen.out(
        [f"{done.made:,} full snapshots made, {removed:,} taken away, {swept.swept:,} leftovers taken away"]
    )
    return Status.DONE
