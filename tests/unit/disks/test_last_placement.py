"""Where each replica was when it was last in sync: kept over a failure, and until a new disk is full again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from backends.base.answers import ClusterInfo, LogDir, LogDirReplica, Partitions
from backends.base.failed_disks import LogDirs
from backends.base.protocol import Backend
from console.jobs.disks.disk_swap import disk_swap
from console.last_healthy import recall, remember
from console.reading.log_dir_survey import LAST_DIRS, Disks, dirs_from_json, failed_before, keep
from console.reading.log_dirs_report import dirs_document, dirs_lines, swap_lines
from recovery.cluster_health import ClusterHealth, QuorumFinding, QuorumState
from recovery.disks.values import LogDirPlace, PartitionsByDir
from recovery.model import Broker, PartitionState, TopicPartition, Unknown, Why
from recovery.wording.cluster_health_text import health_line
from tests.unit.disks.clusters import A, B, state, tp

CLUSTER = ClusterInfo("c", tuple(Broker(b, "h", 9092, None, False) for b in (1, 2, 3)), 1, True)


def log_dir(path: str, *held: TopicPartition, error: str | None = None) -> LogDir:
    return LogDir(1, path, error, 100, 50, tuple(LogDirReplica(name, 1, 0, False) for name in held))


def disks(
    states: list[PartitionState], dirs: tuple[LogDir, ...], kept: PartitionsByDir | None = None
) -> Disks:
    return Disks(CLUSTER, Partitions(tuple(states)), log_dirs={1: dirs}, last_in_sync_dirs=kept or {})


def kept_of(found: Disks) -> PartitionsByDir:
    return dirs_from_json(keep(found, 0.0))


def test_a_failed_dir_keeps_what_it_held() -> None:
    healthy = disks([state(0), state(1)], (log_dir(A, tp(0)), log_dir(B, tp(1))))
    kept = kept_of(healthy)
    assert kept == {1: {A: frozenset({tp(0)}), B: frozenset({tp(1)})}}
    gone = state(1, leader=2, isr=(2, 3), offline_replicas=(1,))
    failed = disks([state(0), gone], (log_dir(A, tp(0)), log_dir(B, error="KAFKA_STORAGE_ERROR")), kept)
    assert kept_of(failed) == kept


def test_a_new_disk_is_what_it_was_until_its_replicas_are_in_sync_again() -> None:
    kept: PartitionsByDir = {1: {A: frozenset({tp(0)}), B: frozenset({tp(1)})}}
    behind = state(1, leader=2, isr=(2, 3))
    elsewhere = disks([state(0), behind], (log_dir(A, tp(0), tp(1)), log_dir(B)), kept)
    assert kept_of(elsewhere)[1][B] == frozenset({tp(1)})
    assert [(m.tp, m.was, m.now) for m in elsewhere.moved] == [(tp(1), B, A)]
    back = disks([state(0), state(1)], (log_dir(A, tp(0), tp(1)), log_dir(B)), kept)
    assert kept_of(back)[1][B] == frozenset()
    assert back.moved == ()


def test_what_is_offline_and_was_never_seen_belongs_to_the_only_dir_that_failed() -> None:
    gone = state(1, leader=2, isr=(2, 3), offline_replicas=(1,))
    found = disks([gone], (log_dir(A), log_dir(B, error="KAFKA_STORAGE_ERROR")))
    assert kept_of(found)[1][B] == frozenset({tp(1)})


def test_a_deleted_topic_is_forgotten() -> None:
    kept: PartitionsByDir = {1: {A: frozenset({tp(0), tp(7)})}}
    assert kept_of(disks([state(0)], (log_dir(A, tp(0)),), kept)) == {1: {A: frozenset({tp(0)})}}


def test_what_is_kept_lasts_and_what_is_broken_is_as_good_as_nothing(tmp_path: Path) -> None:
    root = tmp_path
    remember("c", "log-dirs", {"brokers": {}}, root)
    remember("c", "log-dirs", {"brokers": {"1": {A: {"orders": [0]}}}}, root)
    assert dirs_from_json(recall("c", "log-dirs", root)) == {1: {A: frozenset({tp(0)})}}
    (root / "c" / "log-dirs.json").write_text("{")
    assert recall("c", "log-dirs", root) is None
    assert recall("other", "log-dirs", root) is None
    assert dirs_from_json(None) == {}
    remember("", "log-dirs", {}, root)


def test_a_disk_that_failed_is_told_of_its_own_cluster_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two clusters with one id share no topic id."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    gone = state(1, leader=2, isr=(2, 3), offline_replicas=(1,))
    listed = {1: (log_dir(A, tp(0)), log_dir(B, error="KAFKA_STORAGE_ERROR"))}
    silent = {1: Unknown(Why.NOT_ANSWERED, "connection refused")}
    here = Partitions((state(0)._replace(topic_id="here"), gone._replace(topic_id="here")))
    assert failed_before(CLUSTER, here, listed) == ()
    (remembered,) = failed_before(CLUSTER, here, silent)
    assert (remembered.path, remembered.error) == (B, "KAFKA_STORAGE_ERROR")
    assert [replica.tp for replica in remembered.replicas] == [tp(1)]
    assert "when broker 1 last listed it" in remembered.problem
    there = Partitions(tuple(one._replace(topic_id="there") for one in here.states))
    assert failed_before(CLUSTER, there, silent) == ()
    assert failed_before(CLUSTER, here, {1: (log_dir(A, tp(0)), log_dir(B))}) == ()
    assert failed_before(CLUSTER, here, silent) == (), "it was seen healthy since"


def test_a_caller_that_may_not_see_every_topic_forgets_no_failed_dir(monkeypatch: pytest.MonkeyPatch) -> None:
    """It sees no topic, and a broker that lists no log dirs: whether the topics are gone is not known."""
    failed = disks([state(0)], (log_dir(A, tp(0)), log_dir(B, error="KAFKA_STORAGE_ERROR")))
    remember(CLUSTER.cluster_id, LAST_DIRS, keep(failed, 0.0))
    silent = {1: Unknown(Why.NOT_ANSWERED, "down")}
    nothing = Partitions((), visible_only=True, not_compared=Unknown(Why.NOT_ANSWERED, "broker 1"))
    assert [one.path for one in failed_before(CLUSTER, nothing, silent)] == [B]
    assert [one.path for one in failed_before(CLUSTER, Partitions((state(0),)), silent)] == [B]
    others = Partitions((state(0)._replace(topic_id="another"),))
    assert failed_before(CLUSTER, others, silent) == ()


async def test_a_replica_that_was_on_another_dir_of_the_broker_does_not_belong_to_a_failed_one() -> None:
    """Its broker is down: every replica of it is offline, on whatever disk it is."""
    down = ClusterInfo("c", (CLUSTER.brokers[0]._replace(fenced=True), *CLUSTER.brokers[1:]), 1, True)
    states = tuple(state(p, leader=2, isr=(2, 3), offline_replicas=(1,)) for p in range(4))
    before: PartitionsByDir = {1: {A: frozenset({tp(0)}), B: frozenset({tp(1)})}}
    dirs = {1: Unknown(Why.NOT_ANSWERED, "down")}
    gone = Disks(
        down,
        Partitions(states),
        log_dirs=dirs,
        failed_before=(log_dir(B, error="KAFKA_STORAGE_ERROR"),),
        last_in_sync_dirs=before,
    )
    swap = await disk_swap(cast("Backend", NoConfigs()), gone, LogDirPlace(1, B))
    assert (swap.replicas, swap.unplaced) == ((tp(1),), (tp(2), tp(3)))
    assert swap.awaited == (tp(1), tp(2), tp(3))
    lines = [*swap_lines(swap, gone, 0, ())]
    assert lines[0].startswith(f"1:{B}: 1 replica known to belong there")
    assert "and 2 replicas of that broker that may have been there" in lines[1]
    assert "broker 1 does not list its log dirs now" in lines[2]


async def test_a_swap_of_a_broker_that_nobody_has_listed_reckons_with_all_of_its_replicas() -> None:
    """It stopped before anybody looked: an empty disk would be elected wherever it led last."""
    down = ClusterInfo("c", (CLUSTER.brokers[0]._replace(fenced=True), *CLUSTER.brokers[1:]), 1, False)
    led_last = state(0, leader=-1, isr=(1,), offline_replicas=(1,))
    other = state(1, leader=2, isr=(2, 3), offline_replicas=(1,))
    dirs = {1: Unknown(Why.NOT_ANSWERED, "down")}
    found = Disks(down, Partitions((led_last, other)), log_dirs=dirs)
    swap = await disk_swap(cast("Backend", NoConfigs()), found, LogDirPlace(1, B))
    assert (swap.replicas, swap.unplaced) == ((), (tp(0), tp(1)))
    assert [danger.tp for danger in swap.dangers] == [tp(0)]
    assert any("RECOVER FIRST" in line for line in swap_lines(swap, found, 0, ()))


async def test_a_replica_that_moved_for_good_belongs_to_the_dir_where_it_is() -> None:
    before: PartitionsByDir = {1: {A: frozenset({tp(0)}), B: frozenset({tp(1), tp(2)})}}
    behind = state(2, leader=2, isr=(2, 3))
    healthy = disks([state(0), state(1), behind], (log_dir(A, tp(0), tp(1), tp(2)), log_dir(B)), before)
    swap = await disk_swap(cast("Backend", NoConfigs()), healthy, LogDirPlace(1, B))
    assert swap.replicas == (tp(2),), "it came back on another dir, and is not in sync yet"
    assert (await disk_swap(cast("Backend", NoConfigs()), healthy, LogDirPlace(1, A))).replicas == (
        tp(0),
        tp(1),
        tp(2),
    )


def test_what_was_not_listed_stands_beside_what_has_failed() -> None:
    dirs: LogDirs = {1: (log_dir(A, tp(0)),), 2: Unknown(Why.NOT_ALLOWED, "DESCRIBE on the cluster")}
    found = Disks(CLUSTER, Partitions((state(0),)), log_dirs=dirs)
    assert found.dirs_not_listed == (2, 3), "3 has a replica, and was not there to be asked"
    assert "0 failed, not known of brokers 2, 3;" in next(dirs_lines(found, (), 0))
    assert json.loads("".join(dirs_document(found, ())))["counts"]["notListed"] == 2
    health = ClusterHealth(QuorumFinding(QuorumState.LED), offline=0, dirs_not_listed=found.dirs_not_listed)
    assert not health.well and "log dirs of 2 brokers not known" in health_line(health)
    down = health._replace(brokers_down=(2, 3))
    assert "not known" not in health_line(down), "the line says already that they are down"


class NoConfigs:
    """As much of a backend as a swap asks."""

    async def topic_configs(self, _topics: object) -> dict[str, dict[str, str]]:
        return {}
