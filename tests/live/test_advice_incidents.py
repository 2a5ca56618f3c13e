"""The first advice on a real cluster without the ELR: read, followed, and the acknowledged records counted.

Without the ELR the last ISR member leads as soon as it returns, whatever its log lost. The incidents share what
happens to the brokers. Each has two partitions in the same state: with one of them the advice is followed, and the
opposite happens to the other one. A consumer that knows nothing of ktriage counts what is left in both.
"""

from __future__ import annotations

import pytest

from testbed.kafka import KafkaCluster, wait_until
from testbed.kafka.log_files import cut_log, replica_directory
from testbed.kafka.node import Node
from tests.live import advised_operator
from tests.live.advised_operator import (
    AGGRESSIVE,
    AGREED,
    Night,
    Operator,
    create,
    left,
    set_min_isr,
)
from tests.live.incident_steps import (
    assign,
    elect_unclean,
    kill,
    pause,
    produce,
    start,
    wait_all,
    wait_leads_no_more,
    wait_offline,
)
from tests.live.online_after_unclean import (
    OnlineAgain,
    a_producer_whose_batches_were_cut_off_is_named,
    groups_go_back_to_the_planned_end,
    is_lost_unless_read,
    is_told,
    played,
)

pytestmark = pytest.mark.long

CLUSTER = advised_operator.CLUSTER

EARLY, LATE, ALONE = 60, 540, 100
COMMON, TAIL, KEPT = 1000, 500, 300


@pytest.fixture(scope="module")
def operator(cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> Operator:
    return Operator(cluster, tmp_path_factory.mktemp("operator"))


STANDING = ("standing", "standing-waited")
LOWERED = ("lowered", "lowered-forced")
POWER = ("power", "power-elected")
OBEYED, DISOBEYED = "selfelect-obeyed", "selfelect-disobeyed"


@pytest.fixture(scope="module")
def power_cut(cluster: KafkaCluster, operator: Operator) -> Night:
    """3 falls out of the ISR, then 1, then 2 dies; some logs lose their tails; 1 returns, then 3, and at last 2."""
    cluster.bring_all_up()
    three = (*STANDING, *LOWERED, *POWER)
    create(cluster, three, [1, 2, 3], min_insync_replicas=2)
    unclean = {"unclean_leader_election_enable": "true", "min_insync_replicas": 1}
    create(cluster, (OBEYED,), [1, 3], **unclean)
    create(cluster, (DISOBEYED,), [1, 2], **unclean)
    every = (*three, OBEYED, DISOBEYED)
    for topic in every:
        produce(cluster, topic, EARLY, "early")
    kill(cluster, 3)
    for topic in every:
        produce(cluster, topic, LATE, "late")
    kill(cluster, 1)
    wait_all(cluster, (*three, DISOBEYED), lambda state: state.isr == (2,), "with 2 alone in the ISR")
    for topic in LOWERED:
        set_min_isr(cluster, topic, 1)
    cluster.metadata.wait_caught_up()
    for topic in (*LOWERED, DISOBEYED):
        produce(cluster, topic, ALONE, "alone")
    for topic in LOWERED:
        set_min_isr(cluster, topic, 2)
    kill(cluster, 2)
    for topic in STANDING:
        cut_log(cluster.node(2), topic, 0, EARLY)
    for topic in POWER:
        cut_log(cluster.node(1), topic, 0, EARLY)

    advice = {topic: operator.advised(topic) for topic in (OBEYED, DISOBEYED)}
    start(cluster, 1)
    wait_all(cluster, (OBEYED, DISOBEYED), lambda state: state.leader == 1, "led by 1")
    start(cluster, 3)
    wait_offline(cluster, three)

    advice |= {topic: operator.advised(topic) for topic in (STANDING[1], LOWERED[0])}
    advice[POWER[0]] = operator.advised(POWER[0], "--evidence", operator.scan(cluster, 2))
    # Its disk lacks records that it had, so that it is no evidence: nothing else can check what 1 has kept.
    advice[STANDING[0]] = operator.advised(
        STANDING[0], "--evidence", "disk.json", "--accept-unchecked", "--reason", "1's host kept power"
    )
    operator.elect(STANDING[0])
    advice[POWER[1]] = operator.advised(POWER[1], "--accept-unchecked", "--reason", "no host lost power")
    operator.elect(POWER[1])
    advice[LOWERED[1]] = operator.advised(LOWERED[1], *AGGRESSIVE)
    operator.elect(LOWERED[1])
    start(cluster, 2)
    wait_all(cluster, every, lambda state: set(state.isr) == set(state.replicas), "fully replicated")
    return Night(advice, {topic: left(cluster, topic) for topic in every})


def test_the_last_isr_member_that_lost_its_tail_is_not_started_before_its_disk_was_read(
    power_cut: Night,
) -> None:
    """1 was killed and started again, so it holds everything only unless its host lost power."""
    unread = power_cut.advice[STANDING[1]]
    assert (unread.step["kind"], unread.step["brokers"], unread.step["instead"]) == ("bring back", [2], [1])
    assert unread.step["checkDisk"] == [2] and "read its disk first" in unread.step["text"]
    advice = power_cut.advice[STANDING[0]]
    assert [one["topic"] for one in advice.plan["evidence"]["refused"]] == [STANDING[0]], advice.plan[
        "evidence"
    ]
    assert advice.acknowledged(1)["verdict"] == "none, in doubt"
    assert advice.acknowledged(3)["atMost"] == LATE
    assert power_cut.left[STANDING[0]] == {"early": EARLY, "late": LATE}
    assert power_cut.left[STANDING[1]] == {"early": EARLY}, "broker 2 was started first"


def test_records_acknowledged_under_a_lower_min_isr_are_waited_for(power_cut: Night) -> None:
    advice, forced = (power_cut.advice[topic] for topic in LOWERED)
    assert (advice.step["kind"], advice.step["brokers"]) == ("bring back", [2])
    assert (advice.step["keepDown"], advice.step["checkDisk"]) == ([], [2])
    verdict = forced.acknowledged(1)
    assert (verdict["verdict"], verdict["atMost"]) == ("open", None)
    assert power_cut.left[LOWERED[0]] == {"early": EARLY, "late": LATE, "alone": ALONE}
    assert power_cut.left[LOWERED[1]] == {"early": EARLY, "late": LATE}, "broker 1 was elected"


def test_a_follower_that_lost_its_tail_is_elected_only_by_somebody_who_takes_it_that_it_did_not(
    power_cut: Night,
) -> None:
    """Nothing that a broker answers shows that its host lost power: that it did not is a condition."""
    advice = power_cut.advice[POWER[1]]
    verdict = advice.acknowledged(1)
    kept = {"kind": "no unflushed records lost", "brokers": [1], "doubtful": True}
    assert (verdict["verdict"], verdict["conditions"]) == ("none, in doubt", [kept])
    assert (advice.step["kind"], advice.step["brokers"], advice.step["instead"]) == ("bring back", [2], [1])
    assert advice.plan["plan"]["uncheckedAccepted"] == "no host lost power"
    assert "unless the host of broker 1 lost power before it restarted" in advice.step["text"]
    read = power_cut.advice[POWER[0]]
    assert (read.step["kind"], read.step["brokers"]) == ("bring back", [2]), "its disk was read"
    assert power_cut.left[POWER[0]] == {"early": EARLY, "late": LATE}, "broker 2 was brought back"
    assert power_cut.left[POWER[1]] == {"early": EARLY}, "the condition did not hold"


def test_a_self_electing_topic_names_who_is_started_first(power_cut: Night) -> None:
    obeyed, disobeyed = (power_cut.advice[topic] for topic in (OBEYED, DISOBEYED))
    assert (obeyed.step["kind"], obeyed.step["brokers"], list(obeyed.down)) == ("bring back", [1], [3])
    assert (disobeyed.step["kind"], disobeyed.step["brokers"], list(disobeyed.down)) == (
        "bring back",
        [2],
        [1],
    )
    assert disobeyed.down[1]["electedAs"] == "unclean.leader.election.enable"
    assert power_cut.left[OBEYED] == {"early": EARLY, "late": LATE}
    assert power_cut.left[DISOBEYED] == {"early": EARLY, "late": LATE}, f"{ALONE} were on broker 2"


TAILS = ("tail", "tail-longest")
MARKS = ("marks", "marks-elected")


@pytest.fixture(scope="module")
def two_branches(cluster: KafkaCluster, operator: Operator) -> Night:
    """3 and then 2 drop out; 1 takes a tail alone; 2, elected uncleanly, takes newer records that 3 has too."""
    cluster.bring_all_up()
    create(cluster, TAILS, [1, 2, 3], min_insync_replicas=2)
    create(cluster, MARKS, [1, 2, 3], min_insync_replicas=1)
    every = (*TAILS, *MARKS)
    for topic in every:
        produce(cluster, topic, COMMON, "common")
    pause(cluster, 3, 2)
    wait_all(cluster, every, lambda state: state.isr == (1,), "with 1 alone in the ISR")
    for topic in every:
        produce(cluster, topic, TAIL, "tail", acks="1" if topic in TAILS else "all")
    marks = [(topic, COMMON + TAIL) for topic in MARKS]
    wait_until(lambda: all(mark(cluster.node(1), *one) for one in marks), "the checkpoint of broker 1", 30)
    kill(cluster, 1)
    start(cluster, 2)
    elect_unclean(cluster, every, 2)
    start(cluster, 3)
    wait_all(cluster, every, lambda state: set(state.isr) == {2, 3}, "in sync on 2 and 3")
    for topic in every:
        produce(cluster, topic, KEPT, "kept")
    kept = [(topic, COMMON + KEPT) for topic in every]
    wait_until(lambda: all(mark(cluster.node(2), *one) for one in kept), "the checkpoint of broker 2", 30)
    kill(cluster, 2)
    wait_all(cluster, every, lambda state: state.leader == 3, "led by 3")
    kill(cluster, 3)
    start(cluster, 1, 2)
    wait_offline(cluster, every)

    advice = {MARKS[0]: operator.advised(MARKS[0])}
    advice["unread"] = operator.advised(TAILS[0])
    advice[TAILS[0]] = operator.advised(TAILS[0], "--evidence", operator.scan(cluster, 3))
    operator.elect(TAILS[0])
    advice[TAILS[1]] = operator.advised(TAILS[1], *AGGRESSIVE, "--ranking", "specification")
    operator.elect(TAILS[1])
    operator.advised(MARKS[0], *AGGRESSIVE)
    operator.elect(MARKS[0], "--rescue", "branch")
    advice[MARKS[1]] = operator.advised(MARKS[1], *AGGRESSIVE)
    operator.elect(MARKS[1])
    start(cluster, 3)
    wait_all(cluster, every, lambda state: set(state.isr) == {1, 2, 3}, "fully replicated")
    ended = operator.run("restore", "branch", "--to-source", *AGREED)
    assert ended.status == 0, str(ended)
    return Night(advice, {topic: left(cluster, topic) for topic in every})


CHECKPOINT = "replication-offset-checkpoint"


def mark(node: Node, topic: str, offset: int) -> bool:
    """Whether the broker has checkpointed that high watermark."""
    file = replica_directory(node, topic, 0).parent / CHECKPOINT
    return f"{topic} 0 {offset}" in file.read_text().splitlines()


def test_a_stale_long_tail_is_not_elected(two_branches: Night) -> None:
    advice, longest = (two_branches.advice[topic] for topic in TAILS)
    unread = two_branches.advice["unread"].step
    assert (unread["kind"], unread["brokers"], unread["instead"]) == ("bring back", [3], [2])
    assert (advice.step["kind"], advice.step["brokers"]) == ("elect", [2]), "the disk of 3 was read"
    verdict = advice.acknowledged(2)["verdict"]
    assert verdict == "none, unchecked", "the tail was never acknowledged with acks=all; 3 was killed"
    assert (longest.acknowledged(1)["verdict"], longest.acknowledged(1)["atLeast"]) == ("some", KEPT)
    assert two_branches.left[TAILS[0]] == {"common": COMMON, "kept": KEPT}, "nothing acknowledged is lost"
    assert two_branches.left[TAILS[1]] == {"common": COMMON, "tail": TAIL}, "the longest log was elected"


def test_a_high_watermark_that_contradicts_the_ranking_asks_for_a_rescue(two_branches: Night) -> None:
    """Both branches were acknowledged, under a min ISR of 1: no choice keeps both."""
    advice, elected = (two_branches.advice[topic] for topic in MARKS)
    assert (advice.step["kind"], list(advice.down)) == ("compare", [3])
    [refused] = advice.plan["notElected"]
    assert (
        refused["verdict"] == "refused" and "rescue the other branch before the election" in refused["reason"]
    )
    verdict = elected.acknowledged(2)
    assert (verdict["verdict"], verdict["atLeast"]) == ("some", TAIL)
    assert verdict["evidence"][0] == {"kind": "high watermark", "brokers": [1], "offset": COMMON + TAIL}
    assert elected.acknowledged(1)["verdict"] != "none"
    assert two_branches.left[MARKS[0]] == {"common": COMMON, "kept": KEPT, "tail": TAIL}, "one was rescued"
    assert two_branches.left[MARKS[1]] == {"common": COMMON, "kept": KEPT}, "one was cut off"


VAULT = "vault"


def test_a_failed_disk_is_not_waited_for(cluster: KafkaCluster, operator: Operator) -> None:
    """2, the last ISR member, runs on with a failed disk; later it returns with an empty one."""
    cluster.bring_all_up()
    cluster.client.create_topic(VAULT, [[1, 2, 3]] * 6, {"min.insync.replicas": "2"})
    produce(cluster, VAULT, EARLY, "early")
    pause(cluster, 3)
    produce(cluster, VAULT, LATE, "late")
    pause(cluster, 1)
    wait_all(cluster, [VAULT], lambda state: state.isr == (2,), "with 2 alone in the ISR")
    node = cluster.node(2)
    lost = [p for p in range(6) if replica_directory(node, VAULT, p).parent == node.log_dirs[1]]
    followed, opposite = lost[:2]
    node.remove_log_dir(1)
    for partition in lost:
        cluster.metadata.wait_offline(VAULT, partition)
    # 1 goes on as the leader that it was, until it hears of its successor: 3 would copy from it what it missed.
    start(cluster, 1)
    wait_leads_no_more(cluster, 1, VAULT)
    start(cluster, 3)

    _, status = operator.run.json("status")
    assert status["health"]["failedLogDirs"] == 1
    # A topic of the tests before may have a replica on the failed dir that is to be read first.
    first = next(step for step in status["steps"] if step["kind"] != "read before start")
    assert (first["kind"], first["brokers"]) == ("elect", [1]), "the worst that is known comes first"
    [down] = first["keepDown"]
    assert (down["broker"], down["failedDisk"]) == (2, True)
    assert "The disk of broker 2 FAILED" in first["text"]
    advice = operator.advised(VAULT, "--partition", str(followed))
    assert advice.acknowledged(1)["verdict"] == "none"
    assert advice.acknowledged(3)["atMost"] == LATE
    operator.elect(VAULT)
    planned = operator.run("plan", "--topic", VAULT, "--partition", str(opposite), "opposite.json")
    assert planned.status == 0, planned
    node.kill()
    cluster.replace_log_dir(2, 1)
    start(cluster, 2)
    cluster.metadata.wait_partition(VAULT, opposite, lambda state: not state.offline, "on the new disk")
    if cluster.metadata.partition(VAULT, opposite).leader == -1:
        # Seen at times: it is unfenced in the ISR, with its new disk, and not elected. The next start elects it.
        kill(cluster, 2)
        start(cluster, 2)
    for partition in (followed, opposite):
        cluster.metadata.wait_isr(VAULT, partition, (1, 2, 3))
    assert left(cluster, VAULT, followed) == {"early": EARLY, "late": LATE}
    assert left(cluster, VAULT, opposite) == {}, "broker 2 led with its empty disk"
    is_no_success(operator, followed, opposite)


def is_no_success(operator: Operator, followed: int, opposite: int) -> None:
    """What is said of a partition that the empty disk leads: nobody elected it uncleanly."""
    gone = f"at least {EARLY + LATE} offsets of the planned log are cut off"
    emptied = "the leader has no record from before the plan, as after a replaced disk"
    applied = operator.run("apply", "opposite.json", *AGREED)
    assert applied.status == 1 and gone in applied.out and emptied in applied.out, applied
    verified = operator.run("verify", "opposite.json")
    assert verified.status == 1 and gone in verified.out and emptied in verified.out, verified
    assert "rescue read --from-disk" in verified.err, verified
    assert operator.run("verify", f"{VAULT}.json").status == 0
    told = operator.run.json("report", "--since", "1h")[1]
    ended = {o["partition"]: o for o in told["outages"] if o["topic"] == VAULT and o["leaderAfter"] == 2}
    assert (ended[opposite]["unclean"], ended[opposite]["otherLogDir"]) == (False, True)
    assert followed not in ended
    assert any("from another log dir than before" in line for line in told["open"]), told["open"]
    (groups,) = (line for line in told["next"] if "groups show" in line)
    # Every topic of such an election is named, unless there are too many.
    assert f"--topic {VAULT}" in groups or "--topic" not in groups, groups


CUT = ("cutoff", "cutoff-returned")


def test_the_leader_of_an_unclean_election_is_not_brought_back_over_older_records(
    cluster: KafkaCluster, operator: Operator
) -> None:
    """3 was elected uncleanly, lacks what 1 and 2 acknowledged, and dies; 2 answers, and 1 is away."""
    cluster.bring_all_up()
    create(cluster, CUT, [1, 2, 3], min_insync_replicas=2)
    for topic in CUT:
        produce(cluster, topic, EARLY, "early")
    pause(cluster, 3)
    for topic in CUT:
        produce(cluster, topic, LATE, "late")
    pause(cluster, 2)
    kill(cluster, 1)
    start(cluster, 3)
    elect_unclean(cluster, CUT, 3)
    kill(cluster, 3)
    start(cluster, 2)
    wait_offline(cluster, CUT)

    advice = operator.advised(CUT[0])
    assert (advice.step["kind"], advice.step["brokers"]) == ("ask", [1])
    assert advice.down[3]["cutsOff"] == [2]
    assert (
        "Do not start broker 3 first: it leads at once and cuts off what broker 2 holds"
        in advice.step["text"]
    )
    operator.advised(CUT[0], *AGGRESSIVE)
    operator.elect(CUT[0])
    start(cluster, 3)
    start(cluster, 1)
    wait_all(cluster, CUT, lambda state: set(state.isr) == {1, 2, 3}, "fully replicated")
    assert left(cluster, CUT[0]) == {"early": EARLY, "late": LATE}
    assert left(cluster, CUT[1]) == {"early": EARLY}, "broker 3 was started first"


@pytest.fixture(scope="module")
def online_again(cluster: KafkaCluster, operator: Operator) -> OnlineAgain:
    return played(cluster, operator)


def test_disks_are_to_be_read_before_former_members_of_partitions_with_a_leader_start(
    online_again: OnlineAgain,
) -> None:
    is_told(online_again)


def test_what_such_a_member_held_is_lost_unless_its_disk_was_read(online_again: OnlineAgain) -> None:
    is_lost_unless_read(online_again)


def test_groups_behind_the_end_of_the_planned_log_go_back_to_that_end(online_again: OnlineAgain) -> None:
    groups_go_back_to_the_planned_end(online_again)


def test_an_idempotent_producer_that_the_new_leader_refuses_is_named(online_again: OnlineAgain) -> None:
    a_producer_whose_batches_were_cut_off_is_named(online_again)


REASSIGNED, REASSIGNED_LEADER = "reassigned", "reassigned-leader"


@pytest.fixture(scope="module")
def reassigned(cluster: KafkaCluster, operator: Operator) -> Night:
    """3 takes the place of a follower, and of a leader, by a reassignment. Later it hangs, the others die, and it
    goes on: it was never in another ISR than the one with which the reassignment ended.
    """
    cluster.bring_all_up()
    every = (REASSIGNED, REASSIGNED_LEADER)
    create(cluster, (REASSIGNED,), [2, 1], min_insync_replicas=2)
    create(cluster, (REASSIGNED_LEADER,), [1, 2], min_insync_replicas=2)
    for topic in every:
        produce(cluster, topic, EARLY, "early")
    for topic, replicas in ((REASSIGNED, [2, 3]), (REASSIGNED_LEADER, [3, 2])):
        assign(cluster, 4, topic, 0, replicas)
    wait_all(cluster, every, lambda state: set(state.replicas) == set(state.isr) == {2, 3}, "reassigned")
    for topic in every:
        produce(cluster, topic, LATE, "late")
    pause(cluster, 3)
    wait_all(cluster, every, lambda state: state.isr == (2,), "with 2 alone in the ISR")
    kill(cluster, 2)
    start(cluster, 3)
    wait_offline(cluster, every)
    advice = {topic: operator.advised(topic, *AGGRESSIVE) for topic in every}
    for topic in every:
        operator.elect(topic)
    start(cluster, 2)
    wait_all(cluster, every, lambda state: set(state.isr) == {2, 3}, "fully replicated")
    return Night(advice, {topic: left(cluster, topic) for topic in every})


@pytest.mark.parametrize("topic", [REASSIGNED, REASSIGNED_LEADER])
def test_a_replica_that_a_reassignment_added_holds_every_acknowledged_record(
    reassigned: Night, topic: str
) -> None:
    verdict = reassigned.advice[topic].acknowledged(3)
    assert (verdict["verdict"], reassigned.advice[topic].step["brokers"]) == ("none", [3]), verdict
    assert reassigned.left[topic] == {"early": EARLY, "late": LATE}
