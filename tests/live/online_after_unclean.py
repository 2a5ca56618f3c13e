"""Partitions that are online again after an unclean election, while former members of the ISR are still down.

1 and 3 took records with acks=all that 2 never had; then they died, and 2 leads. Each topic came to that in another
way. A consumer counts what is left once 1 and 3 are back.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from testbed.kafka import KafkaCluster
from tests.live.advised_operator import AGGRESSIVE, AGREED, Operator, create, left
from tests.live.group_clients import read_and_commit, read_on
from tests.live.incident_steps import assign, elect_unclean, kill, produce, start, wait_all, wait_offline
from tests.live.started_cluster import emptied

EARLY, LATE, SECONDS = 60, 300, 60.0
BY_KAFKA, BY_OPERATOR, BY_KTRIAGE = "online-by-kafka", "online-by-operator", "online-by-ktriage"
INSIDE, BEYOND = "online-inside", "online-beyond"
"""Groups of BY_OPERATOR that committed no epoch: one has read what 2 holds too, the other all that 1 and 3 held."""
OFFSETS = "__consumer_offsets"
COMPLETE = "online-complete"
"""2 holds everything that was acknowledged: with a min ISR of 3 nothing was, once it was down."""
IDEMPOTENT = "online-producer"
"""Written by one idempotent producer, which goes on after the election."""
CUT = (BY_KAFKA, BY_OPERATOR, BY_KTRIAGE, IDEMPOTENT)


class OnlineAgain(NamedTuple):
    """``told`` is the status (JSON) while 1 and 3 are down, with the text in ``screen`` and the hand-over page;
    ``after`` is that when they are back. ``rescued`` is what the reading of their disks said. ``left`` is what a
    consumer counts; ``restored`` is that of the topic whose disks were read before they started.

    ``groups`` is what is told of two groups of that topic before its election, ``groups_grown`` once the log has
    grown past what they have read; ``read_on`` is what the second reads once it is fixed.

    ``verified`` is what is told of the topic of the idempotent producer after its election, ``rescue_shown`` what
    the rescue has of it, and ``next_batch`` the fatal error of that producer's next batch.
    """

    told: dict[str, Any]
    screen: str
    handover: str
    rescued: dict[str, Any]
    after: dict[str, Any]
    left: dict[str, dict[str, int]]
    restored: dict[str, int]
    groups: dict[str, dict[str, Any]]
    groups_grown: dict[str, dict[str, Any]]
    read_on: list[str]
    verified: dict[str, Any]
    rescue_shown: str
    next_batch: str


def status(operator: Operator) -> dict[str, Any]:
    _, told = operator.run.json("status")
    return told


def told_of_groups(operator: Operator) -> dict[str, dict[str, Any]]:
    _, told = operator.run.json("groups", "show", f"{BY_OPERATOR}.json", "--all")
    return {row["group"]: row for row in told["offsets"]}


def coordinate_on_4(cluster: KafkaCluster) -> None:
    """All groups are stored on broker 4, which stays."""
    if OFFSETS not in cluster.admin.list_topics(timeout=15).topics:
        cluster.client.create_topic(OFFSETS, [[4]], {"cleanup.policy": "compact"})
    for partition in cluster.metadata.partitions(OFFSETS):
        assign(cluster, 4, OFFSETS, partition, (4,))
    wait_all(cluster, (OFFSETS,), lambda state: state.replicas == (4,) and state.leader == 4, "on 4")


def played(cluster: KafkaCluster, operator: Operator) -> OnlineAgain:
    every = (*CUT, COMPLETE)
    # A topic of an earlier test that elects by itself would have 2 lead uncleanly too, and disks to be read.
    emptied(cluster)
    coordinate_on_4(cluster)
    create(cluster, (BY_KAFKA,), [1, 2, 3], min_insync_replicas=2, unclean_leader_election_enable="true")
    create(cluster, (BY_OPERATOR, BY_KTRIAGE, IDEMPOTENT), [1, 2, 3], min_insync_replicas=2)
    create(cluster, (COMPLETE,), [1, 2, 3], min_insync_replicas=3)
    producer = Producer(cluster.superuser_config() | {"enable.idempotence": True, "linger.ms": 5})
    for topic in (topic for topic in every if topic != IDEMPOTENT):
        produce(cluster, topic, EARLY, "early")
    assert sent(producer, EARLY, "early") == ""
    kill(cluster, 2)
    for topic in (BY_KAFKA, BY_OPERATOR, BY_KTRIAGE):
        produce(cluster, topic, LATE, "late")
    assert sent(producer, LATE, "late") == ""
    read_and_commit(cluster, INSIDE, BY_OPERATOR, 40, epoch=False)
    read_and_commit(cluster, BEYOND, BY_OPERATOR, EARLY + LATE, epoch=False)
    kill(cluster, 3)
    kill(cluster, 1)
    start(cluster, 2)
    wait_all(cluster, (BY_KAFKA,), lambda state: state.leader == 2, "led by 2")
    wait_offline(cluster, (BY_OPERATOR, BY_KTRIAGE, IDEMPOTENT, COMPLETE))
    operator.advised(BY_OPERATOR, *AGGRESSIVE)
    groups = told_of_groups(operator)
    operator.advised(IDEMPOTENT, *AGGRESSIVE)
    elect_unclean(cluster, (BY_OPERATOR, IDEMPOTENT, COMPLETE), 2)
    operator.advised(BY_KTRIAGE, *AGGRESSIVE)
    operator.elect(BY_KTRIAGE)
    wait_all(cluster, every, lambda state: state.leader == 2, "led by 2")

    told = status(operator)
    ended = operator.run("status")
    screen = ended.out + ended.err
    handover = operator.run("handover").out
    disks = [word for b in (1, 3) for path in cluster.node(b).log_dirs for word in ("--from-disk", str(path))]
    named = ("--topic", BY_OPERATOR, "--topic", IDEMPOTENT)
    _, rescued = operator.run.json("rescue", "read", "--to", "saved", *named, *disks)
    shown = operator.run.without_cluster("rescue", "show", "saved").out
    start(cluster, 1, 3)
    wait_all(cluster, every, lambda state: set(state.isr) == {1, 2, 3}, "fully replicated")
    after = status(operator)
    found = {topic: left(cluster, topic) for topic in every}
    _, verified = operator.run.json("verify", f"{IDEMPOTENT}.json", "--rescue", "saved")
    refused = sent(producer, 1, "after")
    restored = operator.run("restore", "saved", "--to-source", *AGREED)
    assert restored.status == 0, restored
    grown = told_of_groups(operator)
    operator.run("groups", "fix", f"{BY_OPERATOR}.json", *AGREED)
    seen = read_on(cluster, BEYOND, BY_OPERATOR, EARLY + LATE)
    back = left(cluster, BY_OPERATOR)
    return OnlineAgain(
        told,
        screen,
        handover,
        rescued,
        after,
        found,
        back,
        groups,
        grown,
        seen,
        verified,
        shown,
        refused,
    )


def sent(producer: Producer, count: int, prefix: str) -> str:
    """Writes so many records, and returns the error that ended the producer; "" where all were acknowledged."""
    failed: list[str] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failed.append(str(error.name()))

    try:
        for number in range(count):
            producer.produce(IDEMPOTENT, f"{prefix}-{number}".encode(), partition=0, on_delivery=delivered)
        assert producer.flush(SECONDS) == 0
    except KafkaException as error:
        assert error.args[0].fatal(), error
        return str(error.args[0].name())
    return failed[0] if failed else ""


def is_told(found: OnlineAgain) -> None:
    """Whose disks are to be read, of which partitions, and why: in the status, its JSON and the hand-over."""
    step = found.told["steps"][0]
    rows = {row["topic"]: row for row in found.told["disksToRead"]}
    assert set(rows) == set(CUT) and found.told["disksNotJudged"] == 0, sorted(rows)
    told = (step["kind"], step["brokers"], step["partitions"])
    assert told == ("read before start", [1, 3], len(CUT)), step
    assert all((row["leader"], row["elected"], row["unclean"]) == (2, 2, True) for row in rows.values())
    assert found.told["health"]["disksToRead"] == [1, 3] and not found.told["health"]["well"]
    do = "Read the disks of brokers 1 and 3 before they start: leaders may lack records."
    for page in (found.screen, found.handover):
        assert f"Do first: {do}" in page
        assert "read the disks of 1,3 before they start" in page
    assert "heal show" not in found.screen, "nobody is told to give up a broker whose disk is to be read"


def is_lost_unless_read(found: OnlineAgain) -> None:
    """What starting the brokers cut off, as a consumer counts it, and what the disks gave back."""
    assert found.left == {topic: {"early": EARLY} for topic in (*CUT, COMPLETE)}, f"{LATE} were cut off"
    branches = {(one["broker"], one["startOffset"], one["endOffset"]) for one in found.rescued["branches"]}
    assert branches <= {(1, EARLY, EARLY + LATE), (3, EARLY, EARLY + LATE)} and branches
    assert found.restored == {"early": EARLY, "late": LATE}
    assert (found.after["steps"], found.after["disksToRead"]) == ([], []), "both follow the leader now"


def groups_go_back_to_the_planned_end(found: OnlineAgain) -> None:
    """Replicas 1 and 3 are silent when the plan is made, and nobody but 1 ever led: nothing speaks for another
    branch before the end of 2's log, and behind that end the group goes back to it.
    """
    assert found.groups[INSIDE]["place"] == "common", "it lies inside a log of one single epoch"
    behind = found.groups[BEYOND]
    assert (behind["place"], behind["goBackTo"], behind["exact"]) == ("beyond-end", EARLY, True)
    grown = found.groups_grown[BEYOND]
    assert (grown["place"], grown["goBackTo"], grown["neverSeen"]) == ("cut-off", EARLY, LATE)
    assert found.groups_grown[INSIDE]["place"] == "common"
    assert found.read_on == [f"late-{number}" for number in range(LATE)], (
        "each record once, and none is skipped"
    )


def a_producer_whose_batches_were_cut_off_is_named(found: OnlineAgain) -> None:
    """Before the election by the rescue, after it by verify; and its next batch is its end."""
    (row,) = found.verified["refusedProducers"]
    assert (row["topic"], row["epoch"], row["lastSequence"], row["records"]) == (
        IDEMPOTENT,
        0,
        EARLY + LATE - 1,
        LATE,
    )
    assert (row["leaderHasEpoch"], row["leaderHasSequence"]) == (0, EARLY - 1)
    assert found.verified["producersUnread"] == []
    assert f"1 idempotent producer wrote in the tails (ids {row['producerId']})" in found.rescue_shown
    assert found.next_batch == "OUT_OF_ORDER_SEQUENCE_NUMBER"
