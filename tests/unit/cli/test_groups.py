"""``ktriage groups`` on a simulated stale long tail that groups have read: shown, fixed, undone, exported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_server import ROOT
from tests.unit.cli.command_process import Caller

AGREED = ("--yes", "--reason", "a test")
HERE = ("--simulate", "groups-on-the-stale-tail")


@pytest.fixture
def planned(call: Caller) -> Caller:
    ended = call("ktriage", "plan", "--strategy", "aggressive", "plan.json", *HERE)
    assert ended.status == 0 and "2 consumer groups affected (audit, billing)" in ended.out, ended
    return call


@pytest.fixture
def elected(planned: Caller) -> Caller:
    ended = planned("ktriage", "apply", "plan.json", *AGREED, *HERE)
    assert ended.status == 0, ended
    return planned


def shown(call: Caller, *words: str) -> dict[str, dict[str, Any]]:
    ended = call("ktriage", "groups", "show", *words, "--output", "json", *HERE)
    document = json.loads(ended.out)
    assert document["complete"], ended
    return {row["group"]: row for row in document["offsets"]}


def test_before_the_election_it_is_said_who_has_read_what_goes(planned: Caller) -> None:
    rows = shown(planned, "plan.json")
    places = {group: (row["place"], row["goBackTo"], row["elected"]) for group, row in rows.items()}
    assert places == {
        "audit": ("cut-off", 1000, False),
        "billing": ("cut-off", 1000, False),
        "reports": ("common", None, False),
        "shipping": ("kept", None, False),
    }
    ended = planned("ktriage", "groups", "fix", "plan.json", *AGREED, *HERE)
    assert ended.status == 1 and "no leader yet: elect one first" in ended.out
    assert "nothing was sent" in ended.out
    before = planned("ktriage", "groups", "show", "plan.json", *HERE)
    assert "next: ktriage review plan.json" in before.err and "fix" not in before.err, before
    reviewed = planned("ktriage", "review", "plan.json", "--output", "markdown")
    assert "2 groups (audit, billing) need another offset after the election" in reviewed.out


def test_fixed_after_the_election_and_undone(elected: Caller) -> None:
    verified = elected("ktriage", "verify", "plan.json", *HERE)
    assert "2 affected (last record read: 2 on the branch that is cut off)" in verified.out
    assert "groups fix plan.json" in verified.err
    dry = elected("ktriage", "groups", "fix", "plan.json", "--dry-run", *HERE)
    assert (
        dry.status == 0
        and "2 offsets of 2 groups to be committed" in dry.out
        and "nothing was sent" in dry.out
    )
    ended = elected("ktriage", "groups", "fix", "plan.json", *AGREED, *HERE)
    assert ended.status == 0 and "2 offsets committed and read back" in ended.out, ended
    assert "groups fix --undo" in ended.err
    rows = shown(elected, "plan.json")
    assert {group: row["offset"] for group, row in rows.items()} == {
        "audit": 1000,
        "billing": 1000,
        "reports": 900,
        "shipping": 1200,
    }
    assert rows["billing"]["epoch"] == 0, "that of the record before it, so that a client can check it"
    again = elected("ktriage", "groups", "fix", "plan.json", *AGREED, *HERE)
    assert again.status == 0 and "nothing was sent" in again.out
    undone = elected("ktriage", "groups", "fix", "--undo", "--group", "audit", *AGREED, *HERE)
    assert undone.status == 0 and "1 offset committed" in undone.out, undone
    rows = shown(elected, "plan.json")
    assert (rows["audit"]["offset"], rows["audit"]["epoch"], rows["billing"]["offset"]) == (1450, None, 1000)


def test_exported_for_kafkas_tool_and_never_written_over(elected: Caller, tmp_path: Path) -> None:
    words = ("groups", "fix", "plan.json", "--export", str(tmp_path / "offsets.csv"))
    assert elected("ktriage", *words, *HERE).status == 0
    lines = (tmp_path / "offsets.csv").read_text().splitlines()
    assert lines == ["audit,payments,0,1000", "billing,payments,0,1000"]
    again = elected("ktriage", *words, *HERE)
    assert again.status == 2 and "never overwritten" in again.err
    recorded = elected("ktriage", "journal", *HERE).out
    assert recorded.count("ended with status 2") == 1, recorded


def test_an_export_of_nothing_leaves_no_file_behind(elected: Caller, tmp_path: Path) -> None:
    """An empty one would stand in the way of the next export."""
    words = ("groups", "fix", "plan.json", "--group", "reports", "--export", str(tmp_path / "none.csv"))
    ended = elected("ktriage", *words, *HERE)
    assert "none.csv was not written: no offset is to be changed" in ended.err, ended
    assert not (tmp_path / "none.csv").exists()


def test_a_line_for_kafkas_tool_names_a_cluster(elected: Caller) -> None:
    ended = elected("ktriage", "groups", "fix", "plan.json", "--export", "offsets.csv", *HERE)
    assert "kafka-consumer-groups --bootstrap-server HOST:PORT --group audit --group billing" in ended.err


def test_a_fix_that_is_undone_already_is_said_to_be(elected: Caller) -> None:
    assert elected("ktriage", "groups", "fix", "plan.json", *AGREED, *HERE).status == 0
    assert elected("ktriage", "groups", "fix", "--undo", *AGREED, *HERE).status == 0
    recorded = elected("ktriage", "journal", *HERE).out
    assert "    billing, payments-0: offset 1450 -> 1000 (set)" in recorded, recorded
    assert "    billing, payments-0: offset 1000 -> 1450 (put back by --undo)" in recorded, recorded
    reported = elected("ktriage", "report", *HERE).out
    assert "| billing | payments-0 | 1000 | 1450 | put back by --undo | 2" in reported, reported
    again = elected("ktriage", "groups", "fix", "--undo", *AGREED, *HERE)
    assert "2 offsets already undone: as before the fix" in again.out, again
    other = elected("ktriage", "groups", "fix", "--undo", "--group", "nobody", *AGREED, *HERE)
    assert other.status == 2 and "no group nobody in the fixes of" in other.err, other


def test_a_group_that_was_fixed_by_an_earlier_run_is_undone_by_name(elected: Caller) -> None:
    """Groups with members are fixed after the others, so one incident has several fixes."""
    for group in ("billing", "audit"):
        fixed = elected("ktriage", "groups", "fix", "plan.json", "--group", group, *AGREED, *HERE)
        assert fixed.status == 0, fixed
    undone = elected("ktriage", "groups", "fix", "--undo", "--group", "billing", *AGREED, *HERE)
    assert undone.status == 0 and "1 offset committed" in undone.out, undone
    rows = shown(elected, "plan.json")
    assert (rows["billing"]["offset"], rows["audit"]["offset"]) == (1450, 1000)
    both = ("--group", "billing", "--group", "audit")
    rest = elected("ktriage", "groups", "fix", "--undo", *both, *AGREED, *HERE)
    assert "1 offset already undone" in rest.out and "1 offset committed" in rest.out, rest
    assert shown(elected, "plan.json")["audit"]["offset"] == 1450


def test_the_next_command_has_the_choice_that_was_shown(elected: Caller) -> None:
    chosen = ("--group", "billing", "--topic", "payments", "--uncertain")
    shown_only = elected("ktriage", "groups", "fix", "plan.json", *chosen, "--dry-run", *HERE)
    assert f"next: ktriage groups fix plan.json {' '.join(chosen)} --simulate" in shown_only.err, shown_only


def test_before_an_election_a_plan_is_asked_for(planned: Caller) -> None:
    ended = planned("ktriage", "groups", *HERE)
    asked = "the partition has no leader: a plan file says which log stays: ktriage groups show PLAN"
    assert asked in " ".join(ended.out.split()) and "not offered" not in ended.out, ended


def test_without_a_plan_the_epochs_alone_tell(elected: Caller) -> None:
    rows = shown(elected)
    assert (rows["billing"]["place"], rows["billing"]["goBackTo"]) == ("cut-off", 1000)
    assert rows["audit"]["place"] == "beyond-end" and rows["audit"]["goBackTo"] is None


def test_a_question_declined_sends_nothing(elected: Caller) -> None:
    ended = elected("ktriage", "groups", "fix", "plan.json", *HERE)
    assert ended.status == 2 and "there is no terminal to ask on" in ended.err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "give either a plan file or --undo"),
        (("plan.json", "--undo"), "give either a plan file or --undo"),
        (("--undo", "--uncertain"), "--undo does not go with"),
        (("missing.json", "--dry-run"), "missing.json"),
        (("--undo", *AGREED), "has no fix of consumer groups"),
        (("plan.json", "--yes"), "--yes needs --reason"),
        (("plan.json", "--group", "nobody", "--dry-run"), "no consumer group nobody on this cluster"),
        (("plan.json", "--topic", "nope", "--dry-run"), "no topic nope in the plan"),
    ],
)
def test_bad_input_is_one_line_and_sends_nothing(planned: Caller, words: tuple[str, ...], why: str) -> None:
    ended = planned("ktriage", "groups", "fix", *words, *HERE)
    assert ended.status == 2 and why in ended.err and ended.err.count("\n") == 1, ended


def test_a_streams_application_shows_by_topics_outside_of_the_plan(call: Caller, tmp_path: Path) -> None:
    """It never commits an offset on its changelogs."""
    packaged = ROOT / "backends" / "simulator" / "scenarios" / "groups-on-the-stale-tail.yaml"
    changelog = "topics:\n  - {name: billing-totals-changelog, replicas: [[2, 3]]}\n"
    scenario = tmp_path / "streams.yaml"
    scenario.write_text(packaged.read_text().replace("topics:\n", changelog, 1))
    here = ("--simulate", str(scenario))
    planned = call("ktriage", "plan", "--topic", "payments", "--strategy", "aggressive", "plan.json", *here)
    assert planned.status == 0, planned
    ended = call("ktriage", "groups", "show", "plan.json", *here)
    assert "billing (Kafka Streams?)" in ended.out and "audit (Kafka" not in ended.out, ended
