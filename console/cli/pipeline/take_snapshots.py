"""``ktriage snapshot``: takes, lists and compacts snapshots."""

from __future__ import annotations

import asyncio
import re
import shlex
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from backends.base.errors import BackendError
from backends.base.protocol import Backend
from console.cli.base.run import Run
from console.errors import InputError
from console.exit_status import Status
from console.operations.history.snapshot_series import Series, Taking
from console.output.json_document import document
from console.program import Program
from console.provenance import now
from console.signals import StopRequest
from console.version import version
from pipeline.errors import PipelineError
from pipeline.snapshot.manifest import LEADERS_NOT_TOLD, Manifest, SnapshotKind
from pipeline.snapshot.read_catalog import read_catalog
from pipeline.snapshot.retention import FULL_EVERY, RetentionResult, compact, keep_newest, sweep
from pipeline.storage import StoragePath, storage_path
from recovery.wording.quantity_text import counted


def parsed_interval(text: str) -> float:
    """Seconds of ``30s``, ``5m``, ``1h`` or a bare number of seconds. Raises InputError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|h)?", text.strip())
    if not found or not float(found[1]):
        raise InputError(f"--every {text!r}: give a time such as 30s, 5m or 1h")
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600, None: 1}[found[2]]


def take(
    run: Run, out: str, *, every: str | None, count: int | None, keep: int | None, answer_seconds: float
) -> int:
    """Takes one snapshot, or with ``every`` a series of them; returns the exit status.

    ``count``: the length of the series. ``keep``: how many full snapshots stay. ``answer_seconds``: the time
    limit for a broker's answer. Raises InputError, PipelineError, BackendError.
    """
    interval = None if every is None else parsed_interval(every)
    if run.target.kind == "simulated" and interval is not None and count is None:
        raise InputError("--every with --simulate needs --count: virtual time passes without waiting")
    root = storage_path(out)

    def taken(manifest: Manifest) -> Manifest:
        _apply_retention(run, root, keep, manifest)
        return manifest

    async def job(backend: Backend, stop: StopRequest) -> list[Manifest]:
        await backend.open()
        taking = Taking(root, answer_seconds, _clock(backend), lambda: uuid.uuid4().hex[:8], version())
        series = Series(backend, taking)
        if interval is None:
            return [taken(await series.full(run.screen.progress))]
        return await _take_series(run, backend, series, stop, interval=interval, count=count, taken=taken)

    manifests = run.read(job)
    if interval is None:
        _report(run.program, manifests, json=run.json)
    silent = sorted({broker for manifest in manifests for broker in manifest.silent})
    run.screen.say(f"next: {shlex.join(('ktriage', 'pipeline', 'plan', '--in', out, '--out', 'RESULT'))}")
    if not manifests:
        return Status.PARTLY
    newest = manifests[-1]
    for topic in newest.hidden:
        run.screen.say(f"missing: topic {topic} is hidden from this caller (needs DESCRIBE)")
    if silent:
        run.screen.say(f"did not answer: broker {', '.join(map(str, silent))}; its logs are missing")
    unseen = int(newest.notes.get(LEADERS_NOT_TOLD, "0"))
    if unseen:
        run.screen.say(
            f"missing: {counted(unseen, 'partition')} with a leader not on this listener; ask by another listener"
        )
    return Status.PARTLY if newest.hidden or unseen else Status.DONE


def _clock(backend: Backend) -> Callable[[], datetime]:
    """The time of snapshots. The virtual time of a simulation starts at the current time."""
    virtual = backend.virtual_time
    if virtual is None:
        return now
    began, first = now(), virtual.virtual_now
    return lambda: began + timedelta(microseconds=virtual.virtual_now - first)


async def _take_series(
    run: Run,
    backend: Backend,
    series: Series,
    stop: StopRequest,
    *,
    interval: float,
    count: int | None,
    taken: Callable[[Manifest], Manifest],
) -> list[Manifest]:
    """Takes a snapshot each interval until stopped. A failed snapshot is reported, and is a gap in the
    cluster's history.
    """
    manifests: list[Manifest] = []
    loop = asyncio.get_running_loop()
    tries = 0
    while not stop:
        due = loop.time() + interval
        tries += 1
        try:
            base = series.base
            whole = base is None or series.now() - base.began >= FULL_EVERY
            manifest = taken(await (series.full(series=True) if whole else series.changes()))
        except (BackendError, PipelineError) as error:
            run.screen.say(f"no snapshot at {series.now():%H:%M:%S}: {error}")
        else:
            manifests.append(manifest)
            _report(run.program, [manifest], json=run.json)
        if count is not None and tries >= count:
            break
        if backend.virtual_time is not None:
            await backend.virtual_time.advance(interval)
        else:
            await asyncio.sleep(max(0.0, due - loop.time()))
    return manifests


def _apply_retention(run: Run, root: StoragePath, keep: int | None, taken: Manifest) -> None:
    """Applies ``--keep`` after a full snapshot, only for its cluster: other clusters have their own writers."""
    if keep is None or taken.kind is not SnapshotKind.FULL:
        return
    removed = keep_newest(read_catalog(root, [taken.cluster_id]), keep, taken.taken_at).removed
    if removed:
        run.screen.say(f"removed: {removed:,} older snapshots of {taken.cluster_id}")


def _report(program: Program, taken: list[Manifest], *, json: bool) -> None:
    if json:
        program.screen.out(
            document("snapshot", {"snapshots": [manifest_json(manifest) for manifest in taken]})
        )
        return
    for m in taken:
        rows = sum(part.rows for part in m.parts if part.table == "partitions")
        size = sum(part.size for part in m.parts)
        what = f"{m.partitions:,} partitions" if m.kind == "full" else f"{rows:,} of {m.partitions:,} changed"
        program.screen.out([f"{m.snapshot}: {m.kind}, {what}, {m.offline:,} offline, {size / 1e6:,.1f} MB"])


def manifest_json(manifest: Manifest) -> dict[str, Any]:
    """A snapshot as JSON."""
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
        "leadersNotTold": int(manifest.notes.get(LEADERS_NOT_TOLD, "0")),
    }


def list_snapshots(program: Program, out: str, *, json: bool) -> int:
    """Prints the snapshots below ``out``; returns the exit status. Raises PipelineError."""
    catalog, screen = read_catalog(storage_path(out)), program.screen
    if json:
        rows = [manifest_json(m) for manifests in catalog.clusters.values() for m in manifests]
        screen.out(document("snapshot", {"snapshots": rows}))
    else:
        for cluster_id, manifests in catalog.clusters.items():
            screen.out([f"cluster {cluster_id}"])
            _report(program, list(manifests), json=False)
    for broken in catalog.broken:
        screen.say(broken.reason)
    for file in catalog.unfinished:
        screen.say(f"{file.uri}: not complete, so not counted")
    return Status.PARTLY if catalog.broken else Status.DONE


def compact_snapshots(program: Program, out: str, keep: int | None) -> int:
    """Merges changes into full snapshots, and removes leftover files and all but the newest ``keep``.

    Returns the exit status. Raises PipelineError.
    """
    root = storage_path(out)
    done = compact(read_catalog(root), uuid.uuid4().hex[:8])
    kept = keep_newest(read_catalog(root), keep, now()) if keep is not None else RetentionResult(0, 0, 0)
    swept = sweep(read_catalog(root), now())
    removed = done.removed + kept.removed
    program.screen.out(
        [f"{done.made:,} full snapshots made, {removed:,} removed, {swept.swept:,} leftovers removed"]
    )
    return Status.DONE
