"""A reading with the logs of dead brokers, as their disks have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from backends.base.errors import BackendError
from backends.base.membership import Membership
from backends.base.protocol import Backend
from backends.base.time_limit import time_limit
from console.errors import InputError
from console.reading.cluster_reading import ClusterReading
from recovery.disk_evidence import DiskReading, EvidenceUse, RegistrationFacts, with_disks
from recovery.membership.directory_ids import directory_id
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.log_changes import IN_SNAPSHOT, BrokerSubject
from recovery.metadata_log.records import RegisterBrokerRecord

_SECONDS = 30.0
"""For the metadata log."""


def refuse_other_clusters(readings: Sequence[DiskReading], cluster_id: str) -> None:
    """Raises InputError where a disk belongs to another cluster."""
    for disk in readings:
        if disk.cluster_id != cluster_id:
            raise InputError(
                f"{disk.source}: is evidence of cluster {disk.cluster_id}; this one is {cluster_id}"
            )


async def with_evidence(
    backend: Backend, reading: ClusterReading, readings: tuple[DiskReading, ...]
) -> ClusterReading:
    """The reading in which the disks count as answers. Raises InputError."""
    if not readings:
        return reading
    refuse_other_clusters(readings, reading.cluster.cluster_id)
    registrations, unchecked = await read_registrations(backend, readings)
    surveys, refused = with_disks(reading.surveys, readings, registrations)
    used = tuple(
        sum(
            replica.broker == disk.broker and replica.disk_read_ms is not None
            for survey in surveys
            for replica in survey.replicas
        )
        for disk in readings
    )
    return replace(reading, surveys=surveys, evidence=EvidenceUse(readings, used, refused, unchecked))


async def read_registrations(
    backend: Backend, readings: Sequence[DiskReading]
) -> tuple[dict[int, RegistrationFacts], str | None]:
    """What the metadata log tells of those brokers, or why it could not be read."""
    membership: Membership | None = getattr(backend, "membership", None)
    if membership is None:
        return {}, "this cluster's metadata log cannot be read"
    try:
        async with time_limit(backend, _SECONDS):
            log = await membership.metadata_log()
            await log.read()
    except TimeoutError:
        return {}, f"the metadata log was not read within {_SECONDS:.0f} s"
    except BackendError as error:
        return {}, str(error)
    return registration_facts(log.history, readings), None


def registration_facts(
    history: MetadataHistory, readings: Sequence[DiskReading]
) -> dict[int, RegistrationFacts]:
    """What the metadata log tells of the brokers whose disks were read."""
    return {disk.broker: _facts(history, disk.broker) for disk in readings}


def _facts(history: MetadataHistory, broker: int) -> RegistrationFacts:
    registered: tuple[int, int | None] | None = None
    for row in history.of(BrokerSubject(broker)):
        if isinstance(row.change, RegisterBrokerRecord):
            in_snapshot = row.batch == IN_SNAPSHOT
            # Kafka takes the offset of a registration as the broker's epoch.
            registered = (row.change.broker_epoch, None) if in_snapshot else (row.offset, row.time_ms)
    directories: dict[tuple[str, int], str] = {}
    for subject in history.partitions():
        intervals = history.intervals(subject)
        directory = intervals[-1].registration.directory(broker) if intervals else None
        if directory is not None and _is_real(directory):
            directories[(subject.topic_id, subject.partition)] = directory
    return RegistrationFacts(registered, directories)


def _is_real(directory: str) -> bool:
    """Not one of the ids that stand for unassigned, lost and migrating."""
    try:
        return bool(directory_id(directory))
    except ValueError:
        return False
