"""An engineer recovers offline partitions of a real cluster from the command line.

The ISR of every partition of ``lost`` is dead; broker 3, which fell out of it before, is alive with an older log.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from recovery.plan.judgement import RowDecision
from testbed.kafka import KafkaCluster, wait_until
from testbed.kafka.incidents import isr_dead
from tests.command_server import Ended
from tests.live.command_runner import CommandRunner
from tests.live.started_cluster import TWO_DISKS, emptied

CLUSTER = TWO_DISKS
LOST, ALIVE = "lost", "alive"
PARTITIONS = 18
LATE = "started-late"
SURVIVOR = 3
IN_TIME = ("--recovery-duration-ms", "6000")
"""The dead brokers of most tests stay dead, and a recovery asks them until its deadline."""


@pytest.fixture(scope="module")
def disaster(cluster: KafkaCluster) -> KafkaCluster:
    """Eighteen offline partitions; each test recovers some of its own. ``alive`` was never in danger."""
    emptied(cluster)
    cluster.client.create_topic(LOST, [[1, 2, 3]] * PARTITIONS, {"min.insync.replicas": "2"})
    cluster.client.create_topic(ALIVE, [[SURVIVOR]], {"min.insync.replicas": "1"})
    isr_dead(cluster, LOST, range(PARTITIONS), survivor=SURVIVOR)
    return cluster


@pytest.fixture
def console(disaster: KafkaCluster, tmp_path: Path) -> CommandRunner:
    return CommandRunner(tmp_path, disaster.bootstrap(), disaster.metadata.wait_caught_up)


@pytest.fixture
def untouched(disaster: KafkaCluster, console: CommandRunner) -> Iterator[None]:
    """The test sends nothing: no epoch has moved, and the journal knows of nothing."""
    before = disaster.metadata.wait_caught_up().partitions(LOST)
    yield
    assert disaster.metadata.wait_caught_up().partitions(LOST) == before
    assert console.sent() == []


def wanted(home: Path, *partitions: int, topic: str = LOST, name: str = "wanted.json") -> str:
    (home / name).write_text(f'{{partitions: [{{topic: "{topic}", partitions: {list(partitions)}}}]}}')
    return name


def designated(home: Path, *rows: tuple[int, int], name: str = "leaders.json") -> str:
    entries = [{"topic": LOST, "partition": p, "designatedLeader": leader} for p, leader in rows]
    (home / name).write_text(json.dumps({"partitions": entries}))
    return name


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(1, 9)], "lost-1: broker 9 has no replica"),
        ([(1, 1)], "lost-1: broker 1 "),
        ([(99, SURVIVOR)], "no such partition: lost-99"),
    ],
)
def test_a_file_of_leaders_that_all_cannot_be_is_refused(
    console: CommandRunner, rows: list[tuple[int, int]], said: str
) -> None:
    path = designated(console.home, *rows)
    ended = console("kafka-elect-leaders", "--election-type", "designated", "--path-to-json-file", path)
    assert ended.status == 2
    assert said in ended.err
    assert "nothing was sent" in ended.err
    assert len(ended.err.splitlines()) == 1


@pytest.mark.usefixtures("untouched")
def test_looking_changes_nothing_and_tells_who_did_not_answer(console: CommandRunner) -> None:
    path = wanted(console.home, 0, 1)
    ended = console("kafka-unclean-recovery", "--path-to-json-file", path, "--show-replica-info")
    assert ended.status == 0
    assert "Do first: Start broker 1 or 2, each with its old disk: 2 get a leader." in ended.out
    (line,) = (
        line
        for line in ended.out.splitlines()
        if line.startswith("lost-0 ") and " 3 " in line and "0:0-" in line
    )
    assert " 100 " in line
    assert "connection refused" in ended.out
    assert (
        "next: ktriage plan --path-to-json-file wanted.json --strategy aggressive recovery.json" in ended.err
    )


@pytest.mark.usefixtures("untouched")
def test_every_replica_is_told_with_what_was_learnt_or_why_not(console: CommandRunner) -> None:
    status, told = console.json("replicas", "--topic", LOST, "--partition", "0", "--depth", "full")
    assert status == 0
    (partition,) = told["partitions"]
    assert (partition["leader"], partition["isr"], partition["minIsr"]) == (-1, [], 2)
    logs = {row["broker"]: row for row in partition["logs"]}
    assert logs[SURVIVOR]["logEndOffset"] == 100
    assert logs[SURVIVOR]["lineage"]["spans"] == [[0, 0, 100]]
    assert logs[SURVIVOR]["standing"] == "electable"
    assert logs[SURVIVOR]["call"] == "ListOffsets+Fetch (emulated)"
    assert logs[SURVIVOR]["size"] > 0
    assert logs[1]["unknown"] == "not answered"
    assert logs[1]["standing"] == "fenced"
    assert set(logs[1]["in"]) & {"ELR", "LastKnownELR"}


@pytest.mark.usefixtures("untouched")
def test_a_dry_run_writes_the_file_and_the_summary_and_sends_nothing(console: CommandRunner) -> None:
    ended = console(
        "kafka-unclean-recovery",
        "--path-to-json-file",
        wanted(console.home, 0),
        "--dry-run",
        "--automated-recovery",
        *IN_TIME,
    )
    assert ended.status == 0
    assert "1 to elect" in ended.out
    (line,) = (line for line in ended.err.splitlines() if line.startswith("the plan is in "))
    plan = json.loads(Path(line.removeprefix("the plan is in ")).read_text())
    assert plan["partitions"][0]["designatedLeader"] == SURVIVOR


@pytest.mark.usefixtures("untouched")
def test_under_balanced_nobody_is_elected_while_a_member_of_the_elr_may_return(
    console: CommandRunner,
) -> None:
    ended = console("plan", "--topic", LOST, "--partition", "0", "plan.json")
    assert ended.status == 1
    assert "no leader is chosen: lost-0: wait: " in ended.err
    assert not (console.home / "plan.json").exists()


def test_automated_recovery_elects_a_replica_that_was_not_in_the_isr(
    disaster: KafkaCluster, console: CommandRunner
) -> None:
    """The specification's test plan."""
    path = wanted(console.home, 1, 2, 3)
    status, told = console.json(
        "kafka-unclean-recovery", "--path-to-json-file", path, "--automated-recovery", *IN_TIME
    )
    assert status == 0
    assert told["elected"]["outcomes"] == {"elected": 3}
    assert told["failures"] == []
    for partition in (1, 2, 3):
        state = disaster.metadata.wait_caught_up().partition(LOST, partition)
        assert (state.leader, state.replicas) == (SURVIVOR, (1, 2, 3))
    assert json.loads(Path(told["planFile"]).read_text())["clusterId"] == disaster.cluster_id
    assert console.sent() != []


def test_the_manual_file_is_elected_by_the_election_tool(
    disaster: KafkaCluster, console: CommandRunner
) -> None:
    made = console(
        "kafka-unclean-recovery",
        "--path-to-json-file",
        wanted(console.home, 5, 6),
        "--manual-recovery-output-file",
        "leaders.json",
        *IN_TIME,
    )
    assert made.status == 0, made
    again = console(
        "kafka-unclean-recovery",
        "--path-to-json-file",
        "wanted.json",
        "--manual-recovery-output-file",
        "leaders.json",
    )
    assert again.status == 2, "an output file is never overwritten"
    ended = console(
        "kafka-elect-leaders", "--election-type", "DESIGNATED", "--path-to-json-file", "leaders.json"
    )
    assert ended.status == 0, str(ended)
    assert "2 elections: 2 elected" in ended.out
    assert {disaster.metadata.wait_caught_up().partition(LOST, p).leader for p in (5, 6)} == {SURVIVOR}


def test_the_specifications_bare_file_is_asked_afresh_and_elected(
    disaster: KafkaCluster, console: CommandRunner
) -> None:
    path = designated(console.home, (7, SURVIVOR), (8, SURVIVOR))
    ended = console("kafka-elect-leaders", "--election-type", "designated", "--path-to-json-file", path)
    assert ended.status == 0, str(ended)
    assert "2 to elect" in ended.out
    assert {disaster.metadata.wait_caught_up().partition(LOST, p).leader for p in (7, 8)} == {SURVIVOR}


def test_what_cannot_be_elected_is_refused_row_by_row_and_the_rest_is_elected(
    disaster: KafkaCluster, console: CommandRunner
) -> None:
    """Best effort, as the specification has it: a deleted topic and a fenced leader keep nobody else offline."""
    path = designated(console.home, (16, SURVIVOR), (0, 1), (1, 9), (99, SURVIVOR))
    ended = console("kafka-elect-leaders", "--election-type", "designated", "--path-to-json-file", path)
    assert ended.status == 1, ended
    assert "lost-0: not possible here: broker 1 " in ended.err and "lost-99: not possible here: " in ended.err
    assert "lost-1: not possible here: broker 9 has no replica" in ended.err
    gone = f'{{"topic": "{LOST}", "partitions": [17, 99]}}, {{"topic": "deleted", "partitions": [0]}}'
    (console.home / "some.json").write_text(f'{{"partitions": [{gone}]}}')
    ended = console(
        "kafka-unclean-recovery", "--path-to-json-file", "some.json", "--automated-recovery", *IN_TIME
    )
    assert ended.status == 1, ended
    assert "lost-99: refused: no such partition" in ended.err
    assert "deleted-0: refused: no such partition" in ended.err
    assert {disaster.metadata.wait_caught_up().partition(LOST, p).leader for p in (16, 17)} == {SURVIVOR}


def test_the_longest_log_waits_under_balanced_and_is_elected_under_aggressive(
    disaster: KafkaCluster, console: CommandRunner
) -> None:
    one = ("--election-type", "longest-log", "--topic", LOST, "--partition", "9", *IN_TIME)
    assert console("kafka-elect-leaders", *one).status == 1
    assert disaster.metadata.wait_caught_up().partition(LOST, 9).leader == -1
    assert console("kafka-elect-leaders", *one, "--strategy", "aggressive").status == 0
    assert disaster.metadata.wait_caught_up().partition(LOST, 9).leader == SURVIVOR


def test_an_unclean_election_of_one_partition(disaster: KafkaCluster, console: CommandRunner) -> None:
    one = ("--election-type", "unclean", "--topic", LOST, "--partition", "10")
    status, told = console.json("kafka-elect-leaders", *one)
    assert (status, told["counts"]) == (0, {"elected": 1})
    assert disaster.metadata.wait_caught_up().partition(LOST, 10).leader == SURVIVOR
    assert console.json("kafka-elect-leaders", *one)[1]["counts"] == {"already online": 1}


def test_plan_review_apply_and_verify_lead_from_one_to_the_next(
    disaster: KafkaCluster, console: CommandRunner
) -> None:
    made = console(
        "plan",
        "--strategy",
        "aggressive",
        "--topic",
        LOST,
        "--partition",
        "11",
        "--partition",
        "12",
        "p.json",
    )
    assert made.status == 0, made
    assert f"next: ktriage review p.json {' '.join(console.connection)}" in made.err

    reviewed = console("review", "p.json")
    assert reviewed.status == 0
    assert f"now: 2 partitions of the plan: 2 {RowDecision.SEND}" in reviewed.out
    assert "ElectLeaders: elect the first live replica, 2 partitions" in reviewed.out
    assert f"next: ktriage apply p.json {' '.join(console.connection)}" in reviewed.err
    status, told = console.json("review", "p.json")
    assert status == 0
    digest = told["plan"]["digest"]
    assert digest in reviewed.out

    markdown = console("review", "p.json", "--output", "markdown")
    assert digest in markdown.out
    assert len(markdown.out.splitlines()) <= 40

    two = ("--reviewed-by", "ada", "--digest")
    assert console("apply", "p.json", "--yes", "--reason", "x", *two, "0" * 64).status == 2
    # The reason is asked too: the review is none.
    canary = console.typing(f"{LOST}\na canary", "apply", "p.json", "--first", "1", *two, digest)
    assert canary.status == 0, canary
    assert "type the name of the topic that may lose something:" in canary.err
    # The largest log comes first, and the sizes depend on how the producer cut its batches.
    first, second = (
        row["partition"] for row in json.loads((console.home / "p.json").read_text())["partitions"]
    )
    assert disaster.metadata.wait_caught_up().partition(LOST, first).leader == SURVIVOR
    assert disaster.metadata.wait_caught_up().partition(LOST, second).leader == -1

    status, told = console.json("apply", "p.json", "--yes", "--reason", "incident 4711")
    assert status == 0
    assert {row["now"] for row in told["checks"]} == {RowDecision.ALREADY_ONLINE, RowDecision.SEND}
    assert [row["outcome"] for row in told["elections"]] == ["elected"]
    again = console("apply", "p.json", "--yes", "--reason", "twice is harmless")
    assert again.status == 0
    assert "2 already online" in again.out

    verified = console("verify", "p.json")
    assert verified.status == 1, "two replicas are dead"
    assert "2 led by the right leader" in verified.out
    assert "ISR 1 of min ISR 2" in verified.out
    status, told = console.json("verify", "p.json")
    assert told["counts"] == {"partitions": 2, "good": 2, "usable": 0, "replicated": 0, "complete": 0}

    assert "has no __consumer_offsets yet" in told["consumer"]["partitions"][0]["problem"]
    assert console.json("verify", "p.json", "--not-as-consumer")[1]["consumer"] is None
    consumed = console("verify", "p.json")
    assert consumed.out.startswith("as a consumer (librdkafka "), "nothing contradicts"
    assert "0 of 2 partitions read to the end" in consumed.out
    # Here nobody has consumed yet: to verify changes nothing on the cluster.
    assert consumed.out.count("not asked: the cluster has no __consumer_offsets yet") == 1
    assert not disaster.metadata.wait_caught_up().partitions("__consumer_offsets")

    journal = console("journal")
    assert f"reason: a canary; reviewed by ada, digest {digest}" in journal.out
    assert "incident 4711" in journal.out


def test_an_unclean_election_of_all_partitions_asks_first(
    disaster: KafkaCluster, console: CommandRunner
) -> None:
    every = ("--election-type", "unclean", "--all-topic-partitions")
    left = sum(
        1 for state in disaster.metadata.wait_caught_up().partitions(LOST).values() if state.leader == -1
    )
    assert left > 0
    assert console("kafka-elect-leaders", *every).status == 2
    refused = console.typing("no", "kafka-elect-leaders", *every)
    assert refused.status == 1
    assert f"each of the {left} offline partitions" in refused.err
    assert console.sent() == []
    assert console.typing(str(left), "kafka-elect-leaders", *every).status == 0
    assert all(
        state.leader == SURVIVOR for state in disaster.metadata.wait_caught_up().partitions(LOST).values()
    )


def test_preferred_leaders_come_back_when_their_brokers_do(
    disaster: KafkaCluster, console: CommandRunner
) -> None:
    disaster.bring_all_up()
    disaster.metadata.wait_isr(LOST, 0, [1, 2, 3])
    ended = console(
        "kafka-elect-leaders", "--election-type", "preferred", "--topic", LOST, "--partition", "0"
    )
    assert ended.status == 0, str(ended)
    assert disaster.metadata.wait_caught_up().partition(LOST, 0).leader == 1
    # What the elected replica held is what everybody holds now: its older log, and no more.
    assert len(disaster.client.consume(LOST, 1)) == 100


def test_a_broker_that_is_started_within_the_recovery_duration_counts(
    disaster: KafkaCluster, console: CommandRunner
) -> None:
    """Brokers 1 and 2 refuse connections when the recovery begins; they hold the records that 3 lacks."""
    disaster.bring_all_up()
    disaster.client.create_topic(LATE, [[1, 2, 3]], {"min.insync.replicas": "2"})
    isr_dead(disaster, LATE, range(1), survivor=SURVIVOR)
    ended: list[Ended] = []
    words = ("--path-to-json-file", wanted(console.home, 0, topic=LATE), "--automated-recovery")
    lasting = ("--recovery-duration-ms", "120000", "--reason", "a test")
    log = console.home / "connections.log"
    recovering = threading.Thread(
        target=lambda: ended.append(console("--log-file", str(log), "recover", *words, *lasting))
    )
    recovering.start()
    # On a busy machine the brokers would else be there before the command has read anything.
    wait_until(
        lambda: log.exists() and f"broker {SURVIVOR} at" in log.read_text(),
        "the recovery to have read the cluster",
    )
    disaster.bring_all_up()
    recovering.join(150)
    (done,) = ended
    assert done.status == 0, str(done)
    assert disaster.metadata.wait_caught_up().partition(LATE, 0).leader in (1, 2)
    assert len(disaster.client.consume(LATE, 0)) == 200
