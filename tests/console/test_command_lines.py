"""The command line that the console shows does what the screen does."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from console.app.main_screen.equivalent_command import command_line
from console.app.session.draft import Draft
from console.app.session.rows import Rows
from console.app.session.view import Choosing
from console.change.registry import OFFLINE, PANES, REPLICAS
from console.target import resolve
from recovery.model import TopicPartition
from recovery.strategy import Strategy
from tests.unit.cli.command_process import invoke

SCENARIO = "last-replica-standing"


@pytest.mark.parametrize("pane", [pane for pane in PANES if pane != "6"])
def test_every_panes_command_line_runs(home: Path, pane: str) -> None:
    line = command_line(
        resolve(None, None, SCENARIO, None),
        pane,
        cursor=TopicPartition("payments", 0),
        marked=(),
        rows=Rows(offline=True),
        draft=Draft(),
    )
    program, *words = shlex.split(line)
    ended = invoke(home, program, *words)
    assert ended.status in (0, 1), str(ended)
    assert "payments" in ended.out or pane != REPLICAS


def test_the_plans_command_line_makes_the_plan_that_is_shown(home: Path) -> None:
    line = command_line(
        resolve(None, None, SCENARIO, None),
        "6",
        cursor=None,
        marked=(),
        rows=Rows(choosing=Choosing(strategy=Strategy.AGGRESSIVE)),
        draft=Draft(),
    )
    program, *words = shlex.split(line)
    ended = invoke(home, program, *words)
    assert ended.status == 0, str(ended)
    assert "--strategy" in words


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (Rows(offline=True), "replicas --all-offline-partitions"),
        (Rows(led=True), "replicas --under-min-isr"),
        (Rows(offline=True, led=True), "status"),
        (Rows(offline=True, others=True), "replicas"),
    ],
)
def test_the_command_line_of_the_first_pane_lists_what_it_lists(home: Path, rows: Rows, words: str) -> None:
    line = command_line(
        resolve(None, None, SCENARIO, None), OFFLINE, cursor=None, marked=(), rows=rows, draft=Draft()
    )
    program, *told = shlex.split(line)
    assert told[: len(words.split())] == words.split()
    assert told[len(words.split()) :] == ["--simulate", SCENARIO]
    ended = invoke(home, program, *told)
    assert ended.status in (0, 1), str(ended)
