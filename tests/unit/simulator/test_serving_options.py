"""What is wanted of a served simulation is checked before anything begins: one line, and nothing is served."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.simulator.scenario.files import read
from backends.simulator.served.api_versions import NoSuchCall, hidden
from backends.simulator.served.principals import principals
from backends.simulator.served.served_cluster import ServedCluster, ServedClusterOptions, cluster_id_of
from tests.unit.cli.command_process import Caller

pytestmark = pytest.mark.timeout(60)  # what is not refused serves until it is stopped


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Caller:
    return Caller(monkeypatch, tmp_path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("serve", "stale-long-tail", "--speed", "nan"), "--speed"),
        (("serve", "stale-long-tail", "--without", "ElectLeaders:99"), "up to version 3"),
        (("serve", "stale-long-tail", "--without", "ApiVersions"), "cannot be hidden"),
        (("serve", "stale-long-tail", "--cluster-id", "mine"), "22 letters"),
        (("step", "-5"), "-5: negative numbers are not allowed"),
    ],
)
def test_what_cannot_be_served_is_one_line(call: Caller, words: tuple[str, ...], said: str) -> None:
    ended = call("ktriage", "simulate", *words)
    assert (ended.status, ended.out) == (2, "")
    assert said in ended.err and len(ended.err.splitlines()) == 1


def test_a_user_who_is_denied_nonsense_is_refused(call: Caller) -> None:
    (call.home / "users.yaml").write_text('bob: {password: b, denied: ["TYPO cluster"]}\n')
    ended = call("ktriage", "simulate", "serve", "stale-long-tail", "--users", "users.yaml")
    assert ended.status == 2 and "TYPO cluster" in ended.err and len(ended.err.splitlines()) == 1


@pytest.mark.parametrize(
    "permission",
    ["TYPO cluster", "READ payments", "READ cluster", "READ topic ", "READ", "read topic x", 5, ""],
)
def test_only_what_can_be_asked_for_can_be_denied(permission: object) -> None:
    with pytest.raises(ValueError, match="user bob: denied"):
        principals({"bob": {"password": "b", "denied": [permission]}})


def test_every_way_to_write_a_permission_is_taken() -> None:
    denied = ["ALTER cluster", "CLUSTER_ACTION cluster", "READ topic payments", "DESCRIBE topic *"]
    assert principals({"bob": {"password": "b", "denied": denied}})["bob"].denied == frozenset(denied)


def test_a_call_may_be_hidden_from_each_version_that_is_served() -> None:
    assert len(hidden("ElectLeaders:3,GetReplicaLogInfo:0,Produce,ApiVersions:4,UpdateRaftVoter")) == 5
    with pytest.raises(NoSuchCall, match="up to version 0"):
        hidden("GetReplicaLogInfo:1")


def test_a_cluster_that_is_served_has_the_id_that_it_is_given() -> None:
    scenario = read("stale-long-tail")
    one, other = cluster_id_of(bytes(16)), cluster_id_of(b"\xfb" * 16)
    assert ServedCluster(scenario, ServedClusterOptions(cluster_id=one)).cluster_id == one != other
    assert not other.startswith("-") and len(other) == 22
