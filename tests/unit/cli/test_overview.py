"""``ktriage status``: what an operator reads on the one screen, and what a program reads in the JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from backends.base.answers import (
    ClusterInfo,
    Contact,
    LogDir,
    Partitions,
)
from console.jobs.status.overview_report import offline_lines, overview_document, overview_lines
from console.reading.cluster_reading import ClusterReading, not_answered
from console.reading.offline_times import OfflineTimes
from console.reading.partition_report import partition_lines
from recovery.membership.quorum import Quorum, QuorumReplica, described
from recovery.membership.voters import ReplicaKey, Voter, VoterSet
from recovery.model import Broker, PartitionState, Survey, TopicPartition, Unknown, Why
from recovery.plan.importance import Importance, TopicTier
from tests.unit.recovery.surveys import NO_READ, SILENT, log, survey

WELL = log((0, 0, 10))
BROKERS = tuple(Broker(i, f"kafka-{i}", 9092, None, False) for i in (1, 2, 3))


def fetched(number: int, end: int, last_fetch_ms: int, caught_up_ms: int) -> QuorumReplica:
    return QuorumReplica(ReplicaKey(number, f"d{number}"), end, last_fetch_ms, caught_up_ms)


LED = fetched(100, 500, 90_000, 90_000)


def quorum(*others: QuorumReplica, observers: tuple[QuorumReplica, ...] = (), leader: int = 100) -> Quorum:
    voters = VoterSet(tuple(Voter(held.key) for held in (LED, *others)))
    progress = (LED, *others, *observers)
    return described("cluster-a", voters, progress, leader_id=leader, leader_epoch=7, high_watermark=499)


def dirs(broker: int, error: str | None = None) -> tuple[LogDir, ...]:
    return (LogDir(broker, "/data", error, -1 if error else 100, -1 if error else 50, ()),)


def view(
    *surveys: Survey,
    brokers: tuple[Broker, ...] = BROKERS,
    silent: Mapping[int, Unknown] | None = None,
    log_dirs: Mapping[int, tuple[LogDir, ...] | Unknown] | None = None,
    told_quorum: Quorum | Unknown | None = None,
    hidden: tuple[str, ...] = (),
    unknown: Mapping[TopicPartition, Unknown] | None = None,
) -> ClusterReading:
    problems = silent or {}
    contacts = tuple(
        Contact(b.id, f"{b.host}:9092", problems.get(b.id), 0.1, "ListOffsets+Fetch (emulated)")
        for b in brokers
    )
    states = tuple(s.state for s in surveys)
    return ClusterReading(
        ClusterInfo("cluster-a", brokers, 1, True, "4.3"),
        Partitions(states, unknown or {}, hidden, visible_only=True),
        surveys,
        contacts,
        log_dirs={b.id: dirs(b.id) for b in brokers} | dict(log_dirs or {}),
        quorum=told_quorum or quorum(),
    )


def partition(number: int, row: Survey) -> Survey:
    """The survey under another partition's number."""
    state: PartitionState = row.state._replace(partition=number)
    return row._replace(state=state)


def text(seen: ClusterReading, limit: int = 10) -> str:
    return "\n".join(overview_lines(seen, limit, now=0.0))


ONLINE = survey({1: WELL, 2: WELL, 3: WELL}, leader=1, isr=(1, 2, 3))
OFFLINE = survey({1: WELL, 2: WELL, 3: SILENT}, elr=(3,), last_known_elr=(3,))


def test_a_cluster_in_good_order_fits_a_few_lines_and_lists_no_partition() -> None:
    seen = text(view(ONLINE))
    assert "1 partition that this caller may see: 0 offline, 0 more under min ISR" in seen
    assert "t-0" not in seen
    assert not_answered(view(ONLINE)) == ()


def test_the_worst_partition_comes_first_and_the_rest_is_counted() -> None:
    fewer = survey({1: WELL, 2: WELL, 3: WELL}, leader=1, isr=(1,))
    seen = text(view(partition(1, fewer), partition(2, ONLINE), partition(3, OFFLINE)), limit=1)
    assert "1 offline, 1 more under min ISR, 2 not fully replicated, 1 with ELR in use" in seen
    assert "t-3" in seen
    assert "t-1" not in seen
    assert "… and 1 more partition in trouble" in seen


def test_of_equally_bad_partitions_the_most_important_come_first() -> None:
    """Internal topics, the profile's tiers, then the largest; a partition that refuses acks=all before one that
    only lacks a copy, whatever its topic.
    """

    def named(topic: str, row: Survey, size: int = 10) -> Survey:
        sized = tuple(
            one if isinstance(one.log, Unknown) else one._replace(log=one.log._replace(size=size))
            for one in row.replicas
        )
        return row._replace(state=row.state._replace(topic=topic), replicas=sized)

    short = survey({1: WELL, 2: WELL, 3: WELL}, leader=1, isr=(1, 2))
    under = survey({1: WELL, 2: WELL, 3: WELL}, leader=1, isr=(1,))
    rows = (
        named("payments", short),
        named("audit", under),
        named("small", OFFLINE),
        named("large", OFFLINE, 5_000),
        named("payments-eu", OFFLINE),
        named("__consumer_offsets", OFFLINE),
    )
    tiers = Importance((TopicTier("critical", ("payments*",)),))
    shown = "\n".join(overview_lines(view(*rows), 10, now=0.0, importance=tiers))
    order = ["__consumer_offsets-0", "payments-eu-0", "large-0", "small-0", "audit-0", "payments-0"]
    assert [
        line.split()[0] for line in shown.splitlines() if line.split()[:1] and line.split()[0] in order
    ] == order


def test_a_fenced_broker_that_is_down_is_a_finding_and_not_a_failure_to_ask() -> None:
    fenced = (*BROKERS[:2], BROKERS[2]._replace(fenced=True))
    seen = view(OFFLINE, brokers=fenced, silent={3: SILENT}, log_dirs={3: SILENT})
    assert "1 fenced, 1 unreachable from here" in text(seen)
    (row,) = [line for line in text(seen).splitlines() if "kafka-3:9092" in line]
    assert "FENCED" in row and "not answered: connection refused" in row
    assert not_answered(seen) == ()


def test_a_broker_that_should_be_up_and_cannot_be_reached_is_named_once() -> None:
    seen = view(ONLINE, silent={3: SILENT}, log_dirs={3: SILENT})
    assert not_answered(seen) == ("broker 3 at kafka-3:9092: not answered: connection refused",)


def test_what_may_not_be_seen_is_said_and_never_counted_as_well() -> None:
    refused = Unknown(Why.NOT_ALLOWED, "needs DESCRIBE on the cluster")
    unread = WELL._replace(lineage=NO_READ)
    row = survey({1: unread, 2: unread, 3: WELL}, leader=1, isr=(1, 2, 3))._replace(min_isr=refused)
    seen = view(row, told_quorum=refused, log_dirs={1: refused}, hidden=("secret",))
    lines = not_answered(seen)
    assert any("needs DESCRIBE on topic secret" in line for line in lines)
    assert "quorum: not allowed: needs DESCRIBE on the cluster" in lines
    assert "log dirs of broker 1: not allowed: needs DESCRIBE on the cluster" in lines
    assert "min ISR of 1 partitions: not allowed: needs DESCRIBE on the cluster" in lines
    assert "last epochs of 2 replicas: not allowed: needs READ on topic t" in lines
    assert "quorum: not allowed" in text(seen)


def test_a_partition_whose_leader_cannot_be_told_is_not_lost() -> None:
    no_listener = {TopicPartition("t", 4): Unknown(Why.FAILED, "its leader has no such listener")}
    assert not_answered(view(ONLINE, unknown=no_listener)) == (
        "t-4: failed: its leader has no such listener",
    )


def test_voters_and_observers_that_lag_are_shown_the_worst_first() -> None:
    late = fetched(102, 100, 1_000, 60_000)
    near = fetched(101, 498, 89_000, 89_900)
    gone = fetched(3, 20, 1_000, 10_000)
    told = quorum(near, late, observers=(gone, near._replace(key=ReplicaKey(1, "d1"))))
    seen = text(view(ONLINE, told_quorum=told))
    head = "led by 100 (epoch 7), tolerates no more failures: 2 of 3 voters up, majority 2; 1 voter does not fetch;"
    assert f"{head} 2 observers: 1 behind" in seen
    rows = [line.split()[1] for line in seen.partition("QUORUM")[2].splitlines()[2:6]]
    assert rows == ["102", "3", "100", "101"], "who does not fetch stands first"
    assert "does not fetch            400  30.0 s" in seen


def test_voters_in_good_order_are_said_to_be_and_what_the_set_stands() -> None:
    near = (fetched(101, 500, 90_000, 90_000), fetched(102, 500, 90_000, 90_000))
    seen = text(view(ONLINE, told_quorum=quorum(*near)))
    assert "tolerates 1 more failure: 3 of 3 voters up, majority 2; 0 observers: 0 behind" in seen
    assert "fetch" not in seen


def test_a_voter_that_fetches_and_is_late_is_behind_and_a_quorum_that_cannot_commit_is_called_so() -> None:
    late = fetched(101, 490, 89_900, 60_000)
    gone = fetched(102, 100, 1_000, 1_000)
    assert "2 of 2 voters up, majority 2; 1 voter is behind; 0 obs" in text(
        view(ONLINE, told_quorum=quorum(late))
    )
    both = view(ONLINE, told_quorum=quorum(gone, gone._replace(key=ReplicaKey(103, "d103"))))
    assert "CANNOT COMMIT: 1 of 3 voters up, majority 2; down: 102-d102, 103-d103; 2 voters do not" in text(
        both
    )
    told = json.loads("\n".join(overview_document(both)))["quorum"]
    assert told["strength"]["failuresStood"] == -1
    assert [key["id"] for key in told["notFetching"]] == [102, 103]
    assert told["behind"] == []


def test_a_failed_log_dir_is_named_with_its_broker() -> None:
    seen = text(view(ONLINE, log_dirs={2: dirs(2, "KAFKA_STORAGE_ERROR")}))
    assert "log dirs: 1 failed" in seen
    assert "FAILED LOG DIRS" in seen and " 2  /data    KAFKA_STORAGE_ERROR" in seen


def test_json_holds_every_partition_with_every_log_and_all_else() -> None:
    failed: dict[int, tuple[LogDir, ...] | Unknown] = {2: dirs(2, "KAFKA_STORAGE_ERROR"), 3: SILENT}
    told = json.loads(
        "\n".join(overview_document(view(partition(0, ONLINE), partition(1, OFFLINE), log_dirs=failed)))
    )
    assert told["schema"] == "ktriage.status/3"
    assert told["counts"]["offline"] == 1
    offline = told["partitions"][1]
    assert (offline["leader"], offline["elr"], offline["lastKnownElr"]) == (-1, [3], [3])
    assert [(row.get("lastEpoch"), row.get("logEndOffset")) for row in offline["logs"]] == [
        (0, 10),
        (0, 10),
        (None, None),
    ]
    assert offline["logs"][2]["unknown"] == "not answered"
    assert [row.get("error", "unknown") for row in told["logDirs"]] == [
        None,
        "KAFKA_STORAGE_ERROR",
        "unknown",
    ]
    assert told["quorum"]["leader"] == 100


def _offline_for(times: OfflineTimes, offline: int, now: float) -> list[str]:
    reading = view(*(partition(number, OFFLINE) for number in range(offline)))
    return list(offline_lines(replace(reading, offline_times=times), now))


def test_where_the_log_begins_later_a_partition_is_offline_for_at_least_so_long() -> None:
    early, late = TopicPartition("early", 0), TopicPartition("late", 0)
    told = OfflineTimes({late: 940.0}, "the metadata log does not go back that far", {early: 400.0})
    assert _offline_for(told, 2, 1_000.0) == [
        "offline for at least 10 min (early-0): the metadata log begins later"
    ]
    ahead = OfflineTimes({late: 1_030.0, early: 1_000.0})
    assert _offline_for(ahead, 2, 1_010.0) == [
        "offline for 10 s at the most (early-0); of 1 it is not known"
    ], "the controller's clock is ahead"
    assert _offline_for(ahead, 2, 990.0) == [
        "offline for: not known (it began in the future by this host's clock: the clocks differ)"
    ]
    assert _offline_for(OfflineTimes({late: 940.5}), 1, 1_001.0) == [
        "offline for 2 min at the most (late-0)"
    ], "a limit is never below what it limits"
    assert _offline_for(OfflineTimes({}, "no permission"), 1, 1_000.0) == [
        "offline for: not known (no permission)"
    ]


def test_why_reassignments_are_not_known_does_not_fill_the_table() -> None:
    """Without a quorum the reason names every broker that was asked."""
    why = Unknown(
        Why.NOT_ANSWERED, "; ".join(f"broker {n} at kafka-{n}:9092: connection closed" for n in range(9))
    )
    asked = survey({1: WELL, 2: SILENT})._replace(reassigning=why)
    lines = list(partition_lines(view(asked), [asked]))
    assert lines[1].endswith("not answered")
    assert all(len(line) < 120 for line in lines)


def test_a_dead_broker_without_replicas_can_be_removed() -> None:
    brokers = (*BROKERS[:2], BROKERS[2]._replace(fenced=True))
    silent = {3: Unknown(Why.NOT_ANSWERED, "connection refused")}
    healed = survey({1: WELL, 2: WELL}, leader=1, isr=(1, 2))
    said = text(view(healed, brokers=brokers, silent=silent))
    assert "Do first: Start broker 3, or remove its registration: no partition has a replica there." in said
    hidden = text(view(healed, brokers=brokers, silent=silent, hidden=("payments",)))
    assert "registration" not in hidden, "who knows what the hidden topic has"
