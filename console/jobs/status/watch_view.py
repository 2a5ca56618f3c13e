"""The course of ``ktriage check``, and of ``ktriage watch``."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from backends.base.check_report import CheckReport
from backends.base.membership import Membership
from backends.base.protocol import Backend
from console.cli.base.run import Run
from console.errors import Status
from console.jobs.status.check_report import (
    Job,
    checked_document,
    checked_lines,
    problems,
    without_controller,
)
from console.jobs.status.cluster_metrics import ClusterMetrics, metrics_library, served
from console.jobs.status.cluster_watch import (
    WatchReport,
    open_when_it_answers,
    read_leaders,
    watch,
    watched,
)
from console.journal.state_access import why_unusable
from console.notifications import Notifications
from console.output.json_document import one_line
from console.reading.evidence_sources import FurtherSource, evidence_sources
from console.reading.read_cluster import read_state
from console.reading.remembered_voters import QuorumProblems, quorum_problems
from console.reading.unread_disks import open_disks
from console.signals import StopRequest
from recovery.cluster_changes import ClusterChangeKind, WatchedState
from recovery.cluster_health import ClusterHealth
from recovery.model import NO_LEADER, TopicPartition
from recovery.unread_disks import UnreadDisk, UnreadDiskState, by_broker
from recovery.wording.cluster_health_text import stale_reason
from recovery.wording.quantity_text import counted, printable, time_text
from recovery.wording.unread_disk_text import came_back_text, unread_disk_lines


def check_cluster(run: Run, wanted: Job | None) -> int:
    """Checks and prints; returns the exit status: of the wanted job, whether it could be done."""

    async def job(
        backend: Backend, _stop: StopRequest
    ) -> tuple[CheckReport, ClusterHealth, tuple[FurtherSource, ...], tuple[str, ...]]:
        await backend.open()
        report = await backend.check()
        reading = await read_state(backend, report.cluster, report.contacts)
        membership: Membership | None = getattr(backend, "membership", None)
        quorum = QuorumProblems() if membership is None else await quorum_problems(membership)
        reading = reading.with_parts(second_quorum=quorum.second_quorum)
        return report, reading.health, await evidence_sources(backend), quorum.texts

    checked, health, sources, quorum = run.read(job)
    found = [
        *without_controller(health, wanted),
        *(quorum if wanted in (None, Job.QUORUM) else ()),
        *problems(checked, wanted),
    ]
    if wanted is not Job.READ and (why := why_unusable()):
        found.append(f"nothing can be changed from here, because it could not be recorded: {why}")
    form = checked_document if run.json else checked_lines
    run.screen.out(form(checked, health, sources, wanted, found))
    for problem in found:
        run.screen.say(problem)
    if health.current:
        run.next("status")
    else:
        run.next("quorum", "status")
    return Status.PARTLY if found else Status.DONE


OF_SEEN = " of the topics that may be seen"


class WaitGoal(NamedTuple):
    """What ends the wait: all these brokers unfenced, every partition with a leader; neither: nothing does."""

    brokers: frozenset[int]
    online: bool

    def reached(self, reading: WatchedState) -> bool:
        """Not by a reading that may be old: without a controller a dead broker is shown as up, and as a leader."""
        if reading.stale or not (self.brokers or self.online):
            return False
        return self.brokers <= reading.up and not (self.online and -1 in reading.leaders.values())

    def outlook(self, reading: WatchedState) -> str:
        """What there is now, and what is waited for, in one line."""
        offline = sum(1 for leader in reading.leaders.values() if leader < 0)
        unknown = frozenset() if reading.registered is None else self.brokers - reading.registered
        awaited = [
            f"broker {broker}{' (not registered: is the number right?)' if broker in unknown else ''}"
            for broker in sorted(self.brokers)
        ]
        if self.online:
            awaited.append(f"a leader for every partition{OF_SEEN if reading.unseen else ''}")
        until = f"waiting for {' and '.join(awaited)}" if awaited else "Ctrl-C ends this"
        now = f"{counted(len(reading.up), 'broker')} up, {counted(offline, 'partition')} without a leader"
        return f"now: {now}; {until}"


class MetricsOutput(NamedTuple):
    """Where the gauges go: ``file`` is written anew at each reading, ``port`` of ``address`` serves the newest.
    None: not asked for. ``port`` 0 lets the system choose one.
    """

    file: Path | None = None
    port: int | None = None
    address: str = "127.0.0.1"

    def __bool__(self) -> bool:
        return self.file is not None or self.port is not None


def watch_cluster(
    run: Run, awaited: WaitGoal, notifications: Notifications, output: MetricsOutput, interval: float
) -> int:
    """Prints a line for each change until what is awaited is there; returns the exit status."""
    if output:
        metrics_library()

    async def job(backend: Backend, stop: StopRequest) -> int:
        waits = bool(awaited.brokers) or awaited.online
        cluster = (
            await open_when_it_answers(backend, interval, stop, lambda text: run.screen.say(printable(text)))
            if waits
            else await backend.open()
        )
        if cluster is None:
            return Status.PARTLY
        cluster_id = cluster.cluster_id
        name = run.target.title or cluster_id
        with _reader(run, name, cluster_id, output) as reader:
            return await until_reached(backend, stop, cluster_id, name, reader)

    async def until_reached(
        backend: Backend, stop: StopRequest, cluster_id: str, name: str, reader: _Reader
    ) -> int:
        begun = False
        leaders: Mapping[TopicPartition, int] = {}
        async for change in watch(backend, interval, stop, reader.read):
            if change.failed:
                reader.failed()
            if change.reading is not None:
                leaders = change.reading.leaders
            report = _with_disk(change, cluster_id, leaders)
            if report.text:
                _print(run, report)
                run.screen.ring(f"{name}: {report.text}")
                for problem in await notifications.send(_fields(name, cluster_id, report)):
                    run.screen.say(printable(problem))
            if report.reading is not None and not begun:
                begun = True
                run.screen.say(awaited.outlook(report.reading))
                disks = open_disks(cluster_id)
                cut_off = _cut_off_at_start(disks.disks, leaders)
                away = [disk for disk in cut_off if disk.broker not in report.reading.up]
                run.screen.say(*unread_disk_lines(away, dict.fromkeys(away, UnreadDiskState.AWAY)))
                if disks.problem:
                    run.screen.say(f"which disks are to be read first is not known: {disks.problem}")
            if report.reading is not None and awaited.reached(report.reading):
                limits = OF_SEEN if awaited.online and report.reading.unseen else ""
                run.screen.say(f"the wait is over: what was waited for is there{limits}")
                return Status.DONE
        return Status.PARTLY if awaited.brokers or awaited.online else Status.DONE

    return run.read(job)


class _Reader(NamedTuple):
    """Reads what is watched; ``failed`` is called where that was not possible."""

    read: Callable[[Backend], Awaitable[WatchedState]]
    failed: Callable[[], None]


@contextmanager
def _reader(run: Run, name: str, cluster_id: str, output: MetricsOutput) -> Iterator[_Reader]:
    """Reads no more than the leaders, or all that the gauges show."""
    if not output:
        yield _Reader(read_leaders, lambda: None)
        return
    metrics = ClusterMetrics(name, cluster_id)
    not_written = ""

    def write() -> None:
        nonlocal not_written
        problem = "" if output.file is None else metrics.write(output.file)
        # The next readings may meet the same problem again, every few seconds.
        if problem and problem != not_written:
            run.screen.say(printable(f"--metrics-file {output.file}: {problem}"))
        not_written = problem

    async def read(backend: Backend) -> WatchedState:
        reading = await read_state(backend, await backend.cluster(), min_isr=True)
        metrics.update(reading, time.time())
        write()
        return watched(reading.cluster, reading.partitions, stale_reason(reading.health))

    def failed() -> None:
        metrics.failed()
        write()

    with ExitStack() as stack:
        if output.port is not None:
            port = stack.enter_context(served(metrics, output.address, output.port))
            run.screen.say(f"metrics: http://{output.address}:{port}/metrics")
        yield _Reader(read, failed)


def _cut_off_at_start(
    disks: Iterable[UnreadDisk], leaders: Mapping[TopicPartition, int]
) -> tuple[UnreadDisk, ...]:
    """Without those that are set aside, and those of which nobody is known to have been elected."""
    return tuple(
        disk
        for disk in disks
        if not disk.set_aside and not (disk.leader_epoch < 0 and leaders.get(disk.tp, NO_LEADER) == NO_LEADER)
    )


def _with_disk(report: WatchReport, cluster_id: str, leaders: Mapping[TopicPartition, int]) -> WatchReport:
    """A broker that is back is another message where its disk was to be read first, and was not until now."""
    change = report.change
    if change is None or change.broker is None or change.kind is not ClusterChangeKind.BROKER_BACK:
        return report
    unread_then = _cut_off_at_start(open_disks(cluster_id).disks, leaders)
    partitions = by_broker(unread_then).get(change.broker)
    if not partitions:
        return report
    unread = change._replace(kind=ClusterChangeKind.BROKER_BACK_UNREAD, partitions=partitions)
    return report._replace(text=came_back_text(change.broker, partitions), change=unread)


def _print(run: Run, report: WatchReport) -> None:
    at = time_text(int(time.time() * 1000))
    kind = None if report.change is None else str(report.change.kind)
    if run.json:
        partitions = () if report.change is None else report.change.partitions
        names = [str(tp) for tp in partitions]
        run.screen.out([one_line({"time": at, "kind": kind, "text": report.text, "partitions": names})])
    else:
        run.screen.out([f"{at} {printable(report.text)}"])


def _fields(name: str, cluster_id: str, report: WatchReport) -> dict[str, str]:
    """``name`` is the cluster's as the operator gave it: nobody who is woken by a message knows an id."""
    kind = "watch" if report.change is None else str(report.change.kind)
    return {"text": f"{name}: {report.text}", "cluster": cluster_id, "kind": kind}
