"""``ktriage simulate``, and other commands on a simulated cluster, as a shell runs them."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from backends.simulator.scenario.files import BUILT_IN
from testbed.kafka.wait import wait_until
from tests.command_server import Ended
from tests.repetitions import repetitions
from tests.unit.cli.command_process import command_line, environment, invoke


def _ktriage(home: Path, *arguments: str) -> Ended:
    return invoke(home, "ktriage", *arguments)


def _json(ended: Ended) -> Any:
    return json.loads(ended.out)


def test_the_list_names_every_scenario_and_show_tells_what_happens(tmp_path: Path) -> None:
    listed = _ktriage(tmp_path, "simulate", "list")
    assert listed.status == 0
    assert "stale-long-tail" in listed.out
    shown = _json(_ktriage(tmp_path, "simulate", "show", "stale-long-tail", "--output", "json"))
    assert (shown["schema"], shown["offline"], shown["operatorAtMs"]) == (
        "ktriage.simulate-show/1",
        1,
        90_000,
    )
    assert shown["events"][-1]["what"] == "1 and 2 are back"


def test_a_run_tells_what_each_ranking_really_loses(tmp_path: Path) -> None:
    lost = {}
    for ranking in ("last-record", "specification"):
        ended = _ktriage(
            tmp_path, "simulate", "run", "stale-long-tail", "--strategy", "aggressive", "--ranking", ranking,
            "--output", "json",
        )  # fmt: skip
        assert ended.status == 0, ended.err
        lost[ranking] = sum(row["records"] for row in _json(ended)["lost"])
    assert lost == {"last-record": 0, "specification": 300}


def test_a_plan_is_made_applied_and_verified_on_a_rehearsed_incident(tmp_path: Path) -> None:
    cluster = ("--simulate", "last-replica-standing", "--seed", "4", "--state", str(tmp_path / "kept.json"))
    plan = str(tmp_path / "recovery.json")
    made = _ktriage(tmp_path, "plan", *cluster, "--all-offline-partitions", "--strategy", "aggressive", plan)
    assert made.status == 0, made.err
    applied = _ktriage(tmp_path, "apply", *cluster, plan, "--yes", "--reason", "rehearsal")
    assert "1 elected" in applied.out, applied.err
    looked = _ktriage(tmp_path, "check", *cluster)
    assert "GetReplicaLogInfo (native), epochs by Fetch" in looked.out
    assert "designated elections: ElectLeaders v3 (native)" in looked.out
    verified = _ktriage(tmp_path, "verify", *cluster, plan)
    assert "1 led by the right leader" in verified.out
    again = _ktriage(tmp_path, "apply", *cluster, plan, "--yes", "--reason", "rehearsal")
    assert "1 already online" in again.out + again.err
    # Another seed is another cluster: the plan is not for it.
    other = ("--simulate", "last-replica-standing", "--seed", "5")
    assert _ktriage(tmp_path, "apply", *other, plan, "--yes", "--reason", "x").status != 0
    reset = _ktriage(
        tmp_path, "simulate", "reset", "last-replica-standing", "--seed", "4", "--state", cluster[-1]
    )
    assert reset.status == 0
    assert not Path(cluster[-1]).exists()


def test_after_a_reset_the_next_run_knows_nothing_of_the_one_before(tmp_path: Path) -> None:
    """Its journal would have disks to be read before their brokers start, of elections that never were."""
    cluster, plan = ("--simulate", "stale-long-tail"), str(tmp_path / "plan.json")
    fresh = _ktriage(tmp_path, "status", *cluster)
    made = _ktriage(tmp_path, "plan", *cluster, "--strategy", "aggressive", plan)
    assert made.status == 0, made.err
    applied = _ktriage(
        tmp_path, "apply", *cluster, plan, "--yes", "--reason", "rehearsal", "--elect-unrescued"
    )
    assert "1 elected" in applied.out, applied.err
    assert "the disk of broker" in _ktriage(tmp_path, "status", *cluster).out
    reset = _ktriage(tmp_path, "simulate", "reset", "stale-long-tail")
    kept = Path(reset.err.partition("what was recorded of that run: ")[2].strip())
    assert list(kept.glob("*.jsonl")), reset.err
    assert _ktriage(tmp_path, "status", *cluster).out == fresh.out


def test_a_rehearsed_plan_is_reviewed_without_its_cluster_for_what_will_be_sent(tmp_path: Path) -> None:
    plan, seed = str(tmp_path / "my plan.json"), ("--seed", "4")
    made = _ktriage(
        tmp_path, "plan", "--simulate", "last-replica-standing", *seed, "--strategy", "aggressive", plan
    )
    assert made.status == 0, made.err
    alone = _ktriage(tmp_path, "review", plan)
    (line,) = (line for line in alone.err.splitlines() if line.startswith("next: "))
    words = shlex.split(line.removeprefix("next: "))
    assert words == ["ktriage", "apply", plan, "--simulate", "last-replica-standing", *seed]
    asked = _ktriage(tmp_path, "review", plan, *words[3:])
    for told in (alone, asked):
        assert "elect the designated leaders" in told.out
        assert "AlterPartitionReassignments" not in told.out
    applied = _ktriage(tmp_path, *words[1:], "--yes", "--reason", "rehearsal")
    assert "1 elected" in applied.out, applied.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("simulate", "run"), "ktriage simulate run: Missing argument 'SCENARIO'"),
        (("simulate", "run", "nothing-like-it"), "no scenario"),
        (("replicas", "--simulate", "nothing-like-it", "--all-offline-partitions"), "no scenario"),
        (("replicas", "--bootstrap-server", "x:1", "--seed", "2", "--all-offline-partitions"), "--simulate"),
        (("simulate", "explode"), "explode"),
        (("simulate", "list", "foo"), "ktriage simulate list: Got unexpected extra argument(s) (foo)"),
        (
            ("simulate", "run", "stale-long-tail", "again"),
            "ktriage simulate run: Got unexpected extra argument(s) (again)",
        ),
        (
            ("simulate", "run", "stale-long-tail", "--state", "foo"),
            "ktriage simulate run: No such option: --state",
        ),
        (
            ("simulate", "show", "stale-long-tail", "--speed", "1.0"),
            "ktriage simulate show: No such option: --speed",
        ),
        (("simulate", "step", "5", "6"), "ktriage simulate step: Got unexpected extra argument(s) (6)"),
        (
            ("simulate", "serve", "stale-long-tail", "--seeds", "3"),
            "ktriage simulate serve: No such option: --seeds",
        ),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(
    tmp_path: Path, arguments: tuple[str, ...], expected: str
) -> None:
    ended = _ktriage(tmp_path, *arguments)
    assert ended.status == 2, ended.err
    assert expected in ended.err
    assert len(ended.err.strip().splitlines()) == 1


def test_a_run_goes_on_until_the_last_fault_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    shown = _ktriage(tmp_path, "simulate", "show", "last-replica-standing")
    assert "    660.0 s  a run ends" in shown.out
    whole = _ktriage(tmp_path, "simulate", "run", "last-replica-standing")
    assert "660.0 s of virtual time" in whole.out
    assert "T4: broker 2 is back" in whole.out
    assert "offline when the operator came: 1; at the end: 0\n" in whole.out
    short = _ktriage(tmp_path, "simulate", "run", "last-replica-standing", "--until", "120")
    assert "ended before 1 of 5 faults, the first at 600.0 s, T4: broker 2 is back" in short.err
    early = _ktriage(
        tmp_path, "simulate", "run", "last-replica-standing", "--until", "20", "--strategy", "aggressive"
    )
    assert "the operator, who comes at 60.0 s, had not come\noffline at the end: 0\n" in early.out
    assert "when the operator came" not in early.out


def test_a_scenario_that_expects_something_else_is_told_so(tmp_path: Path) -> None:
    text = (BUILT_IN / "last-replica-standing.yaml").read_text(encoding="utf-8")
    mine = tmp_path / "mine.yaml"
    mine.write_text(
        text.replace("expect: {offline: 1}", "expect: {offline: 5, led: false, breaks: [no-such]}")
    )
    ended = _ktriage(tmp_path, "simulate", "run", str(mine))
    assert ended.status == 1
    assert "not as the scenario expects: 5 partitions offline expected, 1 are" in ended.out
    assert "not as the scenario expects: no leader of the quorum expected" in ended.out
    assert "not as the scenario expects: no-such expected to break, and did not" in ended.out
    assert "offline should be 5" in _ktriage(tmp_path, "simulate", "show", str(mine)).out


def test_what_broke_is_replayed_by_the_command_that_is_printed(tmp_path: Path) -> None:
    text = (BUILT_IN / "late-alter-partition-unchecked.yaml").read_text(encoding="utf-8")
    mine = tmp_path / "my own.yaml"
    mine.write_text(text)
    asked = ("--seed", "2", "--strategy", "balanced", "--ranking", "specification", "--until", "90.5")
    first = _ktriage(tmp_path, "simulate", "run", str(mine), *asked)
    assert "broken: " in first.out
    (line,) = (line for line in first.err.splitlines() if line.startswith("replay: "))
    words = shlex.split(line.removeprefix("replay: "))
    assert words == ["ktriage", "simulate", "run", str(mine), *asked]
    assert _ktriage(tmp_path, *words[1:]) == first


def test_a_malformed_scenario_gets_one_line_with_file_and_line(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("title: mine\nabout: nothing\ncluster:\n  brokers: {count: none}\n")
    ended = _ktriage(tmp_path, "simulate", "show", str(mine))
    assert ended.status == 2
    assert ended.err.strip().splitlines() == [ended.err.strip()]
    assert f"{mine}:4" in ended.err


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT][: repetitions(1, 2)])
def test_a_run_that_takes_long_ends_with_the_first_signal(tmp_path: Path, signum: signal.Signals) -> None:
    line = command_line("ktriage", "simulate", "run", "last-replica-standing", "--until", "1000000")
    with subprocess.Popen(
        line,
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        wait_until(lambda: _working(process.pid), "the run", 30.0)
        process.send_signal(signum)
        _out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signum
    # Not by the alarm that rings for a process which is stuck.
    assert f"stopped by {signum.name}; nothing was in flight" in err


def _working(process: int) -> bool:
    """It has used two seconds of CPU, which is more than its start takes."""
    used = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11]
    return int(used) > 2 * os.sysconf("SC_CLK_TCK")


def test_check_tells_who_answers_and_what_the_scenario_denies(tmp_path: Path) -> None:
    text = (BUILT_IN / "one-sided-cuts.yaml").read_text(encoding="utf-8")
    mine = tmp_path / "mine.yaml"
    mine.write_text(text.replace("operator: {", 'operator: {denied: ["READ topic payments"], ', 1))
    ended = _ktriage(tmp_path, "check", "--simulate", str(mine), "--output", "json")
    assert ended.status == 1, ended.err
    told = _json(ended)
    assert {row["broker"] for row in told["brokers"] if row["problem"]} == {1, 3}
    (read,) = (
        row for row in told["permissions"] if (row["operation"], row["resource"]) == ("READ", "Topic:*")
    )
    assert (read["granted"], read["missing"]) == (False, ["payments"])
