"""``ktriage gameday``: the worst failure of a cluster is played on its copy, and what a team did stands beside what
could have been done.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from backends.simulator.scenario.file_model import ScenarioModel
from console.jobs.gameday.gameday_incident import IncidentKind, failures_of
from console.jobs.gameday.gameday_score import GameDayResult, Play
from tests.unit.cli.command_process import Caller

AGREED = ("--yes", "--reason", "a test")


def cluster(home: Path, **changed: Any) -> str:
    """Two racks; ``clicks`` has both replicas in one, and takes records that only one of them has."""
    scenario = {
        "title": "A cluster",
        "about": "Nothing is wrong with it.",
        "cluster": {
            "brokers": [{"id": n, "rack": "a" if n < 3 else "b"} for n in (1, 2, 3, 4)],
            "switches": {"elr": False},
            **changed,
        },
        "topics": [
            {
                "name": "payments",
                "partitions": 2,
                "replicas": [[1, 2, 3], [2, 1, 4]],
                "records": 100,
                "min_isr": 2,
            },
            {"name": "clicks", "partitions": 2, "replicas": [[3, 4]], "records": 50, "min_isr": 1},
        ],
        "operator": {"at": 20},
        "expect": {"offline": 0},
    }
    file = home / "cluster.yaml"
    file.write_text(yaml.safe_dump(scenario))
    return str(file)


@pytest.fixture
def prepared(call: Caller, tmp_path: Path) -> str:
    """The game day of that cluster, as a scenario file."""
    day = str(tmp_path / "friday.yaml")
    made = call("ktriage", "gameday", "prepare", day, "--tell", "--simulate", cluster(tmp_path))
    assert made.status == 0, made.err
    assert "without a leader (the worst of 7 failures)" in made.out
    assert f"afterwards: ktriage gameday score {day}" in made.err
    return day


def scored(call: Caller, day: str) -> tuple[int, dict[str, Any]]:
    done = call("ktriage", "gameday", "score", day, "--output", "json")
    assert done.out, done.err
    return done.status, json.loads(done.out)


def test_the_failure_is_not_told_to_who_plays(call: Caller, tmp_path: Path) -> None:
    day = tmp_path / "friday.yaml"
    made = call("ktriage", "gameday", "prepare", str(day), "--simulate", cluster(tmp_path))
    assert made.status == 0
    assert "fails; --tell says what" in made.out
    assert "disk" not in made.out and "rack" not in made.out
    other = call(
        "ktriage",
        "gameday",
        "prepare",
        str(tmp_path / "other.yaml"),
        "--output",
        "json",
        "--simulate",
        cluster(tmp_path),
    )
    assert json.loads(other.out)["failure"] is None
    again = call("ktriage", "gameday", "prepare", str(day), "--simulate", cluster(tmp_path))
    assert again.status == 2, "an existing file is not overwritten"


def test_a_game_day_is_played_as_any_simulation_and_scored(
    call: Caller, prepared: str, tmp_path: Path
) -> None:
    unplayed = call("ktriage", "gameday", "score", prepared)
    assert unplayed.status == 2 and "was not played yet: ktriage --simulate" in unplayed.err

    status = call("ktriage", "status", "--simulate", prepared)
    offline = yaml.safe_load(Path(prepared).read_text())["expect"]["offline"]
    assert offline > 0 and f"{offline} offline" in status.out
    code, idle = scored(call, prepared)
    assert code == 1 and idle["team"]["led"] == 0 and idle["team"]["offline"] == offline
    assert f"{offline} partitions still without a leader" in idle["mistakes"]

    words = ("--simulate", prepared)
    plan = str(tmp_path / "plan.json")
    assert call("ktriage", "plan", "--strategy", "aggressive", plan, *words).status == 0
    call("ktriage", "apply", plan, *AGREED, *words)
    code, done = scored(call, prepared)
    aggressive = next(one for one in done["others"] if "aggressive" in one["by"])
    assert done["team"]["led"] == aggressive["led"] == offline
    assert done["team"]["gone"] == aggressive["gone"] > 0
    assert (code, done["mistakes"]) == (0, [])
    page = call("ktriage", "gameday", "score", prepared, "--output", "html").out
    assert "What was done, and what could have been" in page and "src=" not in page


def test_every_rack_disk_and_controller_is_a_failure_that_could_be(tmp_path: Path) -> None:
    data = yaml.safe_load(Path(cluster(tmp_path)).read_text())
    kinds = [one.kind for one in failures_of(ScenarioModel.model_validate(data))]
    assert [kinds.count(kind) for kind in IncidentKind] == [2, 4, 1]
    alone = {**data, "cluster": {"brokers": [{"id": 1}]}}
    assert list(failures_of(ScenarioModel.model_validate(alone))) == []


@pytest.mark.parametrize(
    ("other", "better"),
    [
        (Play("other", 4, 4, 10.0, 50), True),  # the same led, fewer gone
        (Play("other", 4, 4, 10.0, 100), True),  # the same, ten minutes sooner
        (Play("other", 4, 4, 590.0, 100), False),  # hardly sooner
        (Play("other", 4, 2, 10.0, 0), False),  # keeps more, and leaves two without a leader
        (Play("other", 4, 4, 10.0, 300), False),  # sooner, and loses more
    ],
)
def test_another_way_is_better_only_where_it_is_worse_in_nothing(other: Play, better: bool) -> None:
    team = Play("the team", 4, 4, 610.0, 150, 50)
    result = GameDayResult("friday", team, (other,), 700.0)
    assert bool(result.better) is better


def test_what_was_cut_off_and_not_written_back_is_named() -> None:
    team = Play("the team", 1, 1, 5.0, 300, 100)
    (text,) = GameDayResult("friday", team, (), 100.0).mistakes()
    assert text == "200 records cut off and not written back"
    assert team.gone == 200
