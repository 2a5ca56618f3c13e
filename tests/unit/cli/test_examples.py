"""Every example of a command line in README, docs and help texts is one that the programs take."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from console.change.registry import COMMANDS
from console.cli import command_tree
from recovery.model import TopicPartition
from recovery.plan.read import from_json
from recovery.plan.values import BarePlan, BareRow
from tests.command_server import ENTRY_POINTS, ROOT
from tests.unit.cli.command_process import Caller

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
PLATFORM = ROOT / "docs" / "platform"
UNITS = sorted(PLATFORM.glob("*.service"))
EXEC = re.compile(r"^ExecStart=/usr/bin/env (.+)$", re.MULTILINE)
LINE = re.compile(rf"(?:{'|'.join(ENTRY_POINTS)}) .+")
BEFORE = r"(?:\$ |until |for .*; do )?"
CELL = re.compile(rf"\| `({LINE.pattern[:-1]}[^`]*)` \|$", re.MULTILINE)


def words_of(text: str) -> list[str]:
    """A line of a shell as words, up to a comment, a pipe, a redirection or a semicolon."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|;>")
    lexer.whitespace_split = True
    words = []
    for word in lexer:
        if word[0] in "|;>":
            break
        words.append(word.replace("$seed", "1").replace("$node", "1"))
    return words


def examples(text: str, indent: int) -> Iterator[list[str]]:
    """The command lines of lines indented by at least that much, a backslash at their end joined."""
    for line in text.replace("\\\n", " ").splitlines():
        found = re.fullmatch(rf" {{{indent},}}{BEFORE}({LINE.pattern})", line)
        if found:
            yield words_of(found[1])


def scheduled() -> list[list[str]]:
    """The commands of Airflow's DAG and of the Databricks bundle, task by task."""
    dag = ast.parse((PLATFORM / "ktriage_airflow.py").read_text(encoding="utf-8"))
    lines = [
        ast.literal_eval(word.value)
        for call in ast.walk(dag)
        if isinstance(call, ast.Call)
        for word in call.keywords
        if word.arg == "bash_command"
    ]
    bundle = yaml.safe_load((PLATFORM / "databricks.yml").read_text(encoding="utf-8"))
    (job,) = bundle["resources"]["jobs"].values()
    wheels = [task["python_wheel_task"] for task in job["tasks"]]
    return [words_of(line) for line in lines] + [[one["entry_point"], *one["parameters"]] for one in wheels]


def documented() -> list[list[str]]:
    """Those of the pages: of code blocks, and the last cell of a table's row; and of files for other programs."""
    found: list[list[str]] = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        found += examples(text, 4)
        found += [words_of(cell) for cell in CELL.findall(text)]
    for unit in UNITS:
        found += [words_of(line) for line in EXEC.findall(unit.read_text(encoding="utf-8"))]
    jobs = scheduled()
    assert {words[2] for words in jobs} == {"exposure", "metrics", "prune"}
    return found + jobs


@pytest.fixture
def parsed(call: Caller, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The contexts of the commands that were called; none is carried out."""
    contexts: list[Any] = []

    def note(_command: object, context: Any) -> int:
        contexts.append(context)
        return 0

    monkeypatch.setattr(command_tree.QuickCommand, "invoke", note)
    return contexts


def takes(call: Caller, parsed: list[Any], words: list[str]) -> None:
    if words[0] == "ktriage" and words[1].startswith("-"):
        assert command_tree.tree().make_context("ktriage", words[1:])
        return
    before = len(parsed)
    ended = call(words[0], *words[1:])
    assert ended.status == 0, (words, ended)
    assert len(parsed) == before + 1, words


def test_every_documented_command_line_is_taken(call: Caller, parsed: list[Any]) -> None:
    found = documented()
    assert len(found) >= 50
    for words in found:
        takes(call, parsed, words)
    called = {context.command_path.split()[1] for context in parsed if context.command_path.count(" ")}
    assert {"plan", "pipeline", "simulate", "quorum", "snapshot", "resume"} <= called


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_example_of_a_help_text_is_taken(call: Caller, parsed: list[Any], name: str) -> None:
    command = command_tree.single(name)
    commands = [command, *getattr(command, "commands", {}).values(), *getattr(command, "forms", {}).values()]
    for one in commands:
        assert one.help is not None
        found = list(examples(one.help.replace("\b", ""), 2))
        assert found or "Example" not in one.help, one.name
        for words in found:
            takes(call, parsed, words)
    assert parsed


def test_the_help_of_elect_shows_a_file_that_designates_leaders() -> None:
    text = command_tree.single("elect").help
    assert text is not None
    (document,) = (line for line in text.splitlines() if '"designatedLeader":' in line)
    assert from_json(document) == BarePlan((BareRow(TopicPartition("foo", 1), 0),))


def test_the_help_of_a_verb_has_its_own_options_only() -> None:
    verbs: Any = command_tree.single("pipeline")
    options = {name: {o for p in verb.params for o in p.opts} for name, verb in verbs.commands.items()}
    assert "--since" in options["history"] and "--since" not in options["plan"]
    assert "--in" in options["plan"] and "--in" not in options["show"]
    assert options["report"] == {"result", "--out", "--rows"}
