"""Keys: each does one thing, and none belongs to tmux, screen or a browser."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest
from textual.widgets import Input

from backends.base.answers import RIGHTS_UNKNOWN, ClusterInfo
from console.app.main_screen.explanations import sections
from console.app.main_screen.key_actions import ActionContext, as_it_stands, why_not, without_action
from console.app.main_screen.pane_views import how_to_plan
from console.app.session.safety import SERVED, Safety
from console.app.session.view import Link
from console.change.registry import AFTER, ALL, BY_NAME, DIRS, KEYS, OFFLINE, PANES, PLAN, QUORUM
from recovery.cluster_health import QuorumState
from recovery.model import Unknown, Why
from tests.console.robot import console
from tests.unit.recovery.short_sentences import too_much
from widgets.dialogs.help_screen import help_lines
from widgets.text import plain

CLUSTER = ClusterInfo("c", (), 1, True, may_alter=True)
CLUSTER_OF_OTHERS = replace(CLUSTER, may_alter=False)


def standing(**changes: object) -> ActionContext:
    usual = ActionContext(
        PLAN, Safety().arm(0.0), Link.UP, CLUSTER, 1, 1, "", "ElectLeaders v3 (native)", True
    )
    return usual._replace(**changes)  # type: ignore[arg-type]  # fields by name


def test_no_key_means_two_things_in_one_pane() -> None:
    for pane in ALL:
        keys = Counter(action.key for action in KEYS if pane in action.panes)
        assert [key for key, count in keys.items() if count > 1] == []


def test_what_was_saved_is_written_back_from_the_pane_that_the_election_leads_to() -> None:
    for pane in (OFFLINE, PLAN, AFTER):
        now = standing(pane=pane, rescued=True)
        assert why_not(BY_NAME["restore"], now) == ""
        assert as_it_stands(BY_NAME["restore"], now).foot > 0
    assert as_it_stands(BY_NAME["restore"], standing(pane=OFFLINE)).foot == 0, "nothing was saved"
    assert why_not(BY_NAME["verify"], standing(pane=OFFLINE, elected=True)) == ""
    assert as_it_stands(BY_NAME["verify"], standing(pane=OFFLINE)).foot == 0, "nothing was elected"


def test_no_key_is_one_that_tmux_screen_or_a_browser_takes() -> None:
    for action in KEYS:
        assert "ctrl" not in action.key
        assert "alt" not in action.key
        assert not (action.key.startswith("f") and action.key[1:].isdecimal())


def test_every_pane_has_its_number() -> None:
    assert [BY_NAME[f"pane{number}"].key for number in PANES] == list(PANES)


@pytest.mark.parametrize("safety", [Safety(), Safety("because")])
def test_what_changes_the_cluster_is_looked_at_while_the_console_is_read_only(safety: Safety) -> None:
    assert why_not(BY_NAME["apply"], standing(safety=safety)) == ""


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"planned": 0}, "plan is empty"),
        ({"link": Link.LOST}, "lost"),
        ({"busy": "applying the plan"}, "wait"),
        ({"elections": Unknown(Why.NOT_OFFERED, "no ElectLeaders")}, "not offered"),
        ({"pane": OFFLINE}, "only in pane 6"),
        ({"cluster": CLUSTER_OF_OTHERS}, "ALTER on the cluster is missing"),
        ({"cluster": CLUSTER_OF_OTHERS, "safety": Safety()}, "ALTER on the cluster is missing"),
    ],
)
def test_a_key_that_does_nothing_says_why(change: dict[str, object], says: str) -> None:
    assert says in why_not(BY_NAME["apply"], standing(**change))


@pytest.mark.parametrize(
    ("key", "character", "says"),
    [
        ("h", "h", "h does nothing: H is hand-over; ? lists the keys"),
        ("n", "n", "n does nothing: N is heal, in pane 8; ? lists the keys"),
        ("z", "z", "z does nothing: ? lists the keys"),
        ("0", "0", "0 does nothing: 1 to 9 open the panes"),
        ("f5", None, "F5 does nothing: r reads the cluster again"),
        ("delete", "\x7f", "Delete does nothing: d takes a row out of the plan, in pane 6"),
    ],
)
def test_a_key_without_an_action_says_what_was_meant(key: str, character: str | None, says: str) -> None:
    assert without_action(key, character or "") == says


async def test_no_key_is_silent() -> None:
    async with console("broker-gone-for-good", size=(80, 24)) as robot:
        await robot.sees("Start broker 3")
        for key, says in (("z", "? lists the keys"), ("f5", "r reads the cluster"), ("n", "N is heal")):
            await robot.press(key)
            await robot.hears(says)
        await robot.press("8", "u")
        await robot.hears("no row is marked")
        await robot.press("slash", "z")
        await robot.until(lambda: robot.desk.query_one(Input).value == "z", "a letter of the filter")
        assert "does nothing" not in robot.said


def test_the_key_of_a_quorum_without_a_leader_is_called_by_what_it_shows() -> None:
    replace_key = BY_NAME["replace"]
    for state, label in ((QuorumState.NO_LEADER, "ways back"), (QuorumState.LED, "replace")):
        assert as_it_stands(replace_key, standing(pane=QUORUM, quorum=state)).label == label
    disks = standing(pane=DIRS, quorum=QuorumState.NO_LEADER)
    assert as_it_stands(replace_key, disks).label == "replace", "there it replaces a disk"


def test_among_voters_that_a_rebuild_replaced_nothing_is_replaced() -> None:
    old = standing(pane=QUORUM, quorum=QuorumState.OLD_VOTERS)
    assert "must not run" in why_not(BY_NAME["replace"], old)
    assert why_not(BY_NAME["replace"], standing(pane=QUORUM, quorum=QuorumState.LED)) == ""


def test_why_a_key_does_nothing_is_one_short_sentence() -> None:
    standings = [
        standing(pane=pane, **change)
        for pane in ALL
        for change in (
            {},
            {"safety": Safety("it has no log-in")},
            {"safety": Safety(forbidden=SERVED)},
            {"link": Link.LOST},
            {"cluster": None, "planned": 0, "rows": 0, "led": None, "safety": Safety()},
            {"led": False, "busy": "applying the plan"},
            {"cluster": CLUSTER_OF_OTHERS},
            {"elections": Unknown(Why.NOT_OFFERED, "no ElectLeaders")},
        )
    ]
    said = {why_not(action, now) for action in KEYS for now in standings} - {""}
    places = {why for why in said if why.startswith("only in pane")}
    assert len(said - places) > 8
    assert [trouble for why in said - places if (trouble := too_much(why, 120))] == []
    assert all(len(place) <= 120 for place in places), "they name panes in parentheses"


def test_records_can_be_written_back_without_a_permission_that_they_do_not_need() -> None:
    assert why_not(BY_NAME["restore"], standing(cluster=CLUSTER_OF_OTHERS)) == ""


@pytest.mark.parametrize("told", [RIGHTS_UNKNOWN, None])
def test_what_the_cluster_does_not_tell_of_alter_is_no_reason_against(told: Unknown | None) -> None:
    assert why_not(BY_NAME["apply"], standing(cluster=replace(CLUSTER, may_alter=told))) == ""


def test_a_console_that_is_forbidden_to_change_anything_says_why_it_cannot_be_armed() -> None:
    assert "no log-in" in why_not(BY_NAME["arm"], standing(safety=Safety("it has no log-in")))


def test_the_help_explains_the_signs_beside_the_rows() -> None:
    screen = "\n".join(plain(one) for one in help_lines(sections(()), 80))
    assert re.search(r"^\+4 +this many columns do not fit", screen, re.MULTILINE)
    assert re.search(r"^≥5 min +at least this long", screen, re.MULTILINE)


def test_an_empty_plan_names_the_keys_that_fill_it() -> None:
    assert how_to_plan(standing(planned=0)).startswith(f"{BY_NAME['choose'].shown} in pane 1 chooses")
    assert how_to_plan(standing(planned=0)).endswith(f"; {BY_NAME['load'].shown} loads one from a file")
    assert how_to_plan(standing(busy="comparing")) == how_to_plan(standing()), "it does not come and go"
    assert "loads" not in how_to_plan(standing(safety=Safety(forbidden=SERVED))), "there it does nothing"
