"""The verdict of one choice: what it loses of the acknowledged records, the evidence, and what was not checked.

*Acknowledged*: confirmed to an acks=all producer, and then on every member of an ISR of at least min ISR.
*Committed*: below a leader's high watermark, so readable by consumers.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from recovery.model import EpochSpan
from recovery.old_leaders import OldLeader

if TYPE_CHECKING:
    # Histories of the metadata log, which the first frame of the console does without.
    from recovery.acknowledged.partition_facts import PartitionFacts


class VerdictKind(StrEnum):
    """NONE: no acknowledged record that still exists anywhere is lost, if the conditions hold. SOME: at least so
    many committed offsets are lost. OPEN: neither is proved.
    """

    NONE = "none"
    SOME = "some"
    OPEN = "open"


class VerdictValue(StrEnum):
    """What a verdict says, with its conditions: the words of every table, file and count.

    NONE: no acknowledged record is lost, and no condition is left. UNCHECKED: none, if conditions hold that nothing
    speaks against and that were not checked. IN_DOUBT: none, if conditions hold of which one has signs against it.
    SOME, OPEN: as :class:`VerdictKind`.
    """

    NONE = "none"
    UNCHECKED = "none, unchecked"
    IN_DOUBT = "none, in doubt"
    SOME = "some"
    OPEN = "open"

    @property
    def kind(self) -> VerdictKind:
        return _KINDS.get(self, VerdictKind.NONE)


_KINDS = {VerdictValue.SOME: VerdictKind.SOME, VerdictValue.OPEN: VerdictKind.OPEN}


class EvidenceKind(StrEnum):
    """The evidence of a verdict.

    - HIGH_WATERMARK: ``brokers`` had a high watermark of ``offset``: everything below it was committed.
    - EVERY_REPLICA_ANSWERED: nothing that the candidate lacks can be on a log that is not known.
    - IN_SYNC_NOW: ``brokers`` are in the ISR or ELR, and hold everything that was committed.
    - FEW_SILENT: fewer replicas than min ISR hold a log that is not known, so every acknowledged record is on one
      of ``brokers``, and the best of their logs has them all.
    - NEVER_MIN_ISR_WITHOUT: since ``brokers`` left the ISR (at ``since_ms``) the ISR never reached min ISR, so
      nothing was acknowledged without them (metadata log).
    - MIN_ISR_WITHOUT: since ``since_ms`` the ISR reached min ISR without the candidate (metadata log): records
      may have been acknowledged that it lacks.
    - UNCLEAN_ELECTION: of ``brokers`` at ``since_ms`` (metadata log): records of before may be on other replicas.
    - STILL_WRITING: the logs of ``brokers`` may still grow: they act as leader in an older epoch than the
      partition's, or may follow such a leader (:mod:`recovery.old_leaders`).
    - RECORDS_LOST: ``brokers`` were in the ISR when ``offset`` was committed, restarted since, and lack records
      below it (metadata log): a host lost power, or a disk was replaced.
    - DISK_REPLACED: ``brokers`` were in the ISR, registered again without the log dir that held this replica, and
      have an empty log (metadata log): what they held is on the old disk, if on any.
    - LED_ALONE: from ``since_ms`` to ``until_ms`` a leader wrote, and ``brokers`` were its whole ISR, whose logs
      are not known (metadata log): what it took then is only on their logs, acknowledged with acks=1, and with
      ``acks_all`` too where these members reached the lowest min ISR that may have been in force.
    """

    HIGH_WATERMARK = "high watermark"
    EVERY_REPLICA_ANSWERED = "every replica answered"
    IN_SYNC_NOW = "in ISR or ELR"
    FEW_SILENT = "fewer silent replicas than min ISR"
    NEVER_MIN_ISR_WITHOUT = "ISR never at min ISR without it"
    MIN_ISR_WITHOUT = "ISR at min ISR without it"
    UNCLEAN_ELECTION = "unclean election"
    RECORDS_LOST = "lost records that it had"
    STILL_WRITING = "may still take writes"
    DISK_REPLACED = "disk replaced"
    LED_ALONE = "led alone"


class Evidence(NamedTuple):
    """One known fact. What this kind of evidence does not have is -1 (``offset``) or None."""

    kind: EvidenceKind
    brokers: tuple[int, ...] = ()
    offset: int = -1
    since_ms: int | None = None
    until_ms: int | None = None
    acks_all: bool = False


class ConditionKind(StrEnum):
    """What a verdict assumes because it could not be checked.

    - MIN_ISR_NEVER_LOWER: min ISR was never lower than it is now; with ``brokers``: their own files, which count
      where nothing else sets min.insync.replicas, set no lower one than was assumed.
    - NO_UNCLEAN_ELECTION: no leader was elected that lacked acknowledged records; with ``since_ms``: before that.
    - SAME_REPLICAS: the replica set did not change while replicas were out of the ISR.
    - RECORDS_KEPT: at most ``tolerated`` of ``brokers`` lost records that they had: unflushed ones because their
      host lost power, or all because a disk was replaced.
    - NOT_EMPTIED: the log of ``brokers`` is empty; its disk was not replaced.
    - NO_COMPACTION_HOLES: the log cleaner removed no record from ``brokers`` whose newer one was truncated.
    - NOT_MADE_AGAIN: before the metadata log begins no topic of this name was deleted and made again: the
      snapshot may have the deleted topic's min.insync.replicas. No answer and no record shows it.
    """

    MIN_ISR_NEVER_LOWER = "min ISR was never lower"
    NO_UNCLEAN_ELECTION = "no unclean election"
    SAME_REPLICAS = "same replicas"
    RECORDS_KEPT = "no unflushed records lost"
    NO_COMPACTION_HOLES = "no compaction holes"
    NOT_EMPTIED = "the empty log was always empty"
    NOT_MADE_AGAIN = "the topic was not made again"


class Condition(NamedTuple):
    """``doubtful``: there are signs against it: these brokers started again after the time in question, and a clean
    stop would have left a record that is not there (RECORDS_KEPT), or the compacted logs differ in size.
    """

    kind: ConditionKind
    brokers: tuple[int, ...] = ()
    tolerated: int = 0
    since_ms: int | None = None
    doubtful: bool = False


class DeciderKind(StrEnum):
    """What would decide an open verdict, or check the conditions of another: an answer of one of ``brokers``, the
    disk of one of them, the metadata log, the topic's min.insync.replicas, permission to read the epochs of their
    logs, or that ``brokers`` take no writes any more, because their processes are stopped or they hear the
    controllers again.
    """

    BROKER_ANSWER = "a broker's answer"
    BROKER_DISK = "a broker's disk"
    METADATA_LOG = "the metadata log"
    MIN_ISR = "min.insync.replicas"
    LINEAGE = "the epochs of a log"
    END_OF_WRITES = "the end of an old leader"


class Decider(NamedTuple):
    """``every``: all of ``brokers`` are needed, not any one of them."""

    kind: DeciderKind
    brokers: tuple[int, ...] = ()
    every: bool = False


class Verdict(NamedTuple):
    """What electing one replica loses.

    ``committed`` are the spans that are proved to have been committed and that it lacks; ``at_least`` is their
    number of offsets. ``at_most`` bounds the acknowledged offsets that are lost, None: no bound known; it can be
    below ``at_least`` where offsets were committed and never acknowledged. ``uncertain`` are the spans on known
    logs that it lacks and that may have been acknowledged; ``appended`` counts the offsets that it lacks and that
    were, as far as is known, appended only. ``since_ms``: since when records may have been acknowledged without
    it (ms since the epoch), None: not known. ``expired`` counts the older offsets that other replicas still hold
    and its log start is beyond: retention or DeleteRecords removed them. ``decided_by``: what would decide it, or
    check its conditions; empty: nothing can any more.
    """

    kind: VerdictKind
    at_least: int = 0
    at_most: int | None = None
    committed: tuple[EpochSpan, ...] = ()
    uncertain: tuple[EpochSpan, ...] = ()
    appended: int = 0
    expired: int = 0
    since_ms: int | None = None
    evidence: tuple[Evidence, ...] = ()
    conditions: tuple[Condition, ...] = ()
    decided_by: tuple[Decider, ...] = ()

    @property
    def value(self) -> VerdictValue:
        if self.kind is not VerdictKind.NONE:
            return VerdictValue.SOME if self.kind is VerdictKind.SOME else VerdictValue.OPEN
        if not self.conditions:
            return VerdictValue.NONE
        return VerdictValue.IN_DOUBT if self.doubtful else VerdictValue.UNCHECKED

    @property
    def none(self) -> bool:
        """Whether it loses none, if the conditions hold. Where there are none it is *proved*: see :attr:`value`."""
        return self.kind is VerdictKind.NONE

    @property
    def proved_none(self) -> bool:
        return self.value is VerdictValue.NONE

    @property
    def exact(self) -> bool:
        """Whether it loses what was committed (``at_least``) and nothing else: every replica answered, and nothing
        was left unchecked.
        """
        return self.compares_logs and not self.conditions and 0 < self.at_least == self.at_most

    @property
    def compares_logs(self) -> bool:
        """Whether it rests on the logs alone, all of which are known. What no log holds any more (its host lost
        power, say) may have been acknowledged all the same: the best log need not have every acknowledged record.
        """
        return any(one.kind is EvidenceKind.EVERY_REPLICA_ANSWERED for one in self.evidence)

    @property
    def empty(self) -> bool:
        """Whether the log itself is empty. Then it must not be called complete."""
        return any(condition.kind is ConditionKind.NOT_EMPTIED for condition in self.conditions)

    @property
    def doubtful(self) -> bool:
        """Whether there are signs against one of its conditions."""
        return any(condition.doubtful for condition in self.conditions)


class AutomaticElectionKind(StrEnum):
    """The rule by which Kafka elects a replica as soon as its broker is unfenced."""

    ISR_MEMBER = "ISR member"
    ELR_MEMBER = "ELR member"
    LAST_KNOWN_LEADER = "last known leader"
    UNCLEAN_TOPIC = "unclean.leader.election.enable"


class LaterLeader(NamedTuple):
    """``broker`` led when another one was in the ISR no more (metadata log): what it took then is cut off when that
    one leads. ``log_known``: its log can be read now.
    """

    broker: int
    log_known: bool
    failed_disk: bool = False


class AutomaticElection(NamedTuple):
    """Kafka elects ``broker`` by itself when it returns, before any other.

    ``checks_records``: Kafka does so only after a clean shutdown (an ELR member; an ISR member with the ELR on;
    not where the topic elects uncleanly by itself, nor where it is the only member and the last known leader, which
    the controller elects uncleanly then). Otherwise it is elected whatever its log lost. ``shut_down``:
    it was in a controlled shutdown when it was last seen (metadata log), or its disk, which was read, shows a clean
    stop; None: not known. A clean stop of a broker that leads nothing leaves no record. ``failed_disk``: its
    disk is known to have failed, so that it returns with an empty log or cannot be elected. ``verdict``: what its
    election loses; None where its log is not known. ``cuts_off``: it is in the ISR since an unclean election
    (metadata log), and the logs of these brokers hold records from before that its return may cut off.
    ``led_after``: who led without it since. ``keeps_acked``: with its log as it was when it stopped it holds every
    record that was acknowledged with acks=all (metadata log). ``keeps_all``: then it also holds whatever a known
    log holds, and what the last leader took, which it was itself.
    """

    broker: int
    kind: AutomaticElectionKind
    checks_records: bool
    failed_disk: bool
    verdict: Verdict | None
    shut_down: bool | None = None
    cuts_off: tuple[int, ...] = ()
    led_after: tuple[LaterLeader, ...] = ()
    keeps_acked: bool = False
    keeps_all: bool = False


class PartitionVerdicts(NamedTuple):
    """The verdicts of one partition: of each replica that answered and could be judged, by broker, and who is
    elected without anybody's decision, in assignment order. ``facts`` is what they rest on; of partitions that are
    in the same state, those of the first. ``old_leaders`` still take writes. ``steady``: of a topic that may be
    compacted, the replicas with known logs, those first that are in the ISR, or were until they left it last, for
    the longest (metadata log): such a replica has seen each deletion before the log cleaner removed it elsewhere.
    """

    candidates: dict[int, Verdict]
    automatic_elections: tuple[AutomaticElection, ...] = ()
    facts: PartitionFacts | None = None
    old_leaders: tuple[OldLeader, ...] = ()
    steady: tuple[int, ...] = ()

    def best(self, order: tuple[int, ...]) -> Verdict | None:
        """The verdict of the first of ``order`` that has one."""
        return next((self.candidates[b] for b in order if b in self.candidates), None)
