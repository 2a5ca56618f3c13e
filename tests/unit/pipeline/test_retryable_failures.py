"""Failures of a watch that pass by themselves: which they are, and how often one micro-batch may fail by them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import PipelineError
from pipeline.storage import storage_path
from pipeline.watch.retryable_failures import RetryableFailures, retryable_cause
from pipeline.watch.watch_checkpoint import WatchCheckpoint

CRASHED = (
    "[STREAM_FAILED] Query [id = 1] terminated with exception: Python worker exited unexpectedly (crashed)."
)
TOO_LATE = "[STREAM_FAILED] Query [id = 1] terminated with exception: Python worker failed to connect back."


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        (CRASHED, "a Python worker was killed or crashed"),
        (TOO_LATE, "a new Python process did not answer Spark in time"),
        (
            "Lost task 0.3 in stage 1.0 (TID 7) (host executor 2): ExecutorLostFailure (executor 2 exited caused by"
            " one of the running tasks) Reason: Executor heartbeat timed out after 125000 ms",
            "Spark lost an executor",
        ),
        (
            "[STREAM_FAILED] Query [id = 1] terminated with exception:  SQLSTATE: XXKST",
            "the Python process that finds new records was killed or crashed",
        ),
        ("[STREAM_FAILED] Query [id = 1] terminated with exception: Java heap space SQLSTATE: XXKST", None),
        (f"{CRASHED}\npipeline.errors.PipelineError: /lake: No space left on device", None),
    ],
)
def test_only_the_loss_of_a_process_passes_by_itself(message: str, cause: str | None) -> None:
    assert retryable_cause(message) == cause


class Watched:
    """A checkpoint, and what its operator reads."""

    def __init__(self, place: Path) -> None:
        self.commits = place / "watch-checkpoint" / "commits"
        self.commits.mkdir(parents=True)
        self.said: list[str] = []
        self.pauses: list[float] = []
        checkpoint = WatchCheckpoint.below(storage_path(str(place)))
        self.failures = RetryableFailures(checkpoint, self.said.append, self.pauses.append)

    def done(self, number: int) -> None:
        (self.commits / str(number)).write_text("v1\n{}")

    def fail(self, message: str, times: int = 1) -> None:
        for _ in range(times):
            self.failures.wait_after(RuntimeError(message))


def test_each_failure_is_told_and_the_last_one_says_what_to_do(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.done(6)
    watched.fail(TOO_LATE, times=4)
    assert watched.said[1] == (
        "micro-batch 7 failed because a new Python process did not answer Spark in time;"
        " attempt 3 of 5 begins in 10 s"
    )
    assert len(watched.said) == 4 and watched.pauses == [5, 10, 20, 40]
    with pytest.raises(PipelineError) as ended:
        watched.fail(CRASHED)
    assert str(ended.value) == (
        "watch: micro-batch 7 failed 5 times in a row, the last time because a Python worker was killed or crashed."
        " Every micro-batch before it is in the tables. Make sure that there is memory and CPU time for Spark's"
        " processes, then run the same command again: it continues with micro-batch 7"
    )
    assert len(watched.said) == 4


def test_a_micro_batch_that_is_done_begins_the_count_again(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    for number in range(3):
        watched.fail(CRASHED, times=4)
        watched.done(number)
    assert [line.split(" failed")[0] for line in watched.said[::4]] == [
        "micro-batch 0",
        "micro-batch 1",
        "micro-batch 2",
    ]
    assert watched.pauses == [5, 10, 20, 40] * 3


def test_another_failure_ends_the_watch_at_once(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    with pytest.raises(PipelineError, match=r"^watch: Spark: /lake: No space left on device$"):
        watched.fail(
            "terminated with exception: x\npipeline.errors.PipelineError: /lake: No space left on device"
        )
    assert not watched.said and not watched.pauses
