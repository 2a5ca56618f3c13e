"""``ktriage readiness``: a weakness that is put into a good cluster is named, and no other is made up."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from console.jobs.status.readiness_report import ScoredRun, saved_runs
from console.last_healthy import remember
from tests.unit.cli.command_process import Caller

Scenario = dict[str, Any]
NOT_SIMULATED = {"metadata log", "clocks"}
"""What a simulation does not tell: how long its controllers keep the log, and a time that could be compared."""


def good() -> Scenario:
    """Three racks, three voters, three replicas of which two must have a record, and the ELR."""
    return {
        "title": "A good cluster",
        "about": "Nothing is wrong with it.",
        "cluster": {
            "brokers": [{"id": n, "rack": f"rack-{n}", "log_dirs": 2} for n in (1, 2, 3, 4)],
            "controllers": [100, 101, 102],
            "min_isr": 2,
            "switches": {"elr": True},
        },
        "topics": [
            {
                "name": "payments",
                "partitions": 2,
                "replicas": [[1, 2, 3], [2, 3, 4]],
                "records": 50,
                "min_isr": 2,
            }
        ],
        "operator": {"at": 20},
        "expect": {"offline": 0},
    }


def with_topic(**values: Any) -> Callable[[Scenario], None]:
    topic = {"name": "weak", "partitions": 1, "replicas": [[1, 2, 3]], "records": 10, "min_isr": 2, **values}
    return lambda scenario: scenario["topics"].append(topic)


def with_fault(*faults: Scenario) -> Callable[[Scenario], None]:
    return lambda scenario: scenario.update(faults=list(faults))


def with_operator(**values: Any) -> Callable[[Scenario], None]:
    return lambda scenario: scenario["operator"].update(values)


def with_cluster(**values: Any) -> Callable[[Scenario], None]:
    return lambda scenario: scenario["cluster"].update(values)


def with_racks(*numbers: int, rack: str | None) -> Callable[[Scenario], None]:
    def change(scenario: Scenario) -> None:
        for number in numbers:
            broker = scenario["cluster"]["brokers"][number - 1]
            del broker["rack"]
            if rack is not None:
                broker["rack"] = rack

    return change


INJECTED: dict[str, tuple[Callable[[Scenario], None], dict[str, str], str]] = {
    "one replica": (
        with_topic(replicas=[[1]], min_isr=1),
        {"replicas": "grave"},
        "1 topic (weak) with one replica",
    ),
    "min ISR 1": (with_topic(min_isr=1), {"min ISR": "serious"}, "with min.insync.replicas 1"),
    "min ISR of all": (with_topic(min_isr=3), {"min ISR": "serious"}, "equal to the number of replicas"),
    "unclean elections": (
        with_topic(configs={"unclean.leader.election.enable": "true"}),
        {"unclean elections": "grave"},
        "1 topic (weak) with unclean.leader.election.enable",
    ),
    "no ELR": (with_cluster(switches={"elr": False}), {"eligible leaders": "serious"}, "KAFKA-14139"),
    "no rack": (with_racks(2, rack=None), {"racks": "light"}, "broker 2 without broker.rack"),
    "one rack": (
        with_racks(2, 3, rack="rack-1"),
        {"racks": "serious"},
        "1 partition with all replicas in rack rack-1 (payments-0)",
    ),
    "two voters": (with_cluster(controllers=[100, 101]), {"quorum": "grave"}, "2 voters"),
    "four voters": (with_cluster(controllers=[100, 101, 102, 103]), {"quorum": "light"}, "even number"),
    "static voters": (with_cluster(kraft_version=0), {"quorum": "serious"}, "static"),
    "a voter that is down": (
        with_fault({"at": 5, "do": "kill-controller", "node": "controller-102"}),
        {"quorum": "grave"},
        "controller 102 does not fetch",
    ),
    "a broker that is not reached": (
        with_operator(cannot_reach=["broker-4"]),
        {"brokers reached": "grave"},
        "broker 4 was not reached from here",
    ),
    "a controller that is not reached": (
        with_operator(cannot_reach=["controller-102"]),
        {"controllers reached": "serious"},
        "voter 102 fetches, but at its registered endpoint",
    ),
    "a missing permission": (
        with_operator(denied=["READ topic payments"]),
        {"permissions": "serious"},
        "missing: READ on 1 of 1 topic (payments)",
    ),
    "a failed disk": (
        lambda scenario: scenario["cluster"]["brokers"][3].update(failed_log_dirs=[1]),
        {"disks": "grave"},
        "has failed",
    ),
    "a broker that is down": (
        with_fault({"at": 5, "do": "power-off", "nodes": ["broker-4"]}),
        {"brokers reached": "grave", "partitions now": "serious", "copies of it": "serious"},
        "broker 4 is fenced and was not reached",
    ),
}


@pytest.fixture
def looked_at(call: Caller, tmp_path: Path) -> Callable[[Scenario], tuple[int, dict[str, Any]]]:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o700)

    def look(scenario: Scenario) -> tuple[int, dict[str, Any]]:
        file = tmp_path / "cluster.yaml"
        file.write_text(yaml.safe_dump(scenario))
        done = call(
            "ktriage", "readiness", "--output", "json", "--state-dir", str(shared), "--simulate", str(file)
        )
        assert done.out, done.err
        return done.status, json.loads(done.out)

    return look


def lost(document: dict[str, Any]) -> dict[str, str]:
    """The weight of the gravest weakness of each check that shows any."""
    weight = {"light": 1, "serious": 3, "grave": 10}
    gravest: dict[str, str] = {}
    for one in document["weaknesses"]:
        check = one["check"]
        gravest[check] = max(gravest.get(check, "light"), one["weight"], key=weight.__getitem__)
    return gravest


def test_a_good_cluster_has_no_weakness(looked_at: Callable[[Scenario], tuple[int, dict[str, Any]]]) -> None:
    status, document = looked_at(good())
    assert document["weaknesses"] == []
    assert document["score"] == 100
    unknown = {one["check"] for one in document["checks"] if one["notLookedAt"]}
    assert unknown == NOT_SIMULATED
    assert status == 1  # what was not looked at could be serious


@pytest.mark.parametrize("name", INJECTED)
def test_each_weakness_is_named_and_no_other(
    looked_at: Callable[[Scenario], tuple[int, dict[str, Any]]], name: str
) -> None:
    change, expected, words = INJECTED[name]
    scenario = copy.deepcopy(good())
    change(scenario)
    status, document = looked_at(scenario)
    assert lost(document) == expected
    assert words in " ".join(one["evidence"] for one in document["weaknesses"])
    assert document["score"] < 100
    assert status == 1


def test_the_run_before_is_compared_and_the_exit_status_is_what_was_asked_for(
    call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KTRIAGE_WIDTH", "80")
    scenario = good()
    for name in ("unclean elections", "no rack"):
        INJECTED[name][0](scenario)
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump(scenario))
    words = ("ktriage", "readiness", "--simulate", str(file))
    first = call(*words).out.splitlines()
    cluster_id = first[0].removeprefix("cluster ")
    assert first[1].startswith("NOT READY: 3 weaknesses (1 grave and 2 light); ")
    assert max(map(len, first)) <= 80
    assert not [line for line in first if ".sh" in line]  # Kafka's tools cannot reach a simulation

    remember(cluster_id, "readiness", saved_runs([ScoredRun(1_700_000_000_000, 71, {"disks": 10})]))
    done = call(*words, "--fail-on", "grave")
    assert done.status == 1
    head = " ".join(done.out.split())
    assert "it was 71 at 2023-11-14 22:13:20" in head
    assert "better: disks; worse: journal, racks, unclean elections" in head


@pytest.mark.parametrize(("fail_on", "status"), [("light", 1), ("serious", 1), ("grave", 0)])
def test_the_exit_status_is_for_weaknesses_of_the_weight_that_was_asked_for(
    call: Caller, tmp_path: Path, fail_on: str, status: int
) -> None:
    """The two checks that no simulation can make could show serious weaknesses, and no grave ones."""
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump(good()))
    assert call("ktriage", "readiness", "--simulate", str(file), "--fail-on", fail_on).status == status


def test_the_page_and_the_markdown_hold_what_the_terminal_shows(call: Caller, tmp_path: Path) -> None:
    scenario = good()
    INJECTED["one replica"][0](scenario)
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump(scenario))
    words = ("ktriage", "readiness", "--simulate", str(file), "--output")
    call(*words, "text")
    markdown, page = call(*words, "markdown").out, call(*words, "html").out
    for text in (markdown, page):
        assert "1 topic (weak) with one replica: one disk is all there is" in text
        assert "score of 100" in text  # two runs: the bars of the scores
        assert "a simulation has a time of its own" in text
    assert page.startswith("<!DOCTYPE html>")
    assert "src=" not in page


@pytest.mark.parametrize("incident", ["disk-failure", "one-sided-cuts", "stale-long-tail", "zone-power-loss"])
def test_during_an_incident_nothing_is_advised_that_status_advises_against(
    call: Caller, incident: str
) -> None:
    """A change of min.insync.replicas empties the ELR; a failed disk may be all that is left; a dead broker that is
    started first may cut off what others hold.
    """
    done = call("ktriage", "readiness", "--output", "json", "--simulate", incident)
    weaknesses = json.loads(done.out)["weaknesses"]
    assert weaknesses
    for one in weaknesses:
        command = one["command"] or "ktriage "
        assert command.startswith("ktriage "), one
        here = "not reached from here" in one["evidence"].replace("was ", "")
        assert one["command"] or here or one["mend"].startswith("not now, but when the incident is over"), one
    assert "start the broker" not in done.out
    assert "replace the disk" not in done.out


def test_every_broker_that_status_names_is_named(call: Caller) -> None:
    """Broker 2 answers and is fenced; it and broker 1 do not have the newest metadata."""
    done = call("ktriage", "readiness", "--output", "json", "--simulate", "one-sided-cuts")
    document = json.loads(done.out)
    evidence = [one["evidence"] for one in document["weaknesses"]]
    assert "broker 2 is fenced and answers: the controllers do not hear it" in evidence
    assert lost(document)["copies of it"] == "serious"


def test_a_quorum_without_a_leader_is_the_gravest(call: Caller) -> None:
    done = call("ktriage", "readiness", "--simulate", "two-of-three-voters-lost")
    assert done.out.splitlines()[1].startswith("NOT READY")
    assert "GRAVE  quorum: no controller leads" in done.out
    clear = done.out.split("no weakness seen")[1]
    assert "quorum" not in clear
    assert "partitions now" not in clear
