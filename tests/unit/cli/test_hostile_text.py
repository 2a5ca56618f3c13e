"""Names and messages that come from outside are shown as text: whatever they hold, they drive no terminal, break no
row, and name no file elsewhere.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from backends.live.errors import one_line as error_line
from console.jobs.elect.review_report import markdown
from console.journal.journal_lines import encode
from console.output.screen import Screen
from console.paths import cluster_name
from console.rescue_files.manifest import branch_directory
from recovery.model import EpochSpan, TopicPartition
from recovery.plan.make import one_line as reason_line
from recovery.plan.read import from_json
from recovery.plan.values import PlanError
from recovery.plan.write import to_json
from recovery.rescue_branches import BranchPart, RescueBranch
from recovery.wording.quantity_text import printable
from tests.command_server import Ended
from tests.hostile_text import HOSTILE, drives_a_terminal, hostile_backend
from tests.unit.cli.command_process import Caller
from tests.unit.plan.plans import story

NAMES = pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text)[1:21])


@NAMES
@pytest.mark.parametrize("surface", [printable, error_line, reason_line])
def test_a_text_is_made_one_harmless_line(text: str, surface: Callable[[str], str]) -> None:
    shown = surface(text)
    assert not drives_a_terminal(shown) and "\n" not in shown


@NAMES
def test_a_sentence_of_a_command_is_one_line_whatever_name_is_in_it(text: str) -> None:
    out, err = io.StringIO(), io.StringIO()
    screen = Screen(lambda: 0.0, out, err)
    screen.out([f"cluster {text}: 3 brokers"])
    screen.say(f"broker {text} does not answer")
    for printed in (out.getvalue(), err.getvalue()):
        assert not drives_a_terminal(printed) and printed.count("\n") == 1


@NAMES
def test_markdown_stays_a_table_and_shows_no_markup_of_others(text: str) -> None:
    plan = story()
    header = plan.header.__class__(
        text, text, plan.header.made_at, text, text, plan.header.ranking, plan.header.strategy
    )
    rows = tuple(row._replace(tp=TopicPartition(text, number)) for number, row in enumerate(plan.rows))
    hostile = plan.__class__(header, rows, plan.not_elected)
    told, plain = markdown(hostile, text, text), markdown(plan, "plan.json", "ktriage apply")
    assert not drives_a_terminal(told)
    assert len(told.splitlines()) == len(plain.splitlines())
    cells = [line.count(" | ") for line in told.splitlines() if line.startswith("|") and "---" not in line]
    assert len(set(cells)) == 1, "every row has its columns"
    assert "<script>" not in told.replace("`", "\0").split("\0")[0]


@NAMES
def test_a_journal_line_is_one_line_and_a_clusters_directory_is_a_name(text: str) -> None:
    line = encode("run", datetime(2026, 1, 1, tzinfo=UTC), {"reason": text}).decode()
    assert line.endswith("\n") and not [c for c in line[:-1] if c < " "]
    assert json.loads(line)["reason"] == text
    name = cluster_name(text)
    assert "/" not in name and name not in ("", ".", "..") and name.isascii() and name.isprintable()


@NAMES
def test_a_rescued_branch_lies_inside_its_directory(text: str, tmp_path: Path) -> None:
    span = (EpochSpan(0, 0, 10),)
    branch = RescueBranch(TopicPartition(text, 0), "id", 1, 2, BranchPart.TAIL, span)
    place = branch_directory(branch)
    assert len(place.parts) == 2 and not place.is_absolute() and ".." not in place.parts
    (tmp_path / place).mkdir(parents=True)
    assert (tmp_path / place).resolve().is_relative_to(tmp_path.resolve())
    assert str(place).isascii() and str(place).isprintable()


def test_the_branches_of_kafkas_own_names_lie_under_these_names() -> None:
    branch = RescueBranch(TopicPartition("a.B_c-1", 7), "id", 1, 2, BranchPart.TAIL, (EpochSpan(0, 0, 10),))
    assert branch_directory(branch).parts[0] == "a.B_c-1-7"


@NAMES
def test_a_plan_file_with_such_a_topic_or_reason_is_refused_in_one_harmless_line(text: str) -> None:
    row = story().rows[0]
    plan = story().__class__(story().header, (row._replace(reason=text),), ())
    try:
        from_json(to_json(plan))
    except PlanError as error:
        assert not drives_a_terminal(str(error)) and "\n" not in str(error)
    else:
        assert text.isprintable()


# Commands, with everything that brokers tell being such a text.

COMMANDS = (
    ("replicas",),
    ("replicas", "--output", "json"),
    ("plan", "plan.json"),
    ("plan", "plan.json", "--ranking", "specification", "--strategy", "aggressive"),
    ("plan", "plan.json", "--output", "json"),
    ("status",),
    ("status", "--output", "json"),
    ("log-dirs",),
    ("log-dirs", "--output", "json"),
    ("recover", "--all-offline-partitions", "--show-replica-info"),
)


@NAMES
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_command_passes_on_what_drives_a_terminal(call: Caller, words: tuple[str, ...], text: str) -> None:
    ended: Ended = call.on(hostile_backend(text))("ktriage", *words, "--bootstrap-server", "kafka:9092")
    assert not drives_a_terminal(ended.out + ended.err), ended
    assert ended.status in (0, 1, 3), ended
    assert [path.name for path in Path(call.home).glob("*.json")] in ([], ["plan.json"])


@pytest.mark.parametrize("words", [words for words in COMMANDS if "json" not in words], ids=" ".join)
def test_a_name_of_two_lines_takes_no_line_more_than_a_name_of_one(
    call: Caller, words: tuple[str, ...]
) -> None:
    lines = []
    for text in ("two\nlines", "two lines"):
        ended = call.on(hostile_backend(text))("ktriage", *words, "--bootstrap-server", "kafka:9092")
        lines.append(ended.out.splitlines())
        (call.home / "plan.json").unlink(missing_ok=True)
    told, plain = lines
    assert len(told) == len(plain) > 1, told
