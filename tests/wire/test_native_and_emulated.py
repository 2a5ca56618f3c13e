"""The same incident, recovered by the cluster's own calls and by what stands for them, ends the same."""

from __future__ import annotations

from pathlib import Path

from recovery.model import EpochSpan
from tests.wire.recovery_outcome import recover_stale_long_tail


def test_the_same_leader_and_the_same_logs_either_way(tmp_path: Path) -> None:
    native = recover_stale_long_tail("", tmp_path / "native")
    emulated = recover_stale_long_tail("GetReplicaLogInfo,ElectLeaders:3", tmp_path / "emulated")
    assert native == emulated
    assert native.leader == 2
    assert native.replicas == (1, 2, 3)
    assert set(native.logs.values()) == {(EpochSpan(0, 0, 1000), EpochSpan(2, 1000, 1300))}
