"""What brokers answered about their own files, in the state directory: asked while they live."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from backends.base.file_memory import FileAnswers
from console.last_healthy import recall, remember
from recovery.model import FileAnswer

MEMORY = "min-isr-of-files"
APART_MS = 600_000
"""An answer that says what the one before said is kept beside it only so much later; otherwise it replaces it."""
MAX_ANSWERS = 100
"""Answers of one broker: its newest ones."""


class RememberedFiles:
    """One file for each cluster, as :mod:`console.last_healthy` writes it."""

    def recall(self, cluster_id: str) -> FileAnswers:
        """Nothing where the file was written by something else."""
        document = recall(cluster_id, MEMORY)
        try:
            return {} if document is None else _from_json(document)
        except (AttributeError, KeyError, TypeError, ValueError):
            return {}

    def remember(self, cluster_id: str, answers: Iterable[FileAnswer]) -> None:
        """Adds to what is kept. Where two commands write at once one of them is not kept."""
        by_broker = {broker: list(several) for broker, several in self.recall(cluster_id).items()}
        for one in answers:
            several = by_broker.setdefault(one.broker, [])
            several.append(one)
            several[:] = _thinned(sorted(several, key=lambda one: one.time_ms))
        rows = {
            str(broker): [[one.value, one.time_ms] for one in several]
            for broker, several in by_broker.items()
        }
        remember(cluster_id, MEMORY, {"brokers": rows})


def _thinned(answers: list[FileAnswer]) -> list[FileAnswer]:
    """The newest answer, and those before it that say something else or are far enough apart."""
    found: list[FileAnswer] = []
    for one in answers:
        last = found[-1] if found else None
        before = found[-2] if len(found) > 1 else None
        repeats = last is not None and before is not None and last.value == before.value == one.value
        if repeats and before is not None and last is not None and last.time_ms - before.time_ms < APART_MS:
            found.pop()
        found.append(one)
    return found[-MAX_ANSWERS:]


def _from_json(document: Mapping[str, Any]) -> FileAnswers:
    return {
        int(broker): [FileAnswer(int(broker), int(value), int(time_ms)) for value, time_ms in rows]
        for broker, rows in document["brokers"].items()
    }
