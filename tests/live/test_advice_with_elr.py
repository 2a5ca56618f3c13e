"""The first advice on a real cluster with the ELR: after clean and unclean restarts, and when min ISR changes.

As in ``test_advice_incidents``: of topics in the same state one follows the advice, and the opposite happens to
another. A consumer counts what is left.
"""

from __future__ import annotations

import pytest

from recovery.controller.registration import LeaderRecoveryState
from recovery.controller.rules import ELR_FEATURE
from recovery.metadata_log.log_changes import PartitionSubject
from testbed.kafka import KafkaCluster
from testbed.kafka.log_files import cut_log
from tests.live import advised_operator
from tests.live.advised_operator import AGGRESSIVE, Night, Operator, create, left, set_min_isr
from tests.live.incident_steps import kill, pause, produce, start, wait_all, wait_offline
from tests.live.started_cluster import emptied
from tests.live.test_metadata_log import history_of, metadata_dir

pytestmark = pytest.mark.long

CLUSTER = advised_operator.CLUSTER

EARLY, LATE = 60, 540
CLEAN = ("clean", "clean-forced")
HANGING = ("hanging", "hanging-changed")
UNCLEAN = ("unclean", "unclean-forced")
OBEYED, DISOBEYED = "selfelect-obeyed", "selfelect-disobeyed"
LAST_KNOWN = ("last-known", "last-known-cut")


@pytest.fixture(scope="module")
def operator(cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> Operator:
    emptied(cluster).tools("kafka-features", "upgrade", "--feature", f"{ELR_FEATURE}=1")
    return Operator(cluster, tmp_path_factory.mktemp("operator"))


@pytest.fixture(scope="module")
def clean_stop(cluster: KafkaCluster, operator: Operator) -> Night:
    """3 dies, 2 is stopped cleanly, 1 dies; 3 returns, then 2. The ELR holds 1 and 2."""
    every = (*CLEAN, *HANGING)
    create(cluster, every, [1, 2, 3], min_insync_replicas=2)
    for topic in every:
        produce(cluster, topic, EARLY, "early")
    pause(cluster, 3)
    for topic in every:
        produce(cluster, topic, LATE, "late")
    cluster.node(2).stop()
    cluster.metadata.wait_fenced(2)
    wait_all(cluster, every, lambda state: state.isr == (1,), "with 1 alone in the ISR")
    kill(cluster, 1)
    start(cluster, 3)
    wait_offline(cluster, every)

    advice = {topic: operator.advised(topic) for topic in (CLEAN[0], HANGING[0])}
    advice["disk"] = operator.advised(CLEAN[0], "--evidence", operator.scan(cluster, 2))
    advice[CLEAN[1]] = operator.advised(CLEAN[1], *AGGRESSIVE)
    operator.elect(CLEAN[1])
    set_min_isr(cluster, HANGING[1], 1)
    start(cluster, 2)
    wait_all(cluster, (CLEAN[0], HANGING[0]), lambda state: state.leader == 2, "led by 2")
    cluster.metadata.wait_caught_up()
    changed = cluster.metadata.partition(HANGING[1], 0).leader
    advice[HANGING[1]] = operator.advised(HANGING[1])
    advice["accepted"] = operator.advised(
        HANGING[1], "--accept-unchecked", "--reason", "2 was stopped cleanly"
    )
    operator.elect(HANGING[1])
    start(cluster, 1)
    wait_all(cluster, every, lambda state: set(state.isr) == {1, 2, 3}, "fully replicated")
    assert changed == -1, "with an empty ELR nobody is elected when 2 returns"
    return Night(advice, {topic: left(cluster, topic) for topic in every})


def test_a_member_of_the_elr_that_was_stopped_cleanly_is_brought_back(clean_stop: Night) -> None:
    advice, forced = (clean_stop.advice[topic] for topic in CLEAN)
    assert (advice.step["kind"], advice.step["brokers"]) == ("bring back", [1, 2])
    assert (advice.step["checkDisk"], advice.step["byElr"]) == ([], True)
    assert forced.acknowledged(3)["verdict"] != "none"
    assert clean_stop.left[CLEAN[0]] == {"early": EARLY, "late": LATE}
    assert clean_stop.left[CLEAN[1]] == {"early": EARLY}, "broker 3 was elected"


def test_a_change_of_min_isr_is_warned_of_while_partitions_wait_for_the_elr(clean_stop: Night) -> None:
    """What the warning is about: the changed topic has no ELR any more, and is offline with 2 back."""
    before, after = (clean_stop.advice[topic] for topic in HANGING)
    assert "Leave min.insync.replicas alone." in before.step["text"]
    assert clean_stop.left[HANGING[0]] == {"early": EARLY, "late": LATE}
    assert (after.step["kind"], after.step["brokers"], after.step["instead"]) == ("ask", [1], [2])
    assert not after.step["byElr"]
    assert clean_stop.left[HANGING[1]] == {"early": EARLY, "late": LATE}


def test_the_clean_stop_of_a_broker_that_led_nothing_leaves_no_record_but_a_file(clean_stop: Night) -> None:
    """Without a record nothing speaks against it; its disk shows it while it is down."""
    verdict = clean_stop.advice["accepted"].acknowledged(2)
    kept = {"kind": "no unflushed records lost", "brokers": [2]}
    assert (verdict["verdict"], verdict["conditions"]) == ("none, unchecked", [kept])
    read = clean_stop.advice["disk"].step
    assert (read["kind"], read["brokers"]) == ("bring back", [2])
    assert "was shut down when last seen" in read["text"]


@pytest.fixture(scope="module")
def unclean_return(cluster: KafkaCluster, operator: Operator) -> Night:
    """3 dies, then 2, then 1; 2 returns without its tail, and Kafka takes it out of the ELR; then 1, clean."""
    cluster.bring_all_up()
    create(cluster, UNCLEAN, [1, 2, 3], min_insync_replicas=2)
    create(cluster, (OBEYED,), [1, 3], unclean_leader_election_enable="true", min_insync_replicas=1)
    create(cluster, (DISOBEYED,), [1, 2], unclean_leader_election_enable="true", min_insync_replicas=2)
    every = (*UNCLEAN, OBEYED, DISOBEYED)
    for topic in every:
        produce(cluster, topic, EARLY, "early")
    kill(cluster, 3)
    for topic in every:
        produce(cluster, topic, LATE, "late")
    kill(cluster, 2)
    wait_all(cluster, every, lambda state: state.isr == (1,), "with 1 alone in the ISR")
    cluster.node(1).stop()
    cluster.metadata.wait_fenced(1)
    for topic in (*UNCLEAN, DISOBEYED):
        cut_log(cluster.node(2), topic, 0, EARLY)
    advice = {topic: operator.advised(topic) for topic in (OBEYED, DISOBEYED)}
    start(cluster, 2)
    wait_offline(cluster, UNCLEAN)

    advice[UNCLEAN[0]] = operator.advised(UNCLEAN[0])
    advice[UNCLEAN[1]] = operator.advised(UNCLEAN[1], *AGGRESSIVE)
    operator.elect(UNCLEAN[1])
    start(cluster, 1)
    start(cluster, 3)
    wait_all(cluster, UNCLEAN, lambda state: set(state.isr) == {1, 2, 3}, "fully replicated")
    wait_all(cluster, (OBEYED, DISOBEYED), lambda state: len(state.isr) == 2, "fully replicated")
    return Night(advice, {topic: left(cluster, topic) for topic in every})


def test_a_member_that_returned_uncleanly_is_not_elected_before_the_clean_one(unclean_return: Night) -> None:
    advice, forced = (unclean_return.advice[topic] for topic in UNCLEAN)
    assert (advice.step["kind"], advice.step["brokers"]) == ("bring back", [1])
    verdict = forced.acknowledged(2)
    assert all(one["doubtful"] for one in verdict["conditions"] if one["kind"] == "no unflushed records lost")
    assert unclean_return.left[UNCLEAN[0]] == {"early": EARLY, "late": LATE}
    assert unclean_return.left[UNCLEAN[1]] == {"early": EARLY}, "broker 2 had lost its tail"


def test_on_a_topic_that_elects_by_itself_the_elr_protects_nobody(unclean_return: Night) -> None:
    """Broker 2 is in the ELR, and lost its tail: it leads all the same if it returns first."""
    obeyed, disobeyed = (unclean_return.advice[topic] for topic in (OBEYED, DISOBEYED))
    for advice, other in ((obeyed, 3), (disobeyed, 2)):
        assert (advice.step["kind"], advice.step["brokers"]) == ("bring back", [1])
        assert advice.step["checkDisk"] == [1]
        assert list(advice.down) == [other]
    assert disobeyed.down[2]["electedAs"] == "ELR member" and not disobeyed.down[2]["checksRecords"]
    assert unclean_return.left[OBEYED] == {"early": EARLY, "late": LATE}
    assert unclean_return.left[DISOBEYED] == {"early": EARLY}, "broker 2 returned first"


@pytest.fixture(scope="module")
def last_leader_killed(cluster: KafkaCluster, operator: Operator) -> Night:
    """2 dies, then 1, which is then alone in the ELR and the last known leader; 2 returns, then 1."""
    cluster.bring_all_up()
    create(cluster, LAST_KNOWN, [1, 2], min_insync_replicas=1)
    for topic in LAST_KNOWN:
        produce(cluster, topic, EARLY, "early")
    kill(cluster, 2)
    for topic in LAST_KNOWN:
        produce(cluster, topic, LATE, "late")
    kill(cluster, 1)
    cut_log(cluster.node(1), LAST_KNOWN[1], 0, EARLY)
    start(cluster, 2)
    wait_offline(cluster, LAST_KNOWN)
    advice = {topic: operator.advised(topic) for topic in LAST_KNOWN}
    start(cluster, 1)
    wait_all(cluster, LAST_KNOWN, lambda state: state.leader == 1, "led by 1")
    wait_all(cluster, LAST_KNOWN, lambda state: set(state.isr) == {1, 2}, "fully replicated")
    return Night(advice, {topic: left(cluster, topic) for topic in LAST_KNOWN})


def test_a_killed_last_known_leader_is_elected_uncleanly_whatever_it_lost(
    cluster: KafkaCluster, last_leader_killed: Night
) -> None:
    history = history_of(metadata_dir(cluster, 100))
    for topic in LAST_KNOWN:
        step = last_leader_killed.advice[topic].step
        assert (step["kind"], step["brokers"], step["checkDisk"], step["byElr"]) == (
            "bring back",
            [1],
            [1],
            True,
        )
        assert "After a kill Kafka elects it by an unclean election." in step["text"], step["text"]
        assert "Kafka elects it whatever it lost" in step["text"], step["text"]
        [topic_id] = history.topic_ids(topic)
        states = [one.registration for one in history.intervals(PartitionSubject(topic_id, 0))]
        [offline] = [number for number, one in enumerate(states) if not one.has_leader and not one.elr]
        unclean = states[offline + 1]
        assert states[offline].last_known_elr == (1,), "the kill took it out of the ELR"
        assert (unclean.leader, unclean.leader_recovery_state) == (1, LeaderRecoveryState.RECOVERING)
    assert last_leader_killed.left[LAST_KNOWN[0]] == {"early": EARLY, "late": LATE}
    assert last_leader_killed.left[LAST_KNOWN[1]] == {"early": EARLY}, "broker 1 had lost its tail"
