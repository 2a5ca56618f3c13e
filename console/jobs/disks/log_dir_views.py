"""The forms of ``ktriage log-dirs``: the current state, the effect of a failure, and the replacement of a
disk.
"""

from __future__ import annotations

import asyncio

from backends.base.errors import BackendError
from backends.base.protocol import Backend
from console.cli.base.run import Run
from console.errors import InputError, Status
from console.jobs.disks.disk_swap import disk_swap, is_back, read_log_dirs
from console.paths import unused
from console.reading.leaderless_partitions import SECONDS, Leaderless, has_copy, leaderless_lines
from console.reading.log_dir_survey import Disks, failures, reckon
from console.reading.log_dirs_report import (
    dirs_document,
    dirs_lines,
    fails_document,
    fails_lines,
    swap_document,
    swap_lines,
)
from console.reading.remembered_voters import quorum_or_lost
from console.signals import StopRequest
from recovery.disks.disk_swap import DiskSwap, SwapStepKind, leaderless, waiting
from recovery.disks.failed_dirs import FailedDir, last_copies
from recovery.disks.failure_preview import FailurePreview, if_places_fail
from recovery.disks.values import WHOLE_BROKER, DiskError, LogDirPlace
from recovery.membership.catch_up_rate import CatchUpRate
from recovery.model import PartitionState, TopicPartition
from recovery.wording.advice_text import ACCEPT_LOSS
from recovery.wording.cluster_health_text import STATES_LAST_KNOWN, hidden_topic_texts, stale_by_quorum

POLL = 0.5
PATIENCE = 24 * 3600.0


def course(run: Run, where: LogDirPlace, rows: int, *, wait: bool) -> int:
    """Shows the steps; with ``wait``, also waits until no replica of the disk is missing. Returns 1 if one is
    missing, and if no controller leads, or none that does can be reached.
    """

    async def job(backend: Backend, stop: StopRequest) -> tuple[DiskSwap, Disks, str]:
        disks = await read_log_dirs(backend)
        found = await disk_swap(backend, disks, where)
        if not wait:
            return found, disks, await _stale(backend, disks)
        run.screen.out([] if run.json else swap_lines(found, disks, rows, run.target.arguments))
        with stop.in_flight():
            return found, await _wait(run, backend, where, found.awaited, stop), ""

    found, disks, stale = run.read(job)
    left = waiting(disks.partitions.states, where, found.awaited)
    if run.json:
        run.screen.out(swap_document(found, disks, run.target.arguments))
    elif wait:
        run.screen.out(
            [f"{len(found.awaited) - len(left):,} of {len(found.awaited):,} replicas are in the ISR"]
        )
    else:
        run.screen.out(swap_lines(found, disks, rows, run.target.arguments))
    if wait:
        return _waited(run, where, left)
    if stale:
        run.screen.say(
            f"{stale}: {STATES_LAST_KNOWN}. What an empty disk would lead once"
            " a controller leads again is not known: leave the disk where it is until then"
        )
        run.next("quorum", "status")
        return Status.PARTLY
    first = [danger.tp for danger in found.dangers if danger.others]
    if first:
        if found.steps[0].kind is SwapStepKind.READ:
            run.screen.say("first read the old disk (step 1): plan takes what was read as --evidence")
        run.next("plan", *_named(first), unused())
    return Status.PARTLY if left or found.dangers else Status.DONE


def _waited(run: Run, where: LogDirPlace, left: list[PartitionState]) -> int:
    """A partition without a leader does not come back by itself: somebody has to elect a replica that has a
    copy.
    """
    stuck = leaderless(left)
    elect = []
    for state in stuck:
        why = "its replicas cannot copy it from one another"
        if has_copy(state, where):
            elect.append(state.tp)
        else:
            why = "no other replica has a copy: its records are only on the old disk, or in a backup"
        run.screen.say(f"not back: {state.tp}: it has no leader, and {why}")
    if elect:
        run.screen.say("read the old disk first (ktriage disk scan): it may hold more", ACCEPT_LOSS)
        run.next("plan", *_named(elect), "--strategy", "aggressive", unused())
    return Status.PARTLY if left else Status.DONE


def _named(tps: list[TopicPartition]) -> tuple[str, ...]:
    topics = sorted({tp.topic for tp in tps})
    return tuple(word for topic in topics for word in ("--topic", topic))


async def _wait(
    run: Run, backend: Backend, where: LogDirPlace, partitions: tuple[TopicPartition, ...], stop: StopRequest
) -> Disks:
    clock = asyncio.get_running_loop().time
    began, pace, shown, since, nobody = clock(), CatchUpRate(), "", 0.0, Leaderless()
    while True:
        stuck: tuple[str, ...] = ()
        try:
            disks = await read_log_dirs(backend, again=True)
            left, back = waiting(disks.partitions.states, where, partitions), is_back(disks, where)
            stale = "" if left else await _stale(backend, disks)
            if (not left and not stale) or stop or clock() - began > PATIENCE:
                return disks
            since = (since or clock()) if left and back and len(leaderless(left)) == len(left) else 0.0
            if since and clock() - since > SECONDS:
                return disks  # whose caller says of each what is to be done
            news = nobody.news(left, clock(), back=back)
            if news:
                stuck = await _stuck(backend, disks, where, news, back=back)
        except BackendError as error:
            if stop or clock() - began > PATIENCE:
                raise
            message = str(error)
        else:
            pace = pace.with_sample(clock() - began, len(left))
            seconds = pace.seconds_left
            about = "" if seconds is None else f", about {seconds:,.0f} s"
            run.screen.progress(
                f"replicas back in the ISR{about}:", len(partitions) - len(left), len(partitions)
            )
            message = f"{len(partitions) - len(left):,} of {len(partitions):,} replicas are back in the ISR"
            if stale:
                message = f"{stale}: {STATES_LAST_KNOWN}, and whether the replicas are back is not known"
        if message != shown:
            shown = message
            run.screen.say(message)
        run.screen.say(*stuck)
        await asyncio.sleep(POLL)


async def _stuck(
    backend: Backend, disks: Disks, where: LogDirPlace, found: list[PartitionState], *, back: bool
) -> tuple[str, ...]:
    """What to say of partitions without a leader. Raises BackendError."""
    dangers = () if back else (await disk_swap(backend, disks, where)).dangers
    return tuple(leaderless_lines(found, where, [danger.tp for danger in dangers]))


def place(option: str, text: str, *, whole: bool) -> LogDirPlace:
    """``BROKER:DIR``, or ``BROKER`` if a whole broker is allowed. Raises InputError with the option's name."""
    broker, sign, path = text.partition(":")
    if not broker.isdecimal() or (sign and not path) or (not sign and not whole):
        form = "BROKER:DIR or BROKER" if whole else "BROKER:DIR"
        raise InputError(f"{option} {text!r}: give {form}, such as 1:/var/lib/kafka/2")
    return LogDirPlace(int(broker), path.rstrip("/") or path or WHOLE_BROKER)


def show(run: Run, rows: int) -> int:
    """All dirs; the failed ones with the replicas that were on them."""

    async def job(backend: Backend, _stop: object) -> tuple[Disks, tuple[FailedDir, ...], str]:
        disks = await read_log_dirs(backend)
        return disks, await failures(backend, disks), await _stale(backend, disks)

    disks, failed, stale = run.read(job)
    run.screen.out(dirs_document(disks, failed) if run.json else dirs_lines(disks, failed, rows))
    for broker, why in disks.unknown_dirs:
        run.screen.say(f"unknown: log dirs of broker {broker}: {why}")
    if stale:
        run.screen.say(f"{stale}: {STATES_LAST_KNOWN}")
        run.next("quorum", "status")
        return Status.PARTLY
    gone = {lost.state.tp for lost in last_copies(failed)}
    offline = {lost.state.tp for dir_ in failed for lost in dir_.lost if lost.state.offline}
    if offline - gone:
        run.next("plan", "--all-offline-partitions", unused())
    elif failed:
        first = failed[0].place
        run.next("log-dirs", "--swap", str(first))
    return Status.PARTLY if failed or disks.dirs_not_listed else Status.DONE


def predict(run: Run, places: list[LogDirPlace], rows: int) -> int:
    """The effect of the failures. Returns 1 if there are, or may be, partitions that this caller does not see,
    and if no controller leads, or none that does can be reached.
    """

    async def job(backend: Backend, _stop: object) -> tuple[FailurePreview, tuple[str, ...]]:
        disks = await read_log_dirs(backend)
        already = next((where for where in places if where in disks.failed), None)
        if already is not None:
            raise InputError(f"{already} has already failed: see log-dirs --swap {already}")
        try:
            lost = await _stale(backend, disks)
            found = if_places_fail(await reckon(backend, disks), places, lost)
        except DiskError as error:
            raise InputError(str(error)) from None
        return found, tuple(hidden_topic_texts(disks.partitions.hidden, disks.partitions.not_compared))

    found, unseen = run.read(job)
    run.screen.out(fails_document(found) if run.json else fails_lines(found, rows))
    for text in unseen:
        run.screen.say(f"not counted: {text}")
    if found.without_controller:
        run.next("quorum", "status")
    return Status.PARTLY if unseen or found.without_controller else Status.DONE


async def _stale(backend: Backend, disks: Disks) -> str:
    """Why leaders and ISRs are known from before only, "" if they are not known to be old."""
    quorum = await quorum_or_lost(backend, disks.cluster.cluster_id)
    return stale_by_quorum(quorum.answer)


def swap_disk(run: Run, where: LogDirPlace, rows: int, *, wait: bool) -> int:
    """The steps of a swap, what must be recovered first, and how many replicas are back."""
    return course(run, where, rows, wait=wait)
