"""The same incident, recovered by the cluster's own calls and by what stands for them, ends the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backends.simulator.scenario.files import read
from backends.simulator.served.served_cluster import ServedClusterOptions
from recovery.model import EpochSpan
from tests.unit.cli.command_process import invoke
from tests.wire.cluster_thread import ClusterThread
from tests.wire.recovery_outcome import recover_stale_long_tail


@pytest.mark.long
def test_the_same_leader_and_the_same_logs_either_way(tmp_path: Path) -> None:
    native = recover_stale_long_tail("", tmp_path / "native")
    emulated = recover_stale_long_tail("GetReplicaLogInfo,ElectLeaders:3", tmp_path / "emulated")
    assert native == emulated
    assert native.leader == 2
    assert native.replicas == (1, 2, 3)
    assert set(native.logs.values()) == {(EpochSpan(0, 0, 1000), EpochSpan(2, 1000, 1300))}


@pytest.mark.parametrize("allowed", [True, False])
def test_a_check_names_the_calls_that_this_caller_may_use(tmp_path: Path, allowed: bool) -> None:
    with ClusterThread(read("stale-long-tail"), ServedClusterOptions()) as served:
        if not allowed:
            denied = frozenset(("CLUSTER_ACTION cluster",))
            served.change(lambda world: setattr(world.context.denied, "permissions", denied))
        ended = invoke(
            tmp_path, "ktriage", "check", "--bootstrap-server", served.bootstrap, "--output", "json"
        )
    seen = json.loads(ended.out)
    if allowed:
        assert seen["replicaLogs"] == "GetReplicaLogInfo (native), epochs by Fetch"
        assert seen["designatedElections"] == "ElectLeaders v3 (native)"
    else:
        needs = "; the native call needs CLUSTER_ACTION"
        assert seen["replicaLogs"] == f"ListOffsets+Fetch (emulated){needs}"
        assert seen["designatedElections"] == f"reorder, elect, revert (emulated){needs}"
