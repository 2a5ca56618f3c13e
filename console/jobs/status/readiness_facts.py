"""What the checks of readiness look at, read once of an open cluster and of this host."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from backends.base.answers import LogDir
from backends.base.errors import BackendError, NoLeader
from backends.base.metadata_log import MetadataLogSource
from backends.base.time_limit import time_limit
from console.jobs.status.check_report import missing_rights
from console.journal.state_access import why_unusable
from console.paths import named_state_dir
from console.provenance import now_ms
from console.reading.cluster_reading import topics_of
from console.reading.quorum_state import QuorumReading, read_quorum_state
from console.reading.read_cluster import read_state
from console.reading.remembered_voters import reading_of_everybody
from recovery.model import Unknown, Why
from recovery.readiness import DirRoom, OperatorHost, ReadinessFacts
from recovery.wording.cluster_health_text import stale_reason
from recovery.wording.quantity_text import counted, printable

if TYPE_CHECKING:
    from backends.base.check_report import CheckReport
    from backends.base.membership import Membership
    from backends.base.protocol import Backend

LOG_SECONDS = 60.0
"""How long the metadata log is read, at the most: all of it, to see where it begins."""
ELR_METADATA_VERSION = 23
"""``metadata.version`` 4.0-IV1, which ``eligible.leader.replicas.version`` 1 needs (Kafka's
EligibleLeaderReplicasVersion).
"""
REASSIGNMENT_CALL = "AlterPartitionReassignments"
"""Its version 1 came with 4.1, and with it two changes of the controller that no request tells."""


async def read_facts(backend: Backend, at_ms: int) -> tuple[CheckReport, ReadinessFacts]:
    """Asks the cluster for everything that the checks look at. Raises BackendError where nothing could be asked."""
    await backend.open()
    checked = await backend.check()
    reading = await read_state(backend, checked.cluster, checked.contacts)
    states = reading.partitions.states
    configs = await backend.topic_configs(topics_of(states))
    before = now_ms()
    quorum = await _quorum(backend)
    after = now_ms()
    rights, not_known = missing_rights(checked.rights)
    offers_4_1 = _offers_4_1(checked)
    dirs = {broker: _rooms(listed) for broker, listed in reading.log_dirs.items()}
    return checked, ReadinessFacts(
        now_ms=at_ms,
        brokers=checked.cluster.brokers,
        reach={one.broker: one.problem for one in checked.reach},
        states=states,
        operator=_operator(None if backend.simulated else (before, after)),
        rights=rights,
        rights_unknown=not_known,
        unseen=_hidden_topics(checked),
        configs=configs,
        elr=checked.cluster.elr_enabled,
        elr_offered=checked.capabilities.features.get("metadata.version", 0) >= ELR_METADATA_VERSION,
        blocks_on_dead_leader=_blocks(checked.cluster.elr_enabled, offers_4_1),
        leaderless=printable(stale_reason(reading.health)),
        quorum=quorum if isinstance(quorum, Unknown) else quorum.health,
        findings=() if isinstance(quorum, Unknown) else quorum.findings,
        asked=None if isinstance(quorum, Unknown) else quorum.asked,
        static_upgrade=offers_4_1 is True,
        log_since_ms=await _log_since(backend),
        dirs=dirs,
        largest_log=_largest(reading.log_dirs),
    )


def _hidden_topics(checked: CheckReport) -> str:
    if isinstance(checked.hidden, Unknown):
        return f"whether there are topics that this user may not see is not known ({checked.hidden.detail})"
    return f"{counted(len(checked.hidden), 'topic')} may not be seen by this user" if checked.hidden else ""


def _offers_4_1(checked: CheckReport) -> bool | None:
    call = next((one for one in checked.capabilities.calls if one.call == REASSIGNMENT_CALL), None)
    if call is None or isinstance(call.versions, Unknown):
        return None
    return call.versions[1] >= 1


def _blocks(elr: bool | Unknown, offers_4_1: bool | None) -> bool | None:
    """KAFKA-19522 takes the ELR, and a controller before 4.1."""
    if elr is False or offers_4_1:
        return False
    return None if isinstance(elr, Unknown) or offers_4_1 is None else True


async def _quorum(backend: Backend) -> QuorumReading | Unknown:
    membership: Membership | None = getattr(backend, "membership", None)
    if membership is None:
        return Unknown(Why.NOT_OFFERED, "this cluster has no quorum that could be asked")
    try:
        await membership.open()
        return await reading_of_everybody(membership, await read_quorum_state(membership))
    except NoLeader as error:
        return Unknown(Why.FAILED, str(error))
    except BackendError as error:
        return Unknown(Why.NOT_ANSWERED, str(error))


async def _log_since(backend: Backend) -> int | Unknown | None:
    source = MetadataLogSource()
    try:
        async with time_limit(backend, LOG_SECONDS):
            log = await source.read_on(backend)
    except TimeoutError:
        return Unknown(Why.NOT_ANSWERED, f"it was not read within {LOG_SECONDS:g} s")
    except BackendError as error:
        return Unknown(Why.NOT_ANSWERED, str(error))
    return log.history.since_ms if log.snapshot_offset else None


def _rooms(listed: Sequence[LogDir] | Unknown) -> tuple[DirRoom, ...] | Unknown:
    if isinstance(listed, Unknown):
        return listed
    return tuple(
        DirRoom(one.broker, one.path, one.error, one.total_bytes, one.usable_bytes) for one in listed
    )


def _largest(log_dirs: Mapping[int, Sequence[LogDir] | Unknown]) -> int | None:
    listed = [dirs for dirs in log_dirs.values() if not isinstance(dirs, Unknown)]
    return max((replica.size for dirs in listed for one in dirs for replica in one.replicas), default=None)


def _operator(clock_ms: tuple[int, int] | None) -> OperatorHost:
    here = Path.cwd()
    try:
        free: int | None = shutil.disk_usage(here).free
    except OSError:
        free = None
    return OperatorHost(named_state_dir() is not None, why_unusable(), free, str(here), clock_ms)
