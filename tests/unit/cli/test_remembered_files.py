"""What a broker answered about its own file is there when the broker is dead."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.last_healthy import remember
from console.remembered_files import APART_MS, MAX_ANSWERS, MEMORY, RememberedFiles
from recovery.model import FileAnswer

CLUSTER = "a-cluster"


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RememberedFiles:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return RememberedFiles()


def test_answers_of_several_commands_add_up(memory: RememberedFiles) -> None:
    memory.remember(CLUSTER, [FileAnswer(1, 2, 1_000), FileAnswer(2, 1, 1_000)])
    memory.remember(CLUSTER, [FileAnswer(1, 3, 2_000)])
    assert memory.recall(CLUSTER) == {
        1: [FileAnswer(1, 2, 1_000), FileAnswer(1, 3, 2_000)],
        2: [FileAnswer(2, 1, 1_000)],
    }
    assert memory.recall("another cluster") == {}


def test_of_equal_answers_in_a_row_the_first_and_the_newest_are_kept(memory: RememberedFiles) -> None:
    for time_ms in range(0, 2 * APART_MS, 1_000):
        memory.remember(CLUSTER, [FileAnswer(1, 2, time_ms)])
    times = [one.time_ms for one in memory.recall(CLUSTER)[1]]
    assert times == [0, APART_MS, 2 * APART_MS - 1_000]


def test_the_newest_are_kept_of_very_many(memory: RememberedFiles) -> None:
    memory.remember(CLUSTER, [FileAnswer(1, 1 + number % 2, number) for number in range(MAX_ANSWERS + 5)])
    assert [one.time_ms for one in memory.recall(CLUSTER)[1]] == list(range(5, MAX_ANSWERS + 5))


def test_a_file_that_was_written_by_something_else_is_not_used(memory: RememberedFiles) -> None:
    remember(CLUSTER, MEMORY, {"brokers": [1, 2]})
    assert memory.recall(CLUSTER) == {}
