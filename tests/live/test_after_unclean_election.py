"""Consumer groups and transactions after an unclean election, on a real cluster, and how they are put right.

Every topic has a stale long tail on broker 1, which groups have read and in which transactions ended; broker 2 is
elected. The coordinators are on broker 4, which stays; a part of __consumer_offsets is on broker 3, which does not.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer

from testbed.kafka import ClusterSpec, KafkaCluster, wait_until
from tests.live import group_clients, incident_steps
from tests.live.command_runner import CommandRunner

OFFSETS, DECISIONS = "__consumer_offsets", "__transaction_state"
CLUSTER = ClusterSpec(
    controllers=1,
    brokers=4,
    broker_config={
        "offsets.topic.num.partitions": "2",
        "transaction.state.log.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
    },
)
TOPIC = "orders"
COMMITTED, ABORTED, ALIVE, SINCE = "payments", "refunds", "transfers", "ledger"
TRANSACTIONAL = (COMMITTED, ABORTED, ALIVE, SINCE)
PLAIN, IN_TRANSACTION, SINCE_THEN = 50, 100, 20
COMMON, TAIL, KEPT = 1000, 500, 300
READ = 1450
AGREED = ("--yes", "--reason", "a test")


class Incident(NamedTuple):
    """The cluster without a leader for any topic; ``alive`` is the producer whose transaction is still open."""

    cluster: KafkaCluster
    alive: Producer


@pytest.fixture(scope="module")
def after(cluster: KafkaCluster) -> Incident:
    """Groups read 1450 of the tail; min ISR is 1, so that they can."""
    cluster.client.create_topic(OFFSETS, [[4], [3]], {"cleanup.policy": "compact"})
    cluster.client.create_topic(DECISIONS, [[4]], {"cleanup.policy": "compact"})
    topics = (TOPIC, *TRANSACTIONAL)
    for topic in topics:
        cluster.client.create_topic(topic, [[1, 2, 3]])
    incident_steps.produce(cluster, TOPIC, COMMON, "common")
    group_clients.read_and_commit(cluster, at_home("common"), TOPIC, 900)
    group_clients.read_and_commit(cluster, elsewhere("hidden"), TOPIC, 900)
    for topic in TRANSACTIONAL:
        incident_steps.produce(cluster, topic, PLAIN, "plain")
    group_clients.read_and_commit(cluster, at_home("auditor"), COMMITTED, PLAIN)
    open_ones = {t: group_clients.transaction(cluster, f"{t}-app", t, IN_TRANSACTION) for t in TRANSACTIONAL}
    incident_steps.kill(cluster, 2, 3)
    incident_steps.wait_all(cluster, topics, lambda state: state.isr == (1,), "with 1 alone in the ISR")
    incident_steps.produce(cluster, TOPIC, TAIL, "tail", acks="1")
    for group in ("with-epoch", "member"):
        group_clients.read_and_commit(cluster, at_home(group), TOPIC, READ)
    for group in ("no-epoch", "not-fixed", "exported"):
        group_clients.read_and_commit(cluster, at_home(group), TOPIC, READ, epoch=False)
    open_ones[COMMITTED].commit_transaction(60)
    open_ones[ABORTED].abort_transaction(60)
    open_ones[SINCE].commit_transaction(60)
    for topic, state in (
        (COMMITTED, "CompleteCommit"),
        (ABORTED, "CompleteAbort"),
        (SINCE, "CompleteCommit"),
    ):
        wait_until(partial(is_described, cluster, topic, state), f"{topic}'s transaction to end")
    open_ones[SINCE].begin_transaction()
    open_ones[SINCE].produce(ALIVE, b"another", partition=0)
    assert open_ones[SINCE].flush(60) == 0
    incident_steps.kill(cluster, 1)
    incident_steps.start(cluster, 2)
    incident_steps.elect_unclean(cluster, topics, 2)
    incident_steps.start(cluster, 3)
    incident_steps.wait_all(cluster, topics, lambda state: set(state.isr) == {2, 3}, "in sync on 2 and 3")
    incident_steps.produce(cluster, TOPIC, KEPT, "kept")
    for topic in TRANSACTIONAL:  # newer than the tail with the markers, which is cut off therefore
        incident_steps.produce(cluster, topic, SINCE_THEN, "since")
    group_clients.read_and_commit(cluster, at_home("kept"), TOPIC, COMMON + 200)
    incident_steps.kill(cluster, 2)
    incident_steps.wait_all(cluster, topics, lambda state: state.leader == 3, "led by 3")
    incident_steps.kill(cluster, 3)
    incident_steps.start(cluster, 1, 2)
    incident_steps.wait_offline(cluster, topics)
    return Incident(cluster, open_ones[ALIVE])


@pytest.fixture
def incident(after: Incident) -> KafkaCluster:
    return after.cluster


def is_described(cluster: KafkaCluster, topic: str, state: str) -> bool:
    return (
        state in cluster.tools("kafka-transactions", "describe", "--transactional-id", f"{topic}-app").stdout
    )


def at_home(name: str) -> str:
    """The name, or a longer one, of a group that is stored in partition 0 of __consumer_offsets, on broker 4."""
    return _stored(name, 0)


def elsewhere(name: str) -> str:
    return _stored(name, 1)


def _stored(name: str, partition: int) -> str:
    return next(f"{name}-{n}" for n in range(10) if _java_hash(f"{name}-{n}") % 2 == partition)


def _java_hash(text: str) -> int:
    """String.hashCode without its sign, as the coordinator takes it."""
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value & 0x7FFFFFFF


@pytest.fixture(scope="module")
def planned(after: Incident, tmp_path_factory: pytest.TempPathFactory) -> CommandRunner:
    """A console whose plan.json is from before the election."""
    cluster = after.cluster
    home = tmp_path_factory.mktemp("console")
    console = CommandRunner(home, cluster.bootstrap(), cluster.metadata.wait_caught_up)
    topics = [word for topic in (TOPIC, *TRANSACTIONAL) for word in ("--topic", topic)]
    assert console("plan", *topics, "--strategy", "aggressive", "plan.json").status == 0
    return console


@pytest.fixture(scope="module")
def elected(planned: CommandRunner, after: Incident) -> CommandRunner:
    """The same console after broker 2 was elected by that plan."""
    assert planned("apply", "plan.json", *AGREED).status in (0, 1)
    after.cluster.metadata.wait_leader(TOPIC, 0, 2)
    return planned


class FixedGroups(NamedTuple):
    """What fixing three groups said, one of which had a member; ``shown``: ``groups show`` at that moment."""

    status: int
    document: dict[str, Any]
    shown: str


@pytest.fixture(scope="module")
def fixed_groups(elected: CommandRunner, after: Incident) -> FixedGroups:
    busy = group_clients.member(after.cluster, at_home("member"), TOPIC)
    try:
        named = [word for name in ("with-epoch", "no-epoch", "member") for word in ("--group", at_home(name))]
        status, fixed = elected.json("groups", "fix", "plan.json", *named, *AGREED)
        return FixedGroups(status, fixed, elected("groups", "show", "plan.json").out)
    finally:
        busy.close()


def offsets_of(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["group"]: row for row in document["offsets"]}


def test_before_the_election(planned: CommandRunner) -> None:
    reviewed = planned("review", "plan.json", "--output", "markdown")
    assert "consumer groups affected" in reviewed.out, reviewed
    assert "there may be other consumer groups" in reviewed.out, reviewed
    status, told = planned.json("groups", "show", "plan.json", "--all", "--topic", TOPIC)
    rows = offsets_of(told)
    assert status == 1
    assert rows[at_home("common")]["place"] == "common" and rows[at_home("common")]["offset"] == 900
    assert rows[at_home("kept")]["place"] == "kept" and rows[at_home("kept")]["epoch"] > 0
    epoch, none = rows[at_home("with-epoch")], rows[at_home("no-epoch")]
    assert (epoch["epoch"], none["epoch"]) == (0, None)
    for row in (epoch, none):
        assert (row["place"], row["goBackTo"], row["beyondEnd"]) == ("cut-off", COMMON, True)
        assert (row["gone"], row["neverSeen"]) == (READ - COMMON, KEPT)
    assert elsewhere("hidden") not in rows
    (missing,) = told["notListed"]
    assert not told["complete"] and f"partition 1 of {OFFSETS} has no leader" in missing
    ended = planned("groups", "fix", "plan.json", *AGREED)
    assert (
        ended.status == 1
        and "no leader yet: elect one first" in ended.out
        and "nothing was sent" in ended.out
    )


def test_fixed_after_the_election(
    elected: CommandRunner, fixed_groups: FixedGroups, incident: KafkaCluster
) -> None:
    status, fixed, shown = fixed_groups
    assert status == 1, "the group with a member is left"
    changed = {row["group"]: row["after"]["offset"] for row in fixed["offsets"]}
    assert changed == {at_home("with-epoch"): COMMON, at_home("no-epoch"): COMMON}
    (left,) = fixed["afterStopping"]
    assert left["group"] == at_home("member") and left["after"]["offset"] == COMMON
    assert f"members of {at_home('member')}: {at_home('member')}-member@127.0.0.1" in shown
    for name in ("with-epoch", "no-epoch"):
        seen = group_clients.read_on(incident, at_home(name), TOPIC, COMMON + KEPT)
        assert seen == [f"kept-{number}" for number in range(KEPT)], "each record of the kept branch, once"
    assert elected.sent()[-1] == "commit-offsets"


@pytest.mark.usefixtures("fixed_groups")
def test_undone_from_the_journal(elected: CommandRunner) -> None:
    named = ("--group", at_home("no-epoch"))
    ended = elected("groups", "fix", "--undo", *named, *AGREED)
    assert ended.status == 0 and "1 offset committed and read back" in ended.out, ended
    _, told = elected.json("groups", "show", "plan.json", *named)
    assert offsets_of(told)[at_home("no-epoch")]["offset"] == READ
    again = elected("groups", "fix", "--undo", *named, *AGREED)
    assert again.status == 0 and "nothing was sent" in again.out


def test_exported_for_kafkas_own_tool(elected: CommandRunner, incident: KafkaCluster) -> None:
    group = at_home("exported")
    ended = elected("groups", "fix", "plan.json", "--group", group, "--export", "offsets.csv")
    assert (elected.home / "offsets.csv").read_text() == f"{group},{TOPIC},0,{COMMON}\n", ended
    file = ("--from-file", str(elected.home / "offsets.csv"))
    incident.tools("kafka-consumer-groups", "--group", group, "--reset-offsets", *file, "--execute")
    assert len(group_clients.read_on(incident, group, TOPIC, COMMON + KEPT)) == KEPT


def test_left_alone_a_group_skips_records_without_a_word(
    elected: CommandRunner, incident: KafkaCluster
) -> None:
    incident_steps.produce(incident, TOPIC, 300, "more")
    end = COMMON + KEPT + 300
    seen = group_clients.read_on(incident, at_home("not-fixed"), TOPIC, end)
    assert len(seen) == end - READ, "450 records of the kept branch were never seen"
    _, told = elected.json("groups", "show", "plan.json", "--group", at_home("not-fixed"))
    row = offsets_of(told)[at_home("not-fixed")]
    assert (row["place"], row["neverSeen"]) == ("cut-off", READ - COMMON), "the plan knows it from before"
    ended = elected("groups", "fix", "plan.json", "--group", at_home("not-fixed"), *AGREED)
    assert ended.status == 1 and "1 offset committed" in ended.out, "1: a part of the groups is not listed"
    assert len(group_clients.read_on(incident, at_home("not-fixed"), TOPIC, end)) == end - COMMON


def test_hanging_transactions_are_ended_as_they_were_decided(
    elected: CommandRunner, incident: KafkaCluster, after: Incident
) -> None:
    status, told = elected.json("transactions", "show", "plan.json")
    rows = {row["transactionalId"]: row for row in told["transactions"] if row["topic"] != ALIVE}
    assert status == 1 and told["complete"], told
    assert {name: (row["ending"], row["certain"]) for name, row in rows.items()} == {
        f"{COMMITTED}-app": ("committed", True),
        f"{ABORTED}-app": ("aborted", True),
        f"{SINCE}-app": ("committed", True),
    }
    alive = [row for row in told["transactions"] if row["topic"] == ALIVE]
    assert [row["ending"] for row in alive] == ["open"]
    committed = rows[f"{COMMITTED}-app"]
    assert (committed["startOffset"], committed["lastStableOffset"]) == (PLAIN, PLAIN)
    assert committed["waitingGroups"] == [at_home("auditor")]
    before = incident.client.consume(COMMITTED, 0, isolation="read_committed")
    assert len(before) == PLAIN, "100 acknowledged records are invisible"
    status, fixed = elected.json("transactions", "fix", "plan.json", *AGREED)
    assert status == 0, fixed
    assert sorted((row["topic"], row["result"]) for row in fixed["markers"]) == [
        (SINCE, "COMMIT"),
        (COMMITTED, "COMMIT"),
        (ABORTED, "ABORT"),
    ]
    for topic, count in (
        (COMMITTED, PLAIN + IN_TRANSACTION + SINCE_THEN),
        (ABORTED, PLAIN + SINCE_THEN),
        (SINCE, PLAIN + IN_TRANSACTION + SINCE_THEN),
    ):
        assert len(incident.client.consume(topic, 0, isolation="read_committed")) == count, topic
    end = PLAIN + IN_TRANSACTION + SINCE_THEN
    seen = group_clients.read_on(incident, at_home("auditor"), COMMITTED, end, "read_committed")
    assert seen[:IN_TRANSACTION] == [f"{COMMITTED}-app-{number}" for number in range(IN_TRANSACTION)]
    assert len(seen) == IN_TRANSACTION + SINCE_THEN
    after.alive.commit_transaction(60)
    again = elected("transactions", "fix", "plan.json", *AGREED)
    assert again.status == 0 and "nothing was sent" in again.out, again
