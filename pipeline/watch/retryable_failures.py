"""Failures of ``watch`` that pass by themselves: Spark lost a process, and the records are in order.

After one, the query is started again from its checkpoint. A micro-batch may fail :data:`MOST_ATTEMPTS` times in a
row: then it may be the micro-batch itself that no process survives.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pipeline.errors import PipelineError
from pipeline.job_run import failure_message, names_our_error
from pipeline.watch.watch_checkpoint import WatchCheckpoint

MOST_ATTEMPTS = 5
FIRST_PAUSE_S = 5.0
"""Before the second attempt; each further pause is twice as long, because an overloaded machine needs time."""

_CAUSES = (
    (re.compile("Python worker failed to connect back"), "a new Python process did not answer Spark in time"),
    (re.compile("Python worker exited unexpectedly"), "a Python worker was killed or crashed"),
    (re.compile("ExecutorLostFailure|FetchFailedException"), "Spark lost an executor"),
    # Spark reads the end of a stream, and an error of Java for that has no text.
    (
        re.compile(r"terminated with exception: +SQLSTATE"),
        "the Python process that finds new records was killed or crashed",
    ),
)
"""What Spark's message has in it, and what happened."""


def retryable_cause(message: str) -> str | None:
    """What happened, if Spark's ``message`` is of a failure that passes by itself."""
    if names_our_error(message):
        return None
    return next((cause for pattern, cause in _CAUSES if pattern.search(message)), None)


class RetryableFailures:
    """Counts how often the present micro-batch has failed. ``say`` tells the operator of each failure in one line;
    ``pause`` waits for so many seconds.
    """

    def __init__(
        self, checkpoint: WatchCheckpoint, say: Callable[[str], None], pause: Callable[[float], None]
    ) -> None:
        self._checkpoint = checkpoint
        self._say = say
        self._pause = pause
        self._micro_batch = -1
        self._failed = 0

    def wait_after(self, error: Exception) -> None:
        """Returns when the query should be started again. Raises PipelineError if it should not."""
        cause = retryable_cause(str(error))
        if cause is None:
            raise PipelineError(f"watch: Spark: {failure_message(error)}") from None
        number = self._checkpoint.next_micro_batch()
        self._failed = self._failed + 1 if number == self._micro_batch else 1
        self._micro_batch = number
        if self._failed == MOST_ATTEMPTS:
            raise PipelineError(
                f"watch: micro-batch {number} failed {MOST_ATTEMPTS} times in a row, the last time because {cause}."
                " Every micro-batch before it is in the tables. Make sure that there is memory and CPU time for"
                f" Spark's processes, then run the same command again: it continues with micro-batch {number}"
            ) from None
        seconds = FIRST_PAUSE_S * 2 ** (self._failed - 1)
        self._say(
            f"micro-batch {number} failed because {cause};"
            f" attempt {self._failed + 1} of {MOST_ATTEMPTS} begins in {seconds:.0f} s"
        )
        self._pause(seconds)
