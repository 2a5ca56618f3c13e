"""What ``ktriage verify`` knows of a plan's partitions, read for the command line and for the console alike."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from backends.base.answers import ClusterInfo, Depth
from backends.base.protocol import Backend, Progress
from console.jobs.consumers.election_aftermath import ElectionAftermath, read_aftermath
from console.journal.recorded_keeps import recorded_keeps
from console.plan_file_checks import partitions_of
from console.reading.consumer_reading import ConsumerReading, contradicted, read_as_consumer
from console.reading.partition_selection import survey_rows
from console.reading.plan_comparison import refuse_rows
from console.reading.unread_disks import DiskStates, open_disks, read_states
from console.rescue_files.rescued_branch import RescueContents
from recovery.log_preservation import taken_out
from recovery.plan.make import misplaced_leaders
from recovery.plan.values import BarePlan, Plan
from recovery.plan.verify import Order, RowState, depends_on_depth, verify
from recovery.wording.cluster_health_text import STATES_LAST_KNOWN, stale_by_quorum
from recovery.wording.quantity_text import and_more, counted


class Verified(NamedTuple):
    """The partitions, their clients, and the disks that are to be read before their brokers start.
    ``disks_problem`` says why there may be other disks, "" where the journal could be read. ``awaited`` are brokers
    that are down and get replicas again whose logs were kept, and need no reading any more. ``stale``: why the
    states may be old, "" where nothing speaks for it. ``consumer``: what consumers are given; None: not asked, or
    there is none.
    """

    states: tuple[RowState, ...]
    aftermath: ElectionAftermath
    disks: DiskStates
    disks_problem: str = ""
    awaited: tuple[int, ...] = ()
    stale: str = ""
    consumer: ConsumerReading | None = None

    @property
    def complete(self) -> bool:
        """Whether nothing is missing for any partition, as far as is known now; clients do not count."""
        return (
            not self.stale
            and not contradicted(self.consumer)
            and all(state.complete for state in self.states)
        )

    @property
    def in_short(self) -> str:
        good, replicated = (
            sum(state.good for state in self.states),
            sum(state.replicated for state in self.states),
        )
        text = f"{good:,} of {len(self.states):,} led as planned, {replicated:,} fully replicated"
        known = f"{self.stale}: {STATES_LAST_KNOWN}" if self.stale else ""
        contradiction = "" if self.consumer is None else self.consumer.in_short
        return "; ".join(filter(None, (contradiction, known, self.lost, text, self.aftermath.in_short)))

    @property
    def lost(self) -> str:
        """What leaders lack of the planned logs; "" where nothing is known to be lost."""
        short = [state for state in self.states if state.lost_offsets]
        if not short:
            return ""
        most = max(short, key=lambda state: state.lost_count)
        where = f"{most.tp}: broker {most.leader} leads" + and_more(len(short))
        return f"LOST of the planned log: {counted(most.lost_count, 'offset')} or more ({where})"

    @property
    def well(self) -> bool:
        """Whether every partition is led as planned, and no client is known to need anything."""
        good = all(state.good for state in self.states)
        return good and not self.stale and not self.aftermath.in_short and not contradicted(self.consumer)


async def read_verified(
    backend: Backend,
    plan: Plan | BarePlan,
    cluster: ClusterInfo,
    *,
    seconds: float,
    progress: Progress | None = None,
    rescue: RescueContents | None = None,
    file: Path | None = None,
    as_consumer: bool = False,
) -> Verified:
    """Partitions, groups and transactions take at most ``seconds`` each. ``rescue`` holds markers of transactions;
    ``file`` is the plan's, for messages. ``as_consumer``: the partitions are read by a consumer too.

    Raises BackendError where the partitions could not be read, and InputError for a plan that names leaders that
    have no replica, or a damaged rescue.
    """
    surveys = await survey_rows(backend, partitions_of(plan), progress, seconds)
    if isinstance(plan, BarePlan):
        refuse_rows(file, misplaced_leaders(plan, surveys))
    disks, keeps = open_disks(cluster.cluster_id), recorded_keeps(cluster.cluster_id)
    done_with = () if disks.problem else keeps.keys() - {disk.tp for disk in disks.disks}
    states = verify(plan, surveys, keeps, done_with)
    found = {survey.tp: survey for survey in surveys}
    # Where all logs are the same again, a survey stops at their last epoch, which may be younger than the plan.
    shallow = [state.tp for state in states if state.tp in found and depends_on_depth(state, found[state.tp])]
    if shallow:
        deeper = await survey_rows(backend, shallow, progress, seconds, Depth.FULL)
        surveys = tuple({**found, **{survey.tp: survey for survey in deeper}}.values())
        states = verify(plan, surveys, keeps, done_with)
    of_plan = disks.of({row.tp for row in plan.rows})
    disk_states = await read_states(backend, of_plan, cluster, [survey.state for survey in surveys])
    aftermath = await read_aftermath(backend, plan, seconds, progress, rescue)
    up = {broker.id for broker in cluster.brokers if not broker.fenced}
    to_assign = (keeps[state.tp] for state in states if state.order is Order.TO_ASSIGN)
    awaited = {broker for keep in to_assign for broker in taken_out(keep)} - up
    stale = stale_by_quorum(await backend.quorum())
    consumer = await read_as_consumer(backend, surveys, seconds) if as_consumer else None
    return Verified(states, aftermath, disk_states, disks.problem, tuple(sorted(awaited)), stale, consumer)
