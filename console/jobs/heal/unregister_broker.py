"""Removes the registration of a broker that is gone for good, once nothing depends on it any more."""

# ruff: noqa: ARG002  # the signatures are the change's

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from backends.base.errors import BackendError
from backends.base.protocol import Backend
from console.change.change import Change, ChangeRun, Conclusion, Operator, Question
from console.errors import NotDone, Status
from console.jobs.heal.heal_survey import (
    gone_voters,
    heal_command,
    refuse_stale,
    refuse_up,
)
from console.journal.change_kinds import UNREGISTER
from console.journal.recorded_keeps import recorded_keeps
from console.journal.unfinished_entries import unfinished
from recovery.cluster_health import ClusterHealth, quorum_finding
from recovery.log_preservation import taken_out
from recovery.model import PartitionState, TopicPartition, Unknown
from recovery.unread_disks import by_broker
from recovery.wording.quantity_text import counted, some_of
from recovery.wording.unread_disk_text import READ_DISK

READ_BACK_LOOKS, PAUSE = 40, 0.25


@dataclass(frozen=True, slots=True)
class PreparedUnregistration:
    """``listed``: whether the cluster lists the broker; None: this release lists no fenced broker. ``unread`` are
    the partitions whose logs on its disks nobody has read before their elections, ``without_replica`` those that
    lost their replica on it so that its log is kept, and have not got it back.
    """

    cluster_id: str
    broker: int
    listed: bool | None
    unread: tuple[TopicPartition, ...] = ()
    without_replica: tuple[TopicPartition, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What is given up with the broker, one line each."""
        notes = []
        if self.unread:
            notes.append(
                f"the disks of broker {self.broker} were not read before the elections of {some_of(self.unread)}:"
                f" what only they hold is to be read ({READ_DISK}), or waived (ktriage rescue waive --broker-id"
                f" {self.broker} --reason WHY)"
            )
        if self.without_replica:
            notes.append(
                f"{some_of(self.without_replica)} lost the replica on broker {self.broker}, so that its log is"
                " kept: without the broker ktriage heal assign-again cannot give it back, and it needs another"
                " (kafka-reassign-partitions)"
            )
        return tuple(notes)


@dataclass(frozen=True, slots=True)
class UnregisteredBroker:
    """The result; ``problem`` is None if the broker is not registered any more."""

    prepared: PreparedUnregistration
    sent: bool = False
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class UnregisterBroker(Change[Backend, PreparedUnregistration, UnregisteredBroker]):
    """Refused while the broker is up, has a replica or a vote, and where one of these is not known.

    ``command`` makes a line for the shell of a command's words, with the cluster's name.
    """

    broker: int
    title: str
    reason: str
    command: Callable[..., str]
    dry_run: bool = False

    async def prepare(
        self, cluster: Backend, cluster_id: str, operator: Operator[PreparedUnregistration]
    ) -> PreparedUnregistration:
        info = await cluster.open()
        refuse_stale(ClusterHealth(quorum_finding(await cluster.quorum())))
        refuse_up(info, {self.broker})
        states = await _refuse_used(cluster, self.broker, self.command)
        known = info.broker(self.broker) is not None
        tells = all(broker.fenced is not None for broker in info.brokers)
        now = {state.tp: state.replicas for state in states}
        lost = [
            tp
            for tp, keep in recorded_keeps(cluster_id).items()
            if self.broker in taken_out(keep) and now.get(tp) == keep.after
        ]
        unread = by_broker(unfinished(cluster_id).unread_disks).get(self.broker, ())
        listed = known if known or tells else None
        return PreparedUnregistration(cluster_id, self.broker, listed, unread, tuple(lost))

    def nothing_to_send(self, prepared: PreparedUnregistration) -> UnregisteredBroker | None:
        return UnregisteredBroker(prepared) if self.dry_run or prepared.listed is False else None

    def question(self, prepared: PreparedUnregistration) -> Question:
        text = (
            f"the registration of broker {prepared.broker} will be removed from cluster {prepared.cluster_id}"
            f" ({self.title}). A broker with that id registers again when it starts."
        )
        return Question.number(text, "its id", prepared.broker, prepared.notes)

    async def recheck(
        self,
        cluster: Backend,
        prepared: PreparedUnregistration,
        answer: str,
        operator: Operator[PreparedUnregistration],
    ) -> PreparedUnregistration:
        return await self.prepare(cluster, prepared.cluster_id, operator)

    async def execute(
        self, cluster: Backend, prepared: PreparedUnregistration, run: ChangeRun[PreparedUnregistration]
    ) -> UnregisteredBroker:
        problem: str | None = None
        with run.stop.in_flight():
            entry = run.journal.before(UNREGISTER, {"broker": prepared.broker})
            try:
                await cluster.replica_mover().unregister(prepared.broker)
            except BackendError as error:
                problem = str(error)
            run.journal.after(entry, {"problem": problem or ""})
            # It may have been done without an answer.
            if prepared.listed and await _gone(cluster, prepared.broker):
                problem = None
            elif prepared.listed and problem is None:
                problem = "the cluster still lists it"
        return UnregisteredBroker(prepared, True, problem)

    def conclusion(self, result: UnregisteredBroker) -> Conclusion:
        done = result.problem is None
        counts = {"unregistered": int(done and result.sent), "failed": int(not done)}
        return Conclusion(Status.DONE if done else Status.PARTLY, counts)


async def _refuse_used(
    cluster: Backend, broker: int, command: Callable[..., str]
) -> tuple[PartitionState, ...]:
    """All partitions. Raises NotDone while a replica, a reassignment or a vote of the broker stands, or if that is
    not known.
    """
    found = await cluster.partitions()
    if found.may_hide_topics:
        names = some_of(found.hidden) or str(found.not_compared)
        raise NotDone(
            f"topics that may not be seen could have replicas on broker {broker} ({names}): unregistering it needs"
            " DESCRIBE on every topic, and on the cluster; nothing was sent"
        )
    hosted: list[TopicPartition] = [state.tp for state in found.states if broker in state.replicas]
    if hosted:
        heal = command(*heal_command("show", (broker,)))
        raise NotDone(
            f"broker {broker} still has replicas of {counted(len(hosted), 'partition')} ({some_of(hosted)}): give"
            f" them others first, or read there what to accept where that cannot be ({heal}); nothing was sent"
        )
    moving = await cluster.reassignments()
    if isinstance(moving, Unknown):
        raise NotDone(f"whether reassignments are in progress is not known ({moving}); nothing was sent")
    busy = [one.tp for one in moving if broker in (*one.replicas, *one.adding, *one.removing)]
    if busy:
        raise NotDone(f"a reassignment names broker {broker} ({some_of(busy)}); nothing was sent")
    voters = gone_voters(await cluster.quorum(), frozenset({broker}))
    if isinstance(voters, Unknown):
        raise NotDone(f"whether node {broker} is a voter is not known ({voters}); nothing was sent")
    if voters:
        replace = command("quorum", "replace", str(broker), "--why", "host")
        raise NotDone(
            f"node {broker} is a voter of the metadata quorum: replace it first ({replace}); nothing was sent"
        )
    return found.states


async def _gone(cluster: Backend, broker: int) -> bool:
    """Whether the cluster lists it no more, within ten seconds: brokers learn of it one after the other."""
    for _ in range(READ_BACK_LOOKS):
        try:
            if (await cluster.cluster()).broker(broker) is None:
                return True
        except BackendError:
            pass
        await asyncio.sleep(PAUSE)
    return False
