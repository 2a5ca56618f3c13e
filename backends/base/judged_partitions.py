"""Judges what each choice loses of the acknowledged records, with the metadata log where it can be read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from backends.base.answers import LogDir
from backends.base.failed_disks import FailedDisks, LogDirs
from backends.base.file_memory import FileAnswers
from backends.base.metadata_log import MetadataLogSource
from backends.base.protocol import Backend
from recovery.acknowledged.candidate_verdicts import partition_verdicts
from recovery.acknowledged.from_metadata_log import InSyncHistories
from recovery.acknowledged.in_sync_history import InSyncHistory
from recovery.acknowledged.partition_facts import NOT_ASKED, PartitionFacts
from recovery.acknowledged.verdict import PartitionVerdicts
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.log_changes import PartitionSubject
from recovery.model import PartitionState, Survey, TopicPartition, Unknown

if TYPE_CHECKING:
    # Reading a log takes aiokafka, which executors of the drills do not have.
    from backends.metadata_log.copied_log import CopiedMetadataLog

UNCLEAN_ELECTION = "unclean.leader.election.enable"


class CopyUse(NamedTuple):
    """What became of a copied metadata log. ``live``: why the active controller's was not read to its end; None: it
    was. ``used`` counts the partitions that the copy was used for, and ``refused`` has the
    reason for each of the others.
    """

    copy: CopiedMetadataLog
    live: Unknown | None
    used: int = 0
    refused: tuple[Unknown, ...] = ()

    @property
    def needed(self) -> bool:
        """Not where the active controller's log was read further than the copy goes."""
        return self.live is not None and bool(self.used or self.refused)


class JudgedPartitions(NamedTuple):
    """Of each partition without a leader. ``history`` is the metadata log that was used, or why none was, and
    ``copied`` whether the cluster may have gone on since. ``copy_use``: what became of a copy of it; None: there
    was none.
    """

    verdicts: Mapping[TopicPartition, PartitionVerdicts]
    history: MetadataHistory | Unknown
    copied: bool = False
    copy_use: CopyUse | None = None


async def judged(
    backend: Backend,
    elr_enabled: bool | Unknown,
    surveys: Iterable[Survey],
    log_dirs: LogDirs = MappingProxyType({}),
    failed_before: Sequence[LogDir] = (),
    *,
    copy: CopiedMetadataLog | None = None,
    source: MetadataLogSource | None = None,
) -> JudgedPartitions:
    """The verdicts of every partition without a leader, by ``copy`` where the active controller's metadata log
    cannot be read as far (:meth:`MetadataLogSource.or_copy`); without a ``source`` it is read for this alone.
    ``failed_before`` are log dirs that had failed, of brokers that list none now, with what was on them. Raises
    BackendError.

    The metadata log is read after the survey, so that it shows each restart of a broker that answered.
    """
    offline = [survey for survey in surveys if survey.state.offline]
    if not offline:
        return JudgedPartitions({}, NOT_ASKED)
    topics = list(dict.fromkeys(survey.state.topic for survey in offline))
    source = source or MetadataLogSource()
    configs, unread = await asyncio.gather(backend.topic_configs(topics), source.read(backend))
    history, copied = source.or_copy(copy)
    by_copy = copy is not None and history is copy.history
    refused: list[Unknown] = []
    found: dict[TopicPartition, PartitionVerdicts] = {}
    alike: dict[Hashable, PartitionVerdicts] = {}
    disks = FailedDisks(log_dirs, failed_before, history)
    in_sync_of = _in_sync_reader(history, backend.file_answers(), copied=copied)
    for number, survey in enumerate(offline):
        if number % 200 == 0:
            await asyncio.sleep(0)  # thousands of partitions take seconds; here it can be cancelled
        failed = disks.under(survey)
        key = (_likeness(survey, history), failed)
        reported = None if by_copy else alike.get(key)
        if reported is None:
            config = configs.get(survey.state.topic, NOT_ASKED)
            in_sync = in_sync_of(survey)
            if by_copy and isinstance(in_sync, Unknown):
                refused.append(in_sync)
            reported = _verdicts(survey, elr_enabled, config, in_sync, failed)
            alike[key] = reported
        found[survey.tp] = reported
    used = len(found) - len(refused) if by_copy else 0
    use = None if copy is None else CopyUse(copy, unread, used, tuple(refused))
    return JudgedPartitions(found, history, copied, use)


_AFTER_NUMBER = PartitionState._fields.index("partition") + 1


def _likeness(survey: Survey, history: MetadataHistory | Unknown) -> Hashable:
    """Partitions of a topic for which this is equal have equal verdicts."""
    if survey.compacted is not None:
        return survey.tp  # such logs, compared batch by batch, are seldom equal
    state = survey.state
    changes = (
        None
        if isinstance(history, Unknown)
        else history.likeness(PartitionSubject(state.topic_id, state.partition))
    )
    return state.topic, state[_AFTER_NUMBER:], survey[1:], changes


def judged_partition(
    survey: Survey,
    elr_enabled: bool | Unknown,
    config: Mapping[str, str] | Unknown,
    history: MetadataHistory | Unknown,
    failed_disks: frozenset[int] = frozenset(),
    *,
    file_answers: FileAnswers = MappingProxyType({}),
    copied: bool = False,
) -> PartitionVerdicts:
    """The verdicts of one partition, from its topic's configuration, the metadata log, the brokers whose disks
    failed under it, and what brokers answered about their own files.

    ``copied``: the log may have gone on since.
    """
    in_sync = _in_sync_reader(history, file_answers, copied=copied)(survey)
    return _verdicts(survey, elr_enabled, config, in_sync, failed_disks)


def _in_sync_reader(
    history: MetadataHistory | Unknown, file_answers: FileAnswers, *, copied: bool
) -> Callable[[Survey], InSyncHistory | Unknown]:
    """Takes a partition's part out of the metadata log."""
    if isinstance(history, Unknown):
        return lambda _: history
    return InSyncHistories(history, copied=copied, file_answers=file_answers).of


def _verdicts(
    survey: Survey,
    elr_enabled: bool | Unknown,
    config: Mapping[str, str] | Unknown,
    in_sync: InSyncHistory | Unknown,
    failed_disks: frozenset[int],
) -> PartitionVerdicts:
    compacted = config if isinstance(config, Unknown) else "compact" in config.get("cleanup.policy", "")
    return partition_verdicts(
        PartitionFacts(
            survey,
            elr_enabled,
            elects_uncleanly(config),
            failed_disks=failed_disks,
            compacted=compacted,
            in_sync=in_sync,
        )
    )


def elects_uncleanly(config: Mapping[str, str] | Unknown) -> bool | Unknown:
    """Whether a topic with that effective configuration elects uncleanly by itself."""
    if isinstance(config, Unknown):
        return config
    value = config.get(UNCLEAN_ELECTION)
    return NOT_ASKED if value is None else value == "true"
