"""A rebuild replaced the voters that lead at the addresses which are asked: nothing calls this quorum well, and
nobody is told to start its controllers.
"""

from __future__ import annotations

import json

import pytest

from console.last_healthy import remember
from console.reading.remembered_voters import MEMORY, REBUILD
from recovery.membership.possible_only_voter import BrokersFollowing
from tests.unit.cli.command_process import Caller

OLD = ("--simulate", "controller-node-failure")
"""102 is down, and 100 or 101 leads."""
SINCE = "2026-01-01T00:00:00+00:00"
REPLACED = "a rebuild replaced them"


@pytest.fixture
def seen(call: Caller) -> Caller:
    """This user has seen the rebuilt quorum, which 110 leads."""
    cluster = json.loads(call("ktriage", "status", "--output", "json", *OLD).out)["cluster"]["clusterId"]
    voter = {"id": 110, "directoryId": "d", "endpoints": [["CONTROLLER", "host110", 9093]], "logEndOffset": 9}
    replaced: list[object] = [
        {"id": node, "directoryId": f"d{node}", "endpoints": []} for node in (100, 101, 102)
    ]
    quorum: dict[str, object] = {
        "at": SINCE,
        "leaderEpoch": 5_000,
        "replaced": replaced,
        "voters": [voter],
        "others": [],
    }
    remember(cluster, MEMORY, quorum)
    return call


@pytest.mark.parametrize("command", ["status", "handover"])
def test_it_begins_with_the_old_voters_and_who_is_to_be_stopped(seen: Caller, command: str) -> None:
    ended = seen("ktriage", command, *OLD)
    assert "quorum LED BY OLD VOTERS" in ended.out.partition("Do first")[0], ended
    assert f"Do first: Stop controllers 100, 101 and 102: {REPLACED}." in ended.out, ended
    assert "Start controller 102" not in ended.out, ended
    assert "ktriage quorum status --simulate" in (ended.err if command == "status" else ended.out), ended


def test_a_broker_that_follows_the_rebuilt_quorum_is_not_called_cut_off(
    seen: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other brokers are not better to ask: all that is to be done is to stop the old voters."""
    monkeypatch.setattr("console.reading.cluster_reading.cut_off", lambda *_: 1)
    told = seen("ktriage", "status", *OLD).out
    assert "LED BY OLD VOTERS" in told and "cut off" not in told and "old metadata" not in told, told


def test_the_hand_over_has_the_command_that_shows_whether_the_quorum_was_rebuilt(
    call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """102 is down, and no broker follows who leads."""
    monkeypatch.setattr(BrokersFollowing, "following", frozenset())
    told = call("ktriage", "handover", *OLD).out
    commands = told.partition("NEXT COMMANDS")[2].partition("LAST DONE")[0]
    assert "see whether the quorum was rebuilt" in " ".join(told.split())
    assert "ktriage quorum evidence LOG_DIR" in commands and "quorum replace" not in commands, told


def test_no_controller_is_replaced_in_a_quorum_that_was_rebuilt_away(seen: Caller) -> None:
    ended = seen("ktriage", "quorum", "replace", "102", "--why", "disk", "--dry-run", *OLD)
    assert ended.status == 1 and not ended.out, ended
    assert "IS OLDER than epoch 5,000" in ended.err and "format" not in ended.err, ended
    assert ended.err.rstrip().endswith("nothing was sent"), ended


def test_status_says_where_the_rebuilt_quorum_was(seen: Caller) -> None:
    ended = seen("ktriage", "status", *OLD)
    assert ended.status == 1
    assert f"IS OLDER than epoch 5,000, in which this cluster's quorum was led at {SINCE}" in ended.out, ended
    assert "--bootstrap-controller host110:9093" in ended.out, ended
    told = json.loads(seen("ktriage", "status", "--output", "json", *OLD).out)
    assert told["health"]["quorum"] == "led by old voters", told["health"]


@pytest.mark.parametrize(("job", "status"), [("elect", 1), ("quorum", 1), ("read", 0)])
def test_nothing_that_needs_a_controller_can_be_done_there(seen: Caller, job: str, status: int) -> None:
    ended = seen("ktriage", "check", "--for", job, *OLD)
    assert ended.status == status, ended
    assert ("no election and no change of the metadata can succeed now" in ended.err) == bool(status), ended


def test_the_hand_over_tells_of_a_rebuild_that_was_carried_out_on_this_host(seen: Caller) -> None:
    cluster = json.loads(seen("ktriage", "status", "--output", "json", *OLD).out)["cluster"]["clusterId"]
    assert "Nothing was sent from this host." in seen("ktriage", "handover", *OLD).out
    record = {
        "planId": "p",
        "at": SINCE,
        "by": "ada",
        "reason": "two disks gone",
        "node": 110,
        "file": "/r.json",
    }
    remember(cluster, REBUILD, {**record, "before": None})
    done = seen("ktriage", "handover", *OLD).out.partition("LAST DONE")[2]
    told = "2026-01-01 00:00:00.000 ada: ktriage quorum rebuild /r.json, which made controller 110 the only voter"
    assert f"{told}; reason: two disks gone" in " ".join(done.split()), done
    assert "Nothing was sent" not in done, done
    remember(cluster, REBUILD, {**record, "reason": "", "before": None})
    assert "; reason" not in seen("ktriage", "handover", *OLD).out.partition("LAST DONE")[2]


def test_a_plan_is_not_made_of_their_states(seen: Caller) -> None:
    ended = seen("ktriage", "plan", "--all-offline-partitions", "plan.json", *OLD)
    assert ended.status == 1 and "led by voters that a rebuild replaced" in ended.err, ended


def test_the_timeline_says_whose_log_it_is(seen: Caller) -> None:
    """They fence brokers that follow the rebuilt quorum."""
    ended = seen("ktriage", "timeline", *OLD)
    assert "THIS LOG IS OF OLD VOTERS" in ended.err and "epoch 5,000" in ended.err, ended


def test_a_plan_that_waits_for_a_replaced_voters_node_says_how_it_comes_back(call: Caller) -> None:
    """It is a broker too: started as it is, its controller may elect with other old voters."""
    cuts = ("--simulate", "one-sided-cuts")
    cluster = json.loads(call("ktriage", "status", "--output", "json", *cuts).out)["cluster"]["clusterId"]
    wanted = ("plan", "--all-offline-partitions", "plan.json", *cuts)
    assert "Before broker 1 starts" not in call("ktriage", *wanted).err
    gone = {"id": 1, "directoryId": "d1", "endpoints": []}
    known: dict[str, object] = {"at": SINCE, "leaderEpoch": 1, "replaced": [gone], "voters": [], "others": []}
    remember(cluster, MEMORY, known)
    ended = call("ktriage", *wanted)
    assert "Before broker 1 starts: move __cluster_metadata-0 out of its log dirs" in ended.err, ended
    assert "Keep all else there." in ended.err, ended
