"""Judges what each choice loses of the acknowledged records, with the metadata log where it can be read."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable, Mapping, Sequence
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
    configs: Mapping[str, Mapping[str, str] | Unknown] = MappingProxyType({}),
) -> JudgedPartitions:
    """The verdicts of every partition without a leader, by ``copy`` where the active controller's metadata log
    cannot be read as far (:meth:`MetadataLogSource.or_copy`); without a ``source`` it is read for this alone.
    ``failed_before`` are log dirs that had failed, of brokers that list none now, with what was on them;
    ``configs`` of topics that were asked for already. Raises BackendError.

    The metadata log is read after the survey, so that it shows each restart of a broker that answered.
    """
    offline = [survey for survey in surveys if survey.state.offline]
    if not offline:
        return JudgedPartitions({}, NOT_ASKED)
    topics = list(dict.fromkeys(survey.state.topic for survey in offline))
    source = source or MetadataLogSource()
    missing = [topic for topic in topics if topic not in configs]
    more, unread = await asyncio.gather(backend.topic_configs(missing), source.read(backend))
    configs = {**configs, **more}
    history, copied = source.or_copy(copy)
    by_copy = copy is not None and history is copy.history
    refused: list[Unknown] = []
    found: dict[TopicPartition, PartitionVerdicts] = {}
    disks = FailedDisks(log_dirs, failed_before, history)
    judge = PartitionJudge(elr_enabled, history, backend.file_answers(), copied=copied)
    for number, survey in enumerate(offline):
        if number % 200 == 0:
            await asyncio.sleep(0)  # thousands of partitions take seconds; here it can be cancelled
        if by_copy and isinstance(in_sync := judge.in_sync(survey), Unknown):
            refused.append(in_sync)
        config = configs.get(survey.state.topic, NOT_ASKED)
        found[survey.tp] = judge.verdicts(survey, config, disks.under(survey))
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


class PartitionJudge:
    """Gives verdicts by one metadata log and by what brokers answered about their own files. What the log tells of
    brokers is read once, and partitions for which all of it is equal are judged once: a log may tell of tens of
    thousands.

    ``copied``: the log may have gone on since.
    """

    def __init__(
        self,
        elr_enabled: bool | Unknown,
        history: MetadataHistory | Unknown,
        file_answers: FileAnswers = MappingProxyType({}),
        *,
        copied: bool = False,
    ) -> None:
        self._elr_enabled = elr_enabled
        self._history = history
        self._read = (
            None
            if isinstance(history, Unknown)
            else InSyncHistories(history, copied=copied, file_answers=file_answers)
        )
        self._alike: dict[Hashable, PartitionVerdicts] = {}

    def in_sync(self, survey: Survey) -> InSyncHistory | Unknown:
        """The partition's part of the metadata log, or why it cannot be used."""
        if self._read is None:
            assert isinstance(self._history, Unknown)
            return self._history
        return self._read.of(survey)

    def verdicts(
        self,
        survey: Survey,
        config: Mapping[str, str] | Unknown,
        failed_disks: frozenset[int] = frozenset(),
    ) -> PartitionVerdicts:
        """The verdicts of one partition; ``config`` is its topic's, ``failed_disks`` are the brokers whose disks
        failed under it.
        """
        settings = config if isinstance(config, Unknown) else tuple(sorted(config.items()))
        key = (_likeness(survey, self._history), settings, failed_disks)
        known = self._alike.get(key)
        if known is None:
            known = _verdicts(survey, self._elr_enabled, config, self.in_sync(survey), failed_disks)
            self._alike[key] = known
        return known


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
