"""What the proofs on acknowledged records believe of Kafka.

A verdict is right as long as Kafka behaves as these sentences say. Beside each stands where Kafka's source says so,
and which tests on real Kafka would fail if it were false; docs/proof.md shows all of them. What no test on Kafka
can show is not believed: it is a condition, and the verdict prints it.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class KafkaMethod(NamedTuple):
    """A method in Kafka's source: the full name of its class, and its own. A class may move between releases."""

    owner: str
    name: str


class BeliefDetails(NamedTuple):
    """``sentence`` says what Kafka does. ``sources``: each release has at least one of them. ``tests`` on real
    Kafka, as pytest names them.
    """

    sentence: str
    sources: tuple[KafkaMethod, ...]
    tests: tuple[str, ...]


_ADVICE = "tests/live/test_advice_incidents.py"
_BY_MIN_ISR = "tests/live/test_advice_by_min_isr.py"
_WITH_ELR = "tests/live/test_advice_with_elr.py"
_ALONE = "tests/live/test_advice_alone.py"
_CUT_OFF = "tests/live/test_cut_off_leader.py"
_PARTITION = "kafka.cluster.Partition"


def _details(sentence: str, sources: tuple[str, ...], *tests: str) -> BeliefDetails:
    methods = (source.rpartition(".") for source in sources)
    return BeliefDetails(sentence, tuple(KafkaMethod(owner, name) for owner, _, name in methods), tests)


class Belief(Enum):
    """One thing that Kafka is believed to do."""

    ACKS_ALL_NEEDS_THE_ISR = _details(
        "A leader confirms acks=all only when every ISR member has the record and the ISR has min ISR members."
        " While the ISR is smaller it refuses acks=all, and its high watermark stands still.",
        (f"{_PARTITION}.appendRecordsToLeader", f"{_PARTITION}.checkEnoughReplicasReachOffset"),
        f"{_ADVICE}::test_a_stale_long_tail_is_not_elected",
    )
    ISR_IS_IN_THE_METADATA_LOG = _details(
        "The ISR by which a leader confirms is in the metadata log, or larger than the one there: a leader counts a"
        " member that joins at once, and a member that left only when the controller has written it.",
        (f"{_PARTITION}.prepareIsrShrink", f"{_PARTITION}.prepareIsrExpand"),
        f"{_ADVICE}::test_records_acknowledged_under_a_lower_min_isr_are_waited_for",
        f"{_ADVICE}::test_the_last_isr_member_that_lost_its_tail_is_not_started_before_its_disk_was_read",
    )
    SAME_EPOCH_AND_OFFSET = _details(
        "Logs that have a record of the same epoch at the same offset are equal up to there: a follower cuts its"
        " log back to what the leader has of each epoch before it fetches more (KIP-101).",
        ("kafka.server.AbstractFetcherThread.truncateOnFetchResponse",),
        f"{_ADVICE}::test_a_stale_long_tail_is_not_elected",
        f"{_ADVICE}::test_a_high_watermark_that_contradicts_the_ranking_asks_for_a_rescue",
    )
    WHO_JOINS_THE_ISR = _details(
        "A leader adds a replica to the ISR only when the replica's log has reached the high watermark and the"
        " start of the leader's epoch; so does it with a replica that a reassignment adds, also where the change"
        " that completes the reassignment elects that replica.",
        (
            f"{_PARTITION}.isFollowerInSync",
            "org.apache.kafka.controller.PartitionChangeBuilder.completeReassignmentIfNeeded",
        ),
        f"{_ADVICE}::test_the_last_isr_member_that_lost_its_tail_is_not_started_before_its_disk_was_read",
        f"{_ADVICE}::test_a_replica_that_a_reassignment_added_holds_every_acknowledged_record",
    )
    CLEAN_LEADERS = _details(
        "A leader that is elected cleanly was in the ISR, or in the ELR if nobody was left in the ISR. Any other"
        " election is in the metadata log with the recovery state RECOVERING.",
        ("org.apache.kafka.controller.PartitionChangeBuilder.electAnyLeader",),
        f"{_ADVICE}::test_the_leader_of_an_unclean_election_is_not_brought_back_over_older_records",
        f"{_WITH_ELR}::test_a_member_of_the_elr_that_was_stopped_cleanly_is_brought_back",
        f"{_WITH_ELR}::test_a_killed_last_known_leader_is_elected_uncleanly_whatever_it_lost",
    )
    HIGH_WATERMARK_WAS_COMMITTED = _details(
        "Everything below a high watermark that a replica knows was committed on the branch that its log holds: a"
        " follower takes the mark from its leader, no further than its own log.",
        (
            "kafka.server.ReplicaFetcherThread.processPartitionData",
            "kafka.server.ReplicaManager.checkpointHighWatermarks",
        ),
        f"{_ADVICE}::test_a_high_watermark_that_contradicts_the_ranking_asks_for_a_rescue",
    )
    MIN_ISR_OF_THE_LEADER = _details(
        "The min ISR in force is that of the broker that leads: the topic's value, else the broker's own dynamic"
        " value, else the cluster's, else that of the broker's file; no more than the partition has replicas.",
        (
            "kafka.server.KafkaConfig.extractLogConfigMap",
            "org.apache.kafka.server.config.AbstractKafkaConfig.extractLogConfigMap",
        ),
        f"{_BY_MIN_ISR}::test_a_value_of_one_broker_says_nothing_of_another_one",
    )
    CONFIG_BY_NAME = _details(
        "A topic that is deleted and made again starts without the old values, though the metadata log has no"
        " record that removes them. A node that starts again may read the old value back from the log, and a"
        " controller writes it into its next snapshot then: a value that is in a snapshot with its topic counts as"
        " the topic's own only under a condition.",
        ("org.apache.kafka.image.ConfigurationsDelta.replay",),
        f"{_BY_MIN_ISR}::test_a_topic_made_again_has_none_of_the_old_min_isr",
        "tests/live/test_min_isr_of_snapshot.py::test_the_value_of_a_snapshot_may_be_that_of_a_deleted_topic",
    )
    TOPICS_BEFORE_CONFIGS = _details(
        "A broker applies the leaderships of a metadata delta before its configurations: a new leader confirms by"
        " the old min ISR for a moment.",
        ("kafka.server.metadata.BrokerMetadataPublisher.onMetadataUpdate",),
        f"{_BY_MIN_ISR}::test_a_new_leader_acknowledges_by_the_old_min_isr_for_a_moment",
    )
    FENCED_LEADER_GOES_ON = _details(
        "A leader that is cut off from the controllers goes on confirming records by the ISR that it knows, also"
        " after another replica was elected, until it hears of its successor. Its answers show that it leads.",
        ("kafka.server.ReplicaManager.applyDelta", f"{_PARTITION}.localLogWithEpochOrThrow"),
        f"{_CUT_OFF}::test_a_leader_that_is_cut_off_is_stopped_or_mended_before_anybody_is_elected",
        f"{_CUT_OFF}::test_what_a_leader_that_is_cut_off_still_takes_is_said_until_it_has_heard_of_its_successor",
    )
    RESTART_IS_REGISTERED = _details(
        "A broker that starts again registers before it is unfenced, so the metadata log has each start of a"
        " broker, with the ids of the log dirs that it found.",
        ("org.apache.kafka.controller.ClusterControlManager.registerBroker",),
        f"{_ADVICE}::test_a_follower_that_lost_its_tail_is_elected_only_by_somebody_who_takes_it_that_it_did_not",
    )
    UNCLEAN_START_LEAVES_THE_ELR = _details(
        "With the ELR on, a broker that starts again without a clean shutdown leaves every ISR and ELR before it"
        " can be elected (KIP-966). While the ELR is off the broker keeps its place in the ELRs of before.",
        (
            "org.apache.kafka.controller.ReplicationControlManager.handleBrokerUncleanShutdown",
            "org.apache.kafka.controller.ReplicationControlManager.handleBrokerShutdown",
        ),
        f"{_WITH_ELR}::test_a_member_that_returned_uncleanly_is_not_elected_before_the_clean_one",
        "tests/live/test_elr_turned_off.py::test_a_killed_broker_stays_in_the_elr_only_while_the_feature_is_off",
    )
    CLEAN_STOP_WRITES_THE_LOGS = _details(
        "A clean shutdown writes every log to disk, and then the file .kafka_cleanshutdown. A broker that led"
        " nothing leaves no record of its shutdown in the metadata log.",
        (
            "kafka.log.LogManager.shutdown",
            "org.apache.kafka.storage.internals.log.LogManager.shutdown",
        ),
        f"{_ALONE}::test_who_led_alone_and_was_shut_down_is_waited_for",
        f"{_WITH_ELR}::test_a_member_of_the_elr_that_was_stopped_cleanly_is_brought_back",
    )
    COMPACTION_KEEPS_THE_NEWEST = _details(
        "The log cleaner removes a record only where the same log holds a newer one of its key, and a tombstone"
        " only some time after every older record of its key has gone from that log.",
        (
            "kafka.log.Cleaner.cleanInto",
            "org.apache.kafka.storage.internals.log.Cleaner.cleanInto",
        ),
        f"{_ALONE}::test_of_logs_that_end_alike_the_one_that_stayed_in_the_isr_is_elected",
    )
    LOG_STARTS_ONLY_RISE = _details(
        "The start of a log rises by retention, by DeleteRecords, or to the start of its leader's log, and never"
        " falls: what lies before it was deleted on purpose.",
        (
            "kafka.log.UnifiedLog.maybeIncrementLogStartOffset",
            "org.apache.kafka.storage.internals.log.UnifiedLog.maybeIncrementLogStartOffset",
        ),
        "tests/live/test_survey.py::test_log_starts_that_differ_and_no_phantom_below_them",
    )

    @property
    def details(self) -> BeliefDetails:
        return self.value

    @property
    def sentence(self) -> str:
        """What Kafka does."""
        return self.value.sentence
