"""Where a cluster stands after ``quorum rebuild``: which of the steps that follow are done, as far as is seen."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from recovery.membership.controllers_asked import (
    NEW_METADATA_LOG,
    AskedController,
    ControllerFinding,
    ControllersAsked,
    QuorumProblem,
    RememberedQuorum,
)
from recovery.membership.lost_quorum import EPOCH_MARGIN
from recovery.membership.possible_only_voter import BrokersFollowing
from recovery.membership.quorum import Quorum
from recovery.membership.quorum_health import MemberRole, QuorumHealth
from recovery.membership.rewritten_partitions import RewrittenPartition
from recovery.membership.voters import ReplicaKey
from recovery.metadata_log.log_changes import PartitionSubject
from recovery.metadata_log.rebuilt_log import RebuiltLog
from recovery.model import Broker, PartitionState, TopicPartition, Unknown

if TYPE_CHECKING:
    # Only a cluster whose quorum was rebuilt needs it; the words are loaded for each first frame.
    from recovery.metadata_log.history import MetadataHistory

WANTED_VOTERS = 3


class AfterRebuildStep(StrEnum):
    """The steps, in their order."""

    STOP = "stop"
    MOVE = "move metadata"
    START = "start"
    SETTINGS = "settings"
    BROKERS = "brokers"
    SURVEY = "survey"
    ELECT = "elect"
    RESTORED = "restored topics"
    OLD_LOGS = "old metadata logs"
    GROW = "grow"
    CHECK = "check"


class AfterRebuildProgress(StrEnum):
    """``NOT_SEEN``: whether it is done cannot be seen from here."""

    DONE = "done"
    NOW = "now"
    LATER = "later"
    NOT_SEEN = "not seen"


@dataclass(frozen=True, slots=True)
class AfterRebuild:
    """``partitions`` are those that the rebuild wrote, ``states`` what they are now, ``away`` the brokers that are
    fenced, or have replicas and are not registered. ``unsurveyed``: how many of the ``offline`` partitions nobody
    has asked the replicas of. ``asked`` None: the controllers were not asked one by one.
    """

    log: RebuiltLog
    partitions: tuple[RewrittenPartition, ...]
    states: dict[TopicPartition, PartitionState]
    health: QuorumHealth
    away: tuple[int, ...]
    offline: int
    unsurveyed: int
    asked: ControllersAsked | None

    @property
    def quorum(self) -> Quorum:
        return self.health.quorum

    @property
    def joining(self) -> tuple[int, ...]:
        """The controllers that fetch and have no vote yet, old disks left out."""
        found = (m for m in self.health.members if m.role is MemberRole.CONTROLLER and m.fetches)
        return tuple(m.key.id for m in found if not was_replaced(m.key, self.log))

    @property
    def old_logs(self) -> tuple[ReplicaKey, ...]:
        """Whose metadata logs must never be used again; not of whoever has another one by now."""
        return old_logs(self.log, self.health)

    @property
    def awaited(self) -> tuple[int, ...]:
        """The brokers that are away and can come back as they are; not nodes with an old voter's metadata log."""
        old = {key.id for key in self.old_logs}
        return tuple(broker for broker in self.away if broker not in old)

    @property
    def restored_topics(self) -> tuple[str, ...]:
        """Those that only brokers' disks knew."""
        return tuple(sorted({one.topic for one in self.partitions if one.is_new}))

    @property
    def findings(self) -> tuple[str, ...]:
        """What the controllers' own answers show to be wrong, and old voters that run."""
        found = quorum_findings(self.health, self.asked, self.log)
        # Brokers that are to be started have a step of their own.
        return tuple(one.text for one in found if one.problem is not QuorumProblem.NOT_FOLLOWED)

    @property
    def second_quorum(self) -> tuple[str, ...]:
        """As in ClusterHealth."""
        return () if self.asked is None else self.asked.second_quorum(self.quorum)

    @property
    def alarms(self) -> tuple[str, ...]:
        """The findings without the settings, which have a step of their own."""
        return tuple(text for text in self.findings if text not in self.wrong_settings)

    @property
    def wrong_settings(self) -> tuple[str, ...]:
        """Who would not find the quorum, in sentences."""
        if self.asked is None:
            return ()
        found = self.asked.findings(self.health)
        return tuple(one.text for one in found if one.problem is QuorumProblem.LEADER_NOT_NAMED)

    @property
    def steps(self) -> dict[AfterRebuildStep, AfterRebuildProgress]:
        """Each step that applies, in its order. The first that is seen to be open is done now."""
        grown = len(self.quorum.voters.keys) >= WANTED_VOTERS
        progress: dict[AfterRebuildStep, bool | None] = {}
        if self.partitions:
            progress |= dict.fromkeys(
                (AfterRebuildStep.STOP, AfterRebuildStep.MOVE), None if self.away else True
            )
        progress |= {
            AfterRebuildStep.START: True,
            AfterRebuildStep.SETTINGS: False if self.wrong_settings else None if self.away else True,
            AfterRebuildStep.BROKERS: not self.awaited,
            AfterRebuildStep.SURVEY: not self.unsurveyed,
            AfterRebuildStep.ELECT: not self.offline,
            **({AfterRebuildStep.RESTORED: None} if self.restored_topics else {}),
            AfterRebuildStep.OLD_LOGS: None,
            AfterRebuildStep.GROW: grown,
            AfterRebuildStep.CHECK: grown and self.asked is not None and not self.findings,
        }
        open_step = next((step for step, done in progress.items() if done is False), None)
        return {
            step: AfterRebuildProgress.DONE
            if done
            else AfterRebuildProgress.NOT_SEEN
            if done is None
            else AfterRebuildProgress.NOW
            if step is open_step
            else AfterRebuildProgress.LATER
            for step, done in progress.items()
        }

    @property
    def now(self) -> AfterRebuildStep | None:
        """The step that comes next; None: nothing is seen to be open."""
        return next((step for step, at in self.steps.items() if at is AfterRebuildProgress.NOW), None)


OLD_DISK_RISK = (
    "a snapshot on it may be of changes that the quorum does not have, and Kafka starts from that one: such a voter"
    " would lead with another state than the others"
)


def was_replaced(key: ReplicaKey, rebuilt: RebuiltLog) -> bool:
    """Whether that disk had a vote before the rebuild, and was said never to start again."""
    return any(voter.key == key for voter in rebuilt.gone)


def old_logs(rebuilt: RebuiltLog, health: QuorumHealth) -> tuple[ReplicaKey, ...]:
    """The voters whose metadata logs must never be used again. Not those whose nodes fetch with another
    directory id: the old id stays in meta.properties of the log dir in which a broker rightly goes on with its
    records.
    """
    return tuple(voter.key for voter in rebuilt.gone if not _has_another(voter.key, health))


def _has_another(key: ReplicaKey, health: QuorumHealth) -> bool:
    """Whether the node has or had a place in the quorum with another directory, and fetched later with that than
    with this one, also where it is down now.
    """
    ages = {m.key: -1 if m.role is MemberRole.LEADER else m.fetch_ms for m in health.members}
    of_key = ages.pop(key, None)
    others = {other: age for other, age in ages.items() if other.id == key.id and other.directory_id}
    return bool(others) and (of_key is None or any(a is not None and a < of_key for a in others.values()))


def adding_refusal(key: ReplicaKey, rebuilt: RebuiltLog | Unknown | None) -> str:
    """Why an observer gets no vote that runs with an old voter's disk; "": it is none as far as is known."""
    if rebuilt is None or isinstance(rebuilt, Unknown) or not was_replaced(key, rebuilt):
        return ""
    return (
        f"{key} is the disk that voter {key.id} had before the quorum was rebuilt: {OLD_DISK_RISK}."
        f" {NEW_METADATA_LOG}"
    )


def quorum_findings(
    health: QuorumHealth,
    asked: ControllersAsked | None,
    rebuilt: RebuiltLog | Unknown | None,
    earlier: RememberedQuorum | None = None,
) -> tuple[ControllerFinding, ...]:
    """What the controllers' own answers show to be wrong, the worst first, and old voters that run or lead.
    ``earlier``: the quorum as it was remembered.
    """
    if asked is not None and rebuilt is not None and not isinstance(rebuilt, Unknown):
        # An old disk is to be stopped, whatever its settings name.
        gone = {voter.key for voter in rebuilt.gone}
        settled = {member.key.id for member in health.members if member.key not in gone}
        stops = {f"controller {key.id}" for key in gone if key.id not in settled}
        asked = replace(asked, servers={name: at for name, at in asked.servers.items() if name not in stops})
    found = () if asked is None else asked.findings(health)
    several = sum(one.problem is QuorumProblem.SEVERAL_QUORUMS for one in found)
    alone = () if asked is None else no_broker_follows(BrokersFollowing(health, asked.brokers))
    old = () if several or earlier is None else earlier.older(health.quorum, asked)
    alone = () if old else alone  # why none follows is known then
    if rebuilt is not None and not isinstance(rebuilt, Unknown):
        beside = () if asked is None else asked.second_quorum(health.quorum)
        old = (*old, *old_disks(health, asked, rebuilt, beside))
    return (*found[:several], *old, *alone, *found[several:])


def no_broker_follows(following: BrokersFollowing) -> tuple[ControllerFinding, ...]:
    """That none of the brokers that are known follows the leader, whoever of the voters is up."""
    if not following.nobody_follows:
        return ()
    leader = following.found.quorum.leader.id
    text = (
        f"NO BROKER FOLLOWS THIS QUORUM: {following.names_away} {'does' if len(following.away) == 1 else 'do'} not"
        f" fetch from controller {leader}. Another quorum may be the cluster's: {following.evidence}."
        f" {following.stop_leading}"
    )
    return (ControllerFinding(QuorumProblem.NOT_FOLLOWED, text),)


def old_disks(
    health: QuorumHealth, asked: ControllersAsked | None, rebuilt: RebuiltLog, beside: Collection[str] = ()
) -> Iterator[ControllerFinding]:
    """Voters that the rebuild replaced and that run again: with the disk that they had, or at the address. Not of
    those that answer as voters of a second quorum, ``beside`` this one.
    """
    running = {member.key for member in health.members if member.fetches}
    nodes = {key.id for key in running}
    registered = {at.address for voter in health.quorum.voters.voters for at in voter.endpoints}
    answering: dict[tuple[int, str], tuple[AskedController, list[str]]] = {}
    for voter in rebuilt.gone:
        node = voter.key.id
        if _has_another(voter.key, health):
            continue
        if voter.key in running:
            votes = health.quorum.voters.find(voter.key) is not None
            yield ControllerFinding(
                QuorumProblem.OLD_DISK,
                f"controller {node} runs with the disk ({voter.key.directory_id}) that it had before the quorum was"
                f" rebuilt, and {'has a vote' if votes else 'follows'}: {OLD_DISK_RISK}. {NEW_METADATA_LOG}",
            )
            continue
        at = {endpoint.address for endpoint in voter.endpoints} - registered
        answers = (
            () if asked is None else (one for one in asked.controllers if one.address in at and one.reached)
        )
        for one in answers:
            if one.node in (-1, node) and node not in nodes and str(node) not in beside:
                answering.setdefault((node, one.address), (one, []))[1].append(voter.key.directory_id)
    # A node may have had several disks, each of which a rebuild replaced.
    for (node, address), (one, disks) in answering.items():
        old = f"its old disk ({disks[0]})" if len(disks) == 1 else f"an old disk of it ({' or '.join(disks)})"
        yield ControllerFinding(
            QuorumProblem.OLD_DISK,
            f"a controller answers at {address}, where voter {node} was before the quorum was rebuilt,"
            f" and {'follows nobody' if one.blank else 'does not follow this quorum'}: with {old} it must not run."
            " Compare directory.id in meta.properties of its metadata log dir. If it is"
            f" {'that disk' if len(disks) == 1 else 'such a disk'}: {NEW_METADATA_LOG}",
        )


def away_brokers(brokers: Iterable[Broker], states: Iterable[PartitionState]) -> tuple[int, ...]:
    """Those that are fenced, or have replicas and are not registered."""
    known = {broker.id: broker for broker in brokers}
    assigned = {replica for state in states for replica in state.replicas}
    return tuple(sorted({b.id for b in known.values() if b.fenced} | (assigned - set(known))))


def partitions_written(history: MetadataHistory, log: RebuiltLog) -> tuple[RewrittenPartition, ...]:
    """The partitions that a rebuild wrote, with what the log knew before."""
    subjects: Iterable[PartitionSubject] = dict.fromkeys(
        row.subject
        for row in history.rows()
        if log.offset <= row.offset < log.end and isinstance(row.subject, PartitionSubject)
    )
    found = []
    for subject in subjects:
        states = history.intervals(subject)
        at = next((n for n, one in enumerate(states) if log.offset <= one.offset < log.end), None)
        if at is None:
            continue
        after = states[at].registration
        known = -1 if at == 0 else states[at - 1].registration.leader_epoch
        name = history.topic_name(subject.topic_id) or subject.topic_id
        disk = after.leader_epoch - EPOCH_MARGIN
        found.append(RewrittenPartition(name, *subject, known, disk, after))
    return tuple(sorted(found, key=lambda one: one[:3]))
