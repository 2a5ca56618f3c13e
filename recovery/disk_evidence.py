"""Logs that were read from the disks of dead brokers, as evidence for a choice of leader.

A replica whose log was read counts as answered, and cannot be chosen: evidence is refused, with the reason, for a
replica that could be elected, and wherever the log may have changed since it was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from recovery.lineages import reconciled_survey
from recovery.model import NO_EPOCH, ReplicaLog, Survey, TopicPartition, Unknown


class DiskLog(NamedTuple):
    """One replica's log on a disk. ``directory_id`` is "" where it is not known; ``lost_tail`` is why records are
    known to be missing at its end, with the bytes behind a damaged place, None where nothing shows that.
    ``stopped_cleanly``: its log dir has the file of a clean stop. ``old_messages`` of formats 0 and 1, before
    offset ``old_end``, were not read.
    """

    topic_id: str
    directory_id: str
    log: ReplicaLog
    lost_tail: str | None
    stopped_cleanly: bool = False
    old_messages: int = 0
    old_end: int = 0


class StrayLog(NamedTuple):
    """A log that its broker has set aside, because it found itself without a replica of the partition when it
    started: a folder of its own, whose name ends in ``-stray`` (Kafka's LogManager).
    """

    tp: TopicPartition
    folder: str
    disk: DiskLog


class DiskStartEffect(NamedTuple):
    """What a broker does at its start with the file or folder ``where``, why, and what is to be done before it.
    ``to_repair``: the broker does not serve all of its replicas then; else it does, and deletes something.
    ``if_assigned``: only if one partition, which its disk does not hold, is still assigned to it.
    """

    effect: str
    where: str
    why: str
    repair: str
    to_repair: bool = True
    if_assigned: bool = False


class DiskReading(NamedTuple):
    """One broker's disks, read at ``read_ms`` (ms since 1970) by the clock of ``host``.

    ``metadata_end``: the end of the metadata log on them, None where they hold none: the broker had learnt no later
    change. ``logs`` are those of its replicas; ``strays`` are none of them. ``at_start``: why the broker does not
    serve all of them, or what it deletes, if it is started with these disks as they are, the worst first.
    ``left_out`` are its other folders, each with what it is (``future``: a copy for a move between log dirs,
    ``deleted``): their records were scanned, and are no log of a replica. ``metadata_epoch`` is the epoch of the
    last record of the metadata log, ``directories`` are the ids of the log dirs.
    """

    source: str
    broker: int
    cluster_id: str
    host: str
    read_ms: int
    metadata_end: int | None
    logs: Mapping[TopicPartition, DiskLog]
    strays: tuple[StrayLog, ...] = ()
    at_start: tuple[DiskStartEffect, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    metadata_epoch: int = NO_EPOCH
    directories: tuple[str, ...] = ()


class RegistrationFacts(NamedTuple):
    """What the metadata log tells of one broker now.

    ``registered_at``: offset and time (ms) of its last registration; the time is None where the log begins with a
    snapshot that holds it. None where the log holds none.
    ``directories``: the directory id of each of its replicas, by topic id and partition.
    """

    registered_at: tuple[int, int | None] | None
    directories: Mapping[tuple[str, int], str]


class EvidenceRefusal(NamedTuple):
    """Why a log that was read from a disk does not count."""

    tp: TopicPartition
    broker: int
    reason: str


class EvidenceUse(NamedTuple):
    """What became of the evidence. ``used``: the number of logs that count as answered, of each reading in turn.

    ``unchecked`` is why it is not known whether the brokers ran after their disks were read; None: they did not, as
    far as the metadata log tells.
    """

    readings: tuple[DiskReading, ...]
    used: tuple[int, ...]
    refused: tuple[EvidenceRefusal, ...]
    unchecked: str | None

    @property
    def logs(self) -> int:
        """The number of logs that count as answered."""
        return sum(self.used)


def with_disks(
    surveys: Iterable[Survey],
    readings: Sequence[DiskReading],
    registrations: Mapping[int, RegistrationFacts],
) -> tuple[tuple[Survey, ...], tuple[EvidenceRefusal, ...]]:
    """The surveys with the logs of silent replicas as their disks have them, and which logs were refused.

    ``registrations`` by broker; a broker that is missing there was not looked up.
    """
    refused: list[EvidenceRefusal] = []
    found = []
    for reported in surveys:
        survey = reported
        for reading in readings:
            disk, registration = reading.logs.get(survey.tp), registrations.get(reading.broker)
            if reading.broker not in survey.state.replicas:
                continue
            if reading.at_start:
                survey = _with_start(survey, reading, registration)
            if disk is None:
                continue
            reason = _refusal(survey, reading, disk, registration)
            if reason is None:
                survey = _with_disk(survey, reading, disk)
            else:
                refused.append(EvidenceRefusal(survey.tp, reading.broker, reason))
        # What a broker has forgotten of its epochs a disk may tell.
        found.append(survey if survey is reported else reconciled_survey(survey))
    return tuple(found), tuple(refused)


def _with_disk(survey: Survey, reading: DiskReading, disk: DiskLog) -> Survey:
    replicas = tuple(
        replica._replace(
            log=disk.log,
            disk_read_ms=reading.read_ms,
            disk_stopped_cleanly=disk.stopped_cleanly,
        )
        if replica.broker == reading.broker
        else replica
        for replica in survey.replicas
    )
    return survey._replace(replicas=replicas)


def _with_start(survey: Survey, reading: DiskReading, registration: RegistrationFacts | None) -> Survey:
    """What the broker's start does with its disk counts for each of its replicas, unless it ran since."""
    if _running(survey, reading.broker) or (registration is not None and _came_back(reading, registration)):
        return survey
    # A stray of a partition that is assigned to the broker, without a log: it begins an empty one.
    empty = survey.tp not in reading.logs and survey.tp in {stray.tp for stray in reading.strays}
    certain = [one for one in reading.at_start if not one.if_assigned]
    repair = empty or any(one.to_repair for one in certain)
    copy = any(not one.to_repair for one in certain)
    replicas = tuple(
        replica._replace(
            disk_to_repair=replica.disk_to_repair or repair, disk_to_copy=replica.disk_to_copy or copy
        )
        if replica.broker == reading.broker
        else replica
        for replica in survey.replicas
    )
    return survey._replace(replicas=replicas)


def _refusal(
    survey: Survey, reading: DiskReading, disk: DiskLog, registration: RegistrationFacts | None
) -> str | None:
    """Why the disk's log may not stand for the replica's, None where it may."""
    state = survey.state
    running = _running(survey, reading.broker)
    if running is not None:
        return running
    if not disk.topic_id:
        return "the disk does not have the topic's id (no partition.metadata)"
    if disk.topic_id != state.topic_id:
        return f"another topic id: the disk has {disk.topic_id}, the cluster {state.topic_id}"
    if disk.lost_tail is not None:
        return f"records are missing at the end of the log on the disk: {disk.lost_tail}"
    return _stale(survey, reading, disk, registration)


def _running(survey: Survey, broker: int) -> str | None:
    """Why the broker may be writing to its disk."""
    replica = survey.replica(broker)
    if replica is not None and not isinstance(replica.log, Unknown):
        return f"broker {broker} answers itself"
    if replica is None or replica.electable or broker == survey.state.leader:
        return f"broker {broker} is registered and not fenced: it may be writing to its disk"
    return None


def _stale(
    survey: Survey, reading: DiskReading, disk: DiskLog, registration: RegistrationFacts | None
) -> str | None:
    broker, state = reading.broker, survey.state
    if registration is not None:
        back = _came_back(reading, registration)
        if back is not None:
            return back
        directory = registration.directories.get((state.topic_id, state.partition), "")
        if disk.directory_id and directory and directory != disk.directory_id:
            return f"another directory id: the disk has {disk.directory_id}, the cluster {directory}"
    newest = disk.log.leader_epoch
    if newest > state.leader_epoch:
        return f"leader epoch {newest} on the disk, and {state.leader_epoch} in the cluster: it is another history"
    led_last = state.isr == (broker,) or (not state.isr and state.last_known_elr == (broker,))
    # The controller raises the epoch once more when it takes the leader away.
    if state.offline and led_last and newest < state.leader_epoch - 1:
        led = f"broker {broker} led up to leader epoch {state.leader_epoch - 1}"
        why = "the broker ran after it was read, or its leader-epoch-checkpoint is not whole"
        return f"{led}, and the disk knows of epoch {newest} at most: {why}"
    return None


def _came_back(reading: DiskReading, registration: RegistrationFacts) -> str | None:
    if registration.registered_at is None:
        return None
    offset, time_ms = registration.registered_at
    # By offset where the disk tells it: the clocks of two hosts may differ.
    if reading.metadata_end is not None:
        back = offset >= reading.metadata_end
    elif time_ms is None:
        return (
            f"when broker {reading.broker} registered last is not known: scan its metadata log too"
            " (the log dir with __cluster_metadata-0)"
        )
    else:
        back = time_ms > reading.read_ms
    return f"broker {reading.broker} registered again after its disk was read" if back else None
