"""Consumer groups and transactions after an unclean election, on a real cluster, and how they are put right.

Every topic has a stale long tail on broker 1, which groups have read and in which transactions ended; broker 2 is
elected. The coordinators are on broker 4, which stays; a part of __consumer_offsets is offline with the data, and
recovered later. At the end broker 3 is gone for good, and the whole incident is reported.
"""

from __future__ import annotations

import shlex
from typing import Any, NamedTuple

import pytest

from testbed.kafka import ClusterSpec, KafkaCluster, wait_until
from tests.command_server import Ended
from tests.live import group_clients, incident_steps
from tests.live.command_runner import CommandRunner
from tests.live.unclean_election_incident import (
    ABORTED,
    ALIVE,
    COMMITTED,
    COMMON,
    FORGOTTEN,
    IN_TRANSACTION,
    KEPT,
    OFFSETS,
    PLAIN,
    READ,
    SINCE,
    SINCE_THEN,
    TAIL,
    TOPIC,
    TRANSACTIONAL,
    Incident,
    at_home,
    elsewhere,
    stale_tails_with_groups_and_transactions,
)

CLUSTER = ClusterSpec(
    controllers=1,
    brokers=4,
    broker_config={
        "offsets.topic.num.partitions": "2",
        "transaction.state.log.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
    },
    # After 300 s it would give the leadership back to broker 1, between two commands of a slow run.
    controller_config={"auto.leader.rebalance.enable": "false"},
)
AGREED = ("--yes", "--reason", "a test")
WITH_MEMBER = ("member", "modern")
"""The second is a group of the consumer protocol (KIP-848)."""


@pytest.fixture(scope="module")
def after(cluster: KafkaCluster) -> Incident:
    return stale_tails_with_groups_and_transactions(cluster)


@pytest.fixture
def incident(after: Incident) -> KafkaCluster:
    return after.cluster


@pytest.fixture(scope="module")
def planned(after: Incident, tmp_path_factory: pytest.TempPathFactory) -> CommandRunner:
    """A console whose plan.json is from before the election."""
    cluster = after.cluster
    home = tmp_path_factory.mktemp("console")
    console = CommandRunner(home, cluster.bootstrap(), cluster.metadata.wait_caught_up)
    console.plan_aggressively(TOPIC, *TRANSACTIONAL)
    return console


@pytest.fixture(scope="module")
def elected(planned: CommandRunner, after: Incident) -> CommandRunner:
    """The same console after broker 2 was elected by that plan, and what that cut off was rescued."""
    status, applied = planned.json("apply", "plan.json", "--rescue", "rescue", *AGREED)
    assert status in (0, 1)
    consumer = applied["consumer"]
    assert consumer["client"].startswith("librdkafka ") and not consumer["contradictions"], consumer
    assert len(consumer["partitions"]) == len(applied["elections"])
    after.cluster.metadata.wait_leader(TOPIC, 0, 2)
    return planned


class FixedGroups(NamedTuple):
    """What fixing four groups said, two of which had a member; ``shown``: ``groups show`` at that moment.
    ``refused`` is what was printed for those two.
    """

    status: int
    document: dict[str, Any]
    shown: str
    refused: Ended


@pytest.fixture(scope="module")
def fixed_groups(elected: CommandRunner, after: Incident) -> FixedGroups:
    busy = [
        group_clients.member(after.cluster, at_home("member"), TOPIC),
        group_clients.member(after.cluster, at_home("modern"), TOPIC, protocol="consumer"),
    ]
    try:
        only = [word for name in WITH_MEMBER for word in ("--group", at_home(name))]
        rest = [word for name in ("with-epoch", "no-epoch") for word in ("--group", at_home(name))]
        status, fixed = elected.json("groups", "fix", "plan.json", *rest, *only, *AGREED)
        shown = elected("groups", "show", "plan.json").out
        return FixedGroups(status, fixed, shown, elected("groups", "fix", "plan.json", *only, *AGREED))
    finally:
        for one in busy:
            one.close()


def offsets_of(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["group"]: row for row in document["offsets"]}


def test_before_the_election(planned: CommandRunner) -> None:
    reviewed = planned("review", "plan.json", "--output", "markdown")
    assert "need another offset after the election" in reviewed.out, reviewed
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
    status, fixed, shown, _ = fixed_groups
    assert status == 1, "the groups with members are left"
    changed = {row["group"]: row["after"]["offset"] for row in fixed["offsets"]}
    assert changed == {at_home("with-epoch"): COMMON, at_home("no-epoch"): COMMON}
    consumer = fixed["consumer"]
    # How many librdkafka reads in its time is the machine's affair.
    assert consumer["groups"] + len(consumer["unread"]) == 2 and not consumer["contradictions"], consumer
    left = {row["group"]: row["after"]["offset"] for row in fixed["afterStopping"]}
    assert left == {at_home(name): COMMON for name in WITH_MEMBER}
    for name in WITH_MEMBER:
        assert f"members of {at_home(name)}: {at_home(name)}-member@127.0.0.1" in shown
    for name in ("with-epoch", "no-epoch"):
        seen = group_clients.read_on(incident, at_home(name), TOPIC, COMMON + KEPT)
        assert seen == [f"kept-{number}" for number in range(KEPT)], "each record of the kept branch, once"
    assert elected.sent()[-1] == "commit-offsets"


def test_groups_with_members_are_fixed_by_the_command_that_was_printed_once_these_have_stopped(
    elected: CommandRunner, fixed_groups: FixedGroups, incident: KafkaCluster
) -> None:
    """One is of the consumer protocol."""
    refused = fixed_groups.refused
    assert refused.status == 1 and "nothing was sent" in refused.out, refused
    assert f"stop the members of {at_home('member')}, {at_home('modern')}, then:" in refused.err, refused
    (command,) = [line for line in refused.err.splitlines() if line.startswith("next: ")]
    words = shlex.split(command.removeprefix("next: ktriage "))
    assert words[-2:] == list(elected.connection)
    ended = elected(words[0], *words[1:-2], *AGREED)
    assert ended.status == 1 and "2 offsets committed and read back" in ended.out, "1: not all are listed"
    for name in WITH_MEMBER:
        seen = group_clients.read_on(incident, at_home(name), TOPIC, COMMON + KEPT)
        assert seen == [f"kept-{number}" for number in range(KEPT)]
        only = ("--group", at_home(name))
        undone = elected("groups", "fix", "--undo", *only, *AGREED)
        assert undone.status == 0 and "1 offset committed and read back" in undone.out, undone
        _, told = elected.json("groups", "show", "plan.json", *only)
        assert offsets_of(told)[at_home(name)]["offset"] == READ


@pytest.mark.usefixtures("fixed_groups")
def test_streams_and_connect_are_guessed_by_how_their_members_join(
    elected: CommandRunner, incident: KafkaCluster
) -> None:
    shaper, mover = at_home("shaper"), at_home("mover")
    for name in (shaper, mover):
        assert f"{name} (Kafka" not in elected("groups", "show", "plan.json").out, "nothing tells it yet"
    with (
        group_clients.raw_member(incident, shaper, 4, "consumer", "stream"),
        group_clients.raw_member(incident, mover, 4, "connect", "sessioned"),
    ):
        shown = elected("groups", "show", "plan.json").out
    assert f"{shaper} (Kafka Streams?)" in shown, shown
    assert f"{mover} (Kafka Connect?)" in shown, shown


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
    seen = group_clients.read_on(incident, at_home("subscriber"), TOPIC, end, subscribed=True)
    assert len(seen) == end - READ, "librdkafka does not check the committed epoch there"
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
    consumer = fixed["consumer"]
    assert {row["topic"] for row in consumer["partitions"]} == {COMMITTED, ABORTED, SINCE}
    assert not consumer["contradictions"], consumer
    assert not any(row.get("waitsAt") for row in consumer["partitions"]), consumer
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


def test_a_group_whose_offsets_were_offline_with_the_data(
    elected: CommandRunner, incident: KafkaCluster
) -> None:
    """Before, it is not called a group without offsets; afterwards it reads on where it stopped."""
    hidden = elsewhere("hidden")
    _, told = elected.json("groups", "show", "plan.json", "--all", "--topic", TOPIC)
    assert hidden not in offsets_of(told) and told["notListed"]
    assert elected("plan", "--topic", OFFSETS, "--strategy", "aggressive", "offsets.json").status == 0
    elected("apply", "offsets.json", *AGREED)
    incident.metadata.wait_leader(OFFSETS, 1, 2)
    _, told = elected.json("groups", "show", "plan.json", "--all", "--topic", TOPIC)
    row = offsets_of(told)[hidden]
    assert (row["place"], row["offset"], told["notListed"]) == ("common", 900, [])
    end = len(incident.client.consume(TOPIC, 0))
    assert len(group_clients.read_on(incident, hidden, TOPIC, end)) == end - 900


def test_a_transaction_that_its_coordinator_has_forgotten_is_decided_by_the_rescue(
    elected: CommandRunner, incident: KafkaCluster
) -> None:
    plan = ("--topic", FORGOTTEN, "--strategy", "aggressive", "audits.json")
    assert elected("plan", *plan).status == 0
    elected("apply", "audits.json", "--rescue", "audits", *AGREED)
    incident.metadata.wait_leader(FORGOTTEN, 0, 2)
    incident.node(4).kill()
    incident.node(4).change_properties(
        {
            "transactional.id.expiration.ms": "1000",
            "transaction.remove.expired.transaction.cleanup.interval.ms": "500",
        }
    )
    incident_steps.start(incident, 4)

    def judged(*words: str) -> tuple[Any, Any, Any]:
        told = elected.json("transactions", "show", "audits.json", *words)[1]
        (row,) = told["transactions"] or [{}]
        return row.get("ending"), row.get("evidence"), row.get("certain")

    wait_until(lambda: judged() == ("undecided", "forgotten", False), "the coordinator to forget it", 60.0)
    left = elected("transactions", "fix", "audits.json", *AGREED)
    assert left.status == 1 and "nothing was sent" in left.out, left
    assert judged("--rescue", "audits") == ("committed", "rescued_marker", True)
    other = elected("transactions", "fix", "audits.json", "--rescue", "rescue", *AGREED)
    assert other.status == 2 and "the rescue of plan" in other.err, "it is not of this plan"
    verified = elected("verify", "audits.json", "--rescue", "audits")
    assert "hanging, was committed (its marker is in the rescue)" in verified.out, verified
    assert len(incident.client.consume(FORGOTTEN, 0, isolation="read_committed")) == PLAIN
    status, fixed = elected.json("transactions", "fix", "audits.json", "--rescue", "audits", *AGREED)
    assert (status, [row["result"] for row in fixed["markers"]]) == (0, ["COMMIT"])
    seen = incident.client.consume(FORGOTTEN, 0, isolation="read_committed")
    assert len(seen) == PLAIN + IN_TRANSACTION + SINCE_THEN


def test_the_whole_incident_in_one_report(elected: CommandRunner, incident: KafkaCluster) -> None:
    """Elections, rescue, restore, groups, transactions and new replicas; the times are the cluster's."""
    back = elected("restore", "rescue", "--topic", TOPIC, "--to-topic", f"{TOPIC}-rescued", *AGREED)
    assert back.status == 0 and f"{TAIL:,}" in back.out, back
    gone = ("plan.json", "--broker-id", "3", "--gone-for-good")
    healed = elected("heal", "apply", *gone, *AGREED)
    assert healed.status == 0, healed
    incident_steps.wait_all(
        incident, (TOPIC,), lambda state: set(state.isr) == {1, 2, 4}, "in sync on 1, 2, 4"
    )
    open_now = elected("handover")
    assert open_now.status == 0 and "broker 3 down" in open_now.out, open_now
    status, told = elected.json("report", "--since", "1h")
    assert status == 0 and not told["gaps"], told["gaps"]
    text = elected("report", "--since", "1h").out
    (home := elected.home).joinpath("report.html").write_text(
        elected("report", "--since", "1h", "--output", "html").out
    )
    for words in (
        "unclean elections: acknowledged records of before may be gone",
        f"500 records to {TOPIC}-rescued",
        at_home("with-epoch"),
        f"| {COMMITTED}-0 | COMMIT | written |",
        f"| {TOPIC}-0 | 1,2,3 | 1,2,4 | moved |",
    ):
        assert words in text, f"{words}\n{text}"
    page = (home / "report.html").read_text()
    assert "<html" in page and "http://" not in page and "https://" not in page and "<svg" in page
