"""Where each replica was when it was last in sync: kept over a failure, and until a new disk is full again."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.base.answers import ClusterInfo, LogDir, LogDirReplica, Partitions
from console.last_healthy import recall, remember
from console.operations.survey.log_dir_survey import Disks, dirs_from_json, failed_before, keep
from recovery.disks.values import PartitionsByDir
from recovery.model import Broker, PartitionState, TopicPartition, Unknown, Why
from tests.unit.disks.clusters import A, B, state, tp

CLUSTER = ClusterInfo("c", tuple(Broker(b, "h", 9092, None, False) for b in (1, 2, 3)), 1, True)


def log_dir(path: str, *held: TopicPartition, error: str | None = None) -> LogDir:
    return LogDir(1, path, error, 100, 50, tuple(LogDirReplica(name, 1, 0, False) for name in held))


def disks(
    states: list[PartitionState], dirs: tuple[LogDir, ...], kept: PartitionsByDir | None = None
) -> Disks:
    return Disks(CLUSTER, Partitions(tuple(states)), {1: dirs}, kept or {})


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
