"""``ktriage snapshot``: takes, lists and compacts snapshots."""

from __future__ import annotations

import asyncio
import re
import shlex
import uuid
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from backends.base.errors import BackendError
from backends.base.protocol import Backend
from backends.base.read_only import ReadOnlyBackend
from console.cli.base.run import Run
from console.errors import InputError, Status
from console.jobs.pipeline.snapshot_fleet import WAITED_FOR, Fleet, FleetRound, allow_open_files
from console.jobs.pipeline.snapshot_series import Series, SnapshotSettings
from console.output.json_document import document
from console.program import Program
from console.provenance import now, version
from console.signals import StopRequest
from console.target import every_profile
from pipeline.errors import PipelineError
from pipeline.snapshot.catalog import RecordedKeys, read_catalog
from pipeline.snapshot.observation import Observation, SnapshotKind
from pipeline.snapshot.upkeep import keep_newest, merge_all, merge_recent
from pipeline.storage import StoragePath, storage_path
from recovery.wording.quantity_text import counted, lasting, some_of


def parsed_interval(text: str) -> float:
    """Seconds of ``30s``, ``5m``, ``1h`` or a bare number of seconds. Raises InputError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|h)?", text.strip())
    if not found or not float(found[1]):
        raise InputError(f"--every {text!r}: give a time such as 30s, 5m or 1h")
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600, None: 1}[found[2]]


def take(
    run: Run,
    out: str,
    *,
    clusters: Path | None,
    every: str | None,
    count: int | None,
    keep: int | None,
    answer_seconds: float,
) -> int:
    """Takes one snapshot, or with ``every`` a series of them; returns the exit status.

    ``clusters``: a file of profiles, of all of which snapshots are taken. ``count``: the length of the series.
    ``keep``: how many full snapshots stay. ``answer_seconds``: the time limit for a broker's answer. Raises
    InputError, PipelineError, BackendError.
    """
    interval = None if every is None else parsed_interval(every)
    if interval is None and count is not None:
        raise InputError("--count is the length of a series: give --every too")
    if clusters is None and run.named is None:
        raise InputError(
            "no cluster is named: give one of --bootstrap-server, --cluster, --simulate and --clusters"
        )
    if clusters is not None:
        return _take_of_all(
            run, out, clusters, interval, count=count, keep=keep, answer_seconds=answer_seconds
        )
    if run.target.kind == "simulated" and interval is not None and count is None:
        raise InputError("--every with --simulate needs --count: virtual time passes without waiting")
    root = storage_path(out)
    problems: list[str] = []

    def taken(observation: Observation) -> Observation:
        _report(run.program, [observation], json=run.json)
        _remove_old(run.program, root, keep, [observation], say)
        return observation

    def say(problem: str) -> None:
        problems.append(problem)
        run.screen.say(problem)

    async def job(backend: Backend, stop: StopRequest) -> list[Observation]:
        token, asked = (lambda: uuid.uuid4().hex[:8]), run.target.title
        series = Series(
            backend, SnapshotSettings(root, answer_seconds, _clock(backend), token, version(), asked=asked)
        )
        await series.open()
        if interval is None:
            return [taken(await series.full(run.screen.progress))]

        def merge() -> None:
            _merge_recent(root, say)

        return await _take_series(
            backend, series, stop, interval=interval, count=count, taken=taken, say=say, merge=merge
        )

    observations = run.read(job)
    silent = sorted({broker for one in observations for broker in one.silent})
    if not observations:
        return Status.PARTLY
    run.screen.say(f"next: {shlex.join(('ktriage', 'pipeline', 'plan', '--in', out, '--out', 'RESULT'))}")
    newest = observations[-1]
    for topic in newest.hidden:
        run.screen.say(f"missing: topic {topic} is hidden from this caller (needs DESCRIBE)")
    if silent:
        run.screen.say(f"did not answer: broker {', '.join(map(str, silent))}; its logs are missing")
    unseen = newest.leaders_unreachable
    if unseen:
        run.screen.say(
            f"missing: {counted(unseen, 'partition')} with a leader not on this listener; ask by another listener"
        )
    return Status.PARTLY if newest.hidden or unseen or problems else Status.DONE


def _clock(backend: Backend) -> Callable[[], datetime]:
    """The time of snapshots. The virtual time of a simulation, which has to be open, starts at the current time."""
    virtual = backend.virtual_time
    if virtual is None:
        return now
    started: list[tuple[datetime, int]] = []

    def clock() -> datetime:
        if not started:
            started.append((now(), virtual.virtual_now))
        began, first = started[0]
        return began + timedelta(microseconds=virtual.virtual_now - first)

    return clock


async def _take_series(
    backend: Backend,
    series: Series,
    stop: StopRequest,
    *,
    interval: float,
    count: int | None,
    taken: Callable[[Observation], Observation],
    say: Callable[[str], None],
    merge: Callable[[], None],
) -> list[Observation]:
    """Takes a snapshot each interval until stopped. A failed snapshot is reported, and is a gap in the
    cluster's history.
    """
    observations: list[Observation] = []
    loop = asyncio.get_running_loop()
    tries = 0
    while not stop:
        due = loop.time() + interval
        tries += 1
        if observations and series.needs_full:
            merge()
        try:
            observation = await (series.full(series=True) if series.needs_full else series.changes())
        except (BackendError, PipelineError) as error:
            say(f"no snapshot at {series.now():%H:%M:%S}: {error}")
        else:
            observations.append(taken(observation))
        if count is not None and tries >= count:
            break
        if backend.virtual_time is not None:
            await backend.virtual_time.advance(interval)
        else:
            await asyncio.sleep(max(0.0, due - loop.time()))
    return observations


NAMED = 5
"""How many clusters a line of a round names."""


def _take_of_all(
    run: Run,
    out: str,
    clusters: Path,
    interval: float | None,
    *,
    count: int | None,
    keep: int | None,
    answer_seconds: float,
) -> int:
    """Takes snapshots of every cluster of the file; returns the exit status: :attr:`Status.PARTLY` where a snapshot
    of the last interval is missing. Raises InputError, PipelineError.
    """
    from console.backends import backend  # noqa: PLC0415  # not before a cluster is asked

    root, targets = storage_path(out), every_profile(clusters)

    def settings(name: str, keys: Callable[[StoragePath], RecordedKeys]) -> SnapshotSettings:
        token = lambda: uuid.uuid4().hex[:8]  # noqa: E731  # a source of names
        return SnapshotSettings(root, answer_seconds, now, token, version(), asked=name, keys=keys)

    async def job(stop: StopRequest) -> FleetRound:
        allow_open_files()
        asked = [(one.title, ReadOnlyBackend(backend(one, run.screen.say))) for one in targets]
        fleet = Fleet(asked, settings, root, run.screen.say)
        newest, tried = FleetRound((), ()), 0
        loop = asyncio.get_running_loop()
        try:
            while not stop:
                due = None if interval is None else loop.time() + interval
                if tried and fleet.needs_full:
                    await asyncio.to_thread(_merge_recent, root, run.screen.say)
                newest = await fleet.round(None if interval is None else interval * WAITED_FOR)
                _report_round(run, newest, len(fleet.names))
                _remove_old(run.program, root, keep, newest.taken, run.screen.say)
                tried += 1
                if due is None or tried == count:
                    break
                await asyncio.sleep(max(0.0, due - loop.time()))
        finally:
            await fleet.close()
        return newest

    last = run.program.supervisor.run(job)
    run.screen.say(f"next: {shlex.join(('ktriage', 'pipeline', 'plan', '--in', out, '--out', 'RESULT'))}")
    return Status.PARTLY if last.failed or last.late or last.problem else Status.DONE


def _report_round(run: Run, found: FleetRound, clusters: int) -> None:
    if run.json:
        _report(run.program, list(found.written), json=True)
    else:
        fulls = sum(one.kind is SnapshotKind.FULL for one in found.taken)
        offline = sum(one.offline for one in found.taken)
        run.screen.out(
            [
                f"{now():%Y-%m-%dT%H:%M:%SZ}: {len(found.taken):,} of {counted(clusters, 'cluster')}, {fulls:,} in"
                f" full, {counted(sum(one.changed for one in found.taken), 'row')}, {offline:,} offline"
            ]
        )
    for one in found.failed[:NAMED]:
        run.screen.say(f"no snapshot of {one.asked}: {one.failure}")
    if len(found.failed) > NAMED:
        run.screen.say(
            f"no snapshot of {len(found.failed) - NAMED:,} more clusters; snapshot list has the reasons"
        )
    if found.late:
        run.screen.say(f"still being read: {some_of(found.late, NAMED)}")
    if found.problem:
        run.screen.say(f"nothing was written: {found.problem}")


def _merge_recent(root: StoragePath, say: Callable[[str], None]) -> None:
    try:
        merge_recent(root)
    except PipelineError as error:
        say(f"small files were not merged: {error}")


def _remove_old(
    program: Program,
    root: StoragePath,
    keep: int | None,
    taken: Sequence[Observation],
    say: Callable[[str], None],
) -> None:
    """After full snapshots: applies ``--keep`` to their clusters; other clusters have their own writers."""
    fulls = [one for one in taken if one.kind is SnapshotKind.FULL]
    if keep is None or not fulls:
        return
    newest = max(fulls, key=lambda one: one.key)
    try:
        _remove_old_days(program, root, keep, newest.taken_at, [one.cluster_id for one in fulls])
    except PipelineError as error:
        say(f"{newest.snapshot} is written; removing old ones failed: {error}")


def _remove_old_days(
    program: Program, root: StoragePath, keep: int, at: datetime, cluster_ids: Sequence[str] = ()
) -> None:
    for cluster_id, removed in keep_newest(root, keep, at, cluster_ids).items():
        program.screen.say(f"removed: {removed:,} older snapshots of {cluster_id}")


def _report(program: Program, taken: list[Observation], *, json: bool) -> None:
    if json:
        program.screen.out(document("snapshot", {"snapshots": [observation_json(one) for one in taken]}))
        return
    for one in taken:
        if one.kind is SnapshotKind.FAILED:
            named = f" of {one.asked}" if one.asked else ""
            program.screen.out([f"{one.snapshot}: failed{named}, {one.failure}"])
            continue
        whole = one.kind is SnapshotKind.FULL
        what = (
            counted(one.partitions, "partition")
            if whole
            else f"{one.changed:,} of {one.partitions:,} changed"
        )
        behind = lasting(one.clock_behind_ms / 1000)
        moved = f", time moved on by {behind} (the clock was behind)" if one.clock_behind_ms else ""
        program.screen.out([f"{one.snapshot}: {one.kind}, {what}, {one.offline:,} offline{moved}"])


def observation_json(one: Observation) -> dict[str, Any]:
    """A snapshot as JSON."""
    return {
        "snapshot": one.snapshot,
        "clusterId": one.cluster_id,
        "kind": one.kind.value,
        "takenAt": one.taken_at.isoformat(),
        "partitions": one.partitions,
        "offline": one.offline,
        "changed": one.changed,
        "failure": one.failure or None,
        "silent": list(one.silent),
        "hiddenTopics": list(one.hidden),
        "leadersNotTold": one.leaders_unreachable,
        "asked": one.asked,
        "clockBehindMs": one.clock_behind_ms,
    }


def list_snapshots(program: Program, out: str, *, json: bool) -> int:
    """Prints the snapshots below ``out``; returns the exit status. Raises PipelineError."""
    catalog, screen = read_catalog(storage_path(out)), program.screen
    if json:
        rows = [observation_json(one) for mine in catalog.clusters.values() for one in mine]
        screen.out(document("snapshot", {"snapshots": rows}))
    else:
        for cluster_id, observations in catalog.clusters.items():
            screen.out([f"cluster {cluster_id}"])
            _report(program, list(observations), json=False)
    for broken in catalog.broken:
        screen.say(broken.reason)
    return Status.PARTLY if catalog.broken else Status.DONE


def compact_snapshots(program: Program, out: str, keep: int | None) -> int:
    """Merges small files, and deletes unused ones; with ``keep`` it removes old days first. Returns the exit
    status. Raises PipelineError.
    """
    root = storage_path(out)
    if keep is not None:
        _remove_old_days(program, root, keep, now())
    done = merge_all(root)
    program.screen.out([f"{done.merged:,} small files merged, {done.deleted:,} unused files deleted"])
    for problem in done.problems:
        program.screen.say(f"not merged: {problem}")
    return Status.PARTLY if done.problems else Status.DONE
