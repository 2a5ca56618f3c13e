"""The rehearsal of a rebuild: the same bytes in a temporary directory, and a controller of the cluster's own Kafka
on loopback that leads with them. What it makes of the log, it writes to a snapshot; that is compared with what the
log implies by ktriage's own reading.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from backends.log_segments.segment_source import reason_of
from backends.metadata_log.directory import (
    DIRECTORY,
    DirectoryReading,
    MetadataDirError,
    log_files,
    read_directory,
)
from backends.metadata_log.quorum_copy import PROPERTIES, QUORUM_STATE, running_node, stored_election
from backends.metadata_log.rebuild_steps import require_same_files
from backends.metadata_log.rebuilt_directory import RewriteError, copy_file, fill_blank
from backends.metadata_log.rehearsal_controller import (
    RehearsalController,
    RehearsalError,
    controller_properties,
    free_port,
    kafka_jars,
)
from console.errors import InputError, NotDone
from console.jobs.quorum.quorum_rebuild import order_of
from console.provenance import made_by, now
from recovery.membership.lost_quorum import RunningNode
from recovery.membership.quorum_rebuild import RebuildPlan, RehearsalReport
from recovery.metadata_log.field_reader import MalformedRecordError
from recovery.metadata_log.metadata_image import MetadataImage, image_differences, image_of

PREFIX = "ktriage-rehearsal-"
_INTERVAL_SECONDS = 0.1
_BOOTSTRAP = "bootstrap.checkpoint"
_MOST_DIFFERENCES = 20

ShowProgress = Callable[[str, int, int], None]
"""Shows progress: what, how far, of how many. Raises what ends the rehearsal."""


class _Copy(NamedTuple):
    log_dir: Path
    expected: MetadataImage
    end: int
    """Behind what the plan appends: the controller's own records begin here."""


class _Observed(NamedTuple):
    led_after_ms: int | None
    epoch: int
    image: MetadataImage | None
    ended_after_ms: int | None = None


def rehearse(plan: RebuildPlan, kafka: Path, limit_seconds: float, progress: ShowProgress) -> RebuildPlan:
    """The plan with the report of its rehearsal. Nothing of the plan's directories is written, and nothing is left
    behind. Raises InputError: no Kafka there; NotDone: the directory is not as it was planned, or cannot be copied.
    """
    try:
        jars, version = kafka_jars(kafka)
    except RehearsalError as error:
        raise InputError(str(error)) from None
    work = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        copied = _copied(plan, work, progress)
        ports = {endpoint.port for voter in (*plan.old.voters, plan.voter) for endpoint in voter.endpoints}
        listener = plan.voter.endpoints[0].listener
        settings = controller_properties(plan.key.id, listener, free_port(ports), copied.log_dir)
        controller = RehearsalController(jars, work, settings)
        with controller.running():
            observed = _watch(controller, copied, plan, limit_seconds, progress)
            errors = () if observed.image is not None else controller.last_errors()
    except RehearsalError as error:
        raise NotDone(str(error)) from None
    except (RewriteError, MetadataDirError, MalformedRecordError) as error:
        raise NotDone(f"no rehearsal: {error}") from None
    except OSError as error:
        raise NotDone(f"no rehearsal: {work}: {reason_of(error)}") from None
    finally:
        shutil.rmtree(work, ignore_errors=True)
    differences: tuple[str, ...] = ()
    if observed.image is not None:
        differences = _cut(tuple(image_differences(copied.expected, observed.image)))
    elif observed.led_after_ms is not None:
        differences = ("it led, and wrote no snapshot of what it made of the log",)
    summary = RehearsalReport(
        at=now().isoformat(timespec="seconds"),
        by=made_by(),
        kafka=version,
        limit_ms=int(limit_seconds * 1000),
        led_after_ms=observed.led_after_ms,
        epoch=observed.epoch,
        counts={} if observed.image is None else observed.image.counts,
        differences=differences,
        errors=errors,
        ended_after_ms=observed.ended_after_ms,
    )
    return replace(plan, rehearsal=summary)


def _cut(differences: tuple[str, ...]) -> tuple[str, ...]:
    more = len(differences) - _MOST_DIFFERENCES
    return differences if more <= 0 else (*differences[:_MOST_DIFFERENCES], f"and {more:,} more differences")


def _copied(plan: RebuildPlan, work: Path, progress: ShowProgress) -> _Copy:
    """The log dir as the plan leaves it, in ``work``. Raises NotDone, OSError, RewriteError, MetadataDirError."""
    progress("copying the metadata log", 0, 0)
    source, target = Path(plan.source), Path(plan.target)
    # A broker whose copy is taken may run: without a leader its metadata log does not grow, and is compared below.
    if plan.in_place and running_node(source.parent) is RunningNode.RUNS:
        raise NotDone(f"{source}: its node runs: stop it first")
    order = order_of(plan)
    require_same_files(order, source)
    log_dir, owner = work / "data", work.stat()
    log_dir.mkdir()
    for name in (PROPERTIES, _BOOTSTRAP):
        if (target.parent / name).is_file():
            copy_file(target.parent / name, log_dir / name, owner)
    log = log_dir / DIRECTORY
    fill_blank(source, log, plan.files, (plan.segment, plan.whole_bytes, order.appended), owner)
    if plan.in_place and (source / QUORUM_STATE).is_file():
        copy_file(source / QUORUM_STATE, log / QUORUM_STATE, owner)
    progress("reading what the log implies", 0, 0)
    reading = DirectoryReading(log)
    expected = image_of(read_directory(reading))
    if reading.problem is not None:
        raise NotDone(f"no rehearsal: {source}: {reading.problem}")
    return _Copy(log_dir, expected, reading.end_offset)


def _watch(
    controller: RehearsalController,
    copied: _Copy,
    plan: RebuildPlan,
    limit_seconds: float,
    progress: ShowProgress,
) -> _Observed:
    """Waits until the controller leads and has written what it made of the log. Raises MetadataDirError."""
    log = copied.log_dir / DIRECTORY
    begun = time.monotonic()
    led_after_ms, epoch = None, -1
    while (passed := time.monotonic() - begun) < limit_seconds and not controller.has_ended:
        if led_after_ms is None:
            progress("waiting for the controller to lead: second", int(passed), int(limit_seconds))
            election = stored_election(log)
            if election is not None and election.leader == plan.key.id and election.epoch > plan.epoch:
                led_after_ms, epoch = int(passed * 1000), election.epoch
        else:
            progress("it leads; waiting for what it made of the log: second", int(passed), int(limit_seconds))
            image = _written_image(log, copied.end, copied.log_dir.parent)
            if image is not None:
                return _Observed(led_after_ms, epoch, image)
        time.sleep(_INTERVAL_SECONDS)
    ended = int(passed * 1000) if controller.has_ended else None
    return _Observed(led_after_ms, epoch, None, ended)


def _written_image(log: Path, end: int, work: Path) -> MetadataImage | None:
    """The image in a snapshot that Kafka wrote of what is behind offset ``end``; None: there is none yet."""
    _, snapshots = log_files(log)
    for after, path in reversed(snapshots):
        if after > end:
            alone = work / "snapshot"
            alone.mkdir()
            try:
                shutil.copy(path, alone / path.name)
            except FileNotFoundError:  # Kafka has written a newer one meanwhile
                alone.rmdir()
                return None
            return image_of(read_directory(DirectoryReading(alone)))
    return None
