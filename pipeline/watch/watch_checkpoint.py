"""The checkpoint of ``watch``: Spark's own files, and beside them the states of the folds."""

from __future__ import annotations

import json
from typing import NamedTuple

from pipeline.storage import StoragePath
from pipeline.watch.watch_progress import WatchProgress, from_json

CHECKPOINT = "watch-checkpoint"
_QUERY = "metadata"
"""Spark's file with the id of the query to which a checkpoint belongs."""
_OFFSETS = "offsets"
"""Spark's directory with the offsets of each micro-batch: a file named by its number, whose last line is ours."""
_COMMITS = "commits"
"""Spark's directory with a file for each micro-batch that is done, named by its number."""
_STATES, _OF_SHARDS = "states", "folds"


class WatchCheckpoint(NamedTuple):
    """Every method raises PipelineError if a file cannot be read."""

    place: StoragePath

    @classmethod
    def below(cls, out: StoragePath) -> WatchCheckpoint:
        return cls(out / CHECKPOINT)

    @property
    def states(self) -> StoragePath:
        return self.place / _STATES

    @property
    def of_shards(self) -> StoragePath:
        """Where an earlier version has its states: several of each cluster."""
        return self.place / _OF_SHARDS

    def began(self) -> bool:
        return (self.place / _QUERY).exists()

    def query_id(self) -> str:
        return str(json.loads((self.place / _QUERY).read())["id"])

    def next_micro_batch(self) -> int:
        """The number of the first that is not done."""
        return self._newest(_COMMITS) + 1

    def left_by_earlier_run(self) -> WatchProgress:
        """The end of the newest micro-batch."""
        last = self._newest(_OFFSETS)
        if last < 0:
            return WatchProgress(-1, 0, 0.0, {}, moved=False)
        written = (self.place / _OFFSETS / str(last)).read().decode().splitlines()[-1]
        return WatchProgress(last, 0, 0.0, from_json(json.loads(written)), moved=False)

    def _newest(self, directory: str) -> int:
        """-1: there is none."""
        numbers = [int(file.name) for file in (self.place / directory).walk() if file.name.isdecimal()]
        return max(numbers, default=-1)
