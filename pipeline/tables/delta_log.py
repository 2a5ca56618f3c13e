"""The log of a Delta table: whether all of its commits are there.

``deltalake`` takes a directory whose log is gone for one without a table, and an empty commit for one without
changes. Both would lose rows without a word. Each message says which file it is and what can be done.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise

from pipeline.errors import PipelineError
from pipeline.storage import StoragePath

LOG = "_delta_log"
_COPY = "put it back from a copy"
_COMMIT = re.compile(r"\d{20}\.json")


def check_nothing_lost(place: StoragePath) -> None:
    """Raises PipelineError if there is no table, and something that belongs to one."""
    if any(file.name.endswith(".parquet") for file in place.walk()):
        raise PipelineError(
            f"{place.uri}: has rows, but its log ({LOG}) is gone: {_COPY}, or move the whole directory away to"
            " begin a new table"
        )


def check_commits(place: StoragePath) -> None:
    """Raises PipelineError if a commit is empty: a power failure may leave it so."""
    for file, size in _commits(place):
        if not size:
            raise PipelineError(_damaged(place, file, "is empty"))


def check_outside_tables(root: StoragePath) -> None:
    """Raises PipelineError for a directory in a Delta table, which deletes files that its own log does not name."""
    for directory in (root, *root.above()):
        if (directory / LOG).exists():
            raise PipelineError(
                f"{root.uri}: {'is' if directory is root else 'is in'} a Delta table"
                f"{'' if directory is root else f' ({directory.uri})'}: choose a directory outside of it"
            )


def log_problem(place: StoragePath) -> str:
    """Why the log cannot be read; "" if all of it seems to be there. Raises PipelineError."""
    commits = _commits(place)
    for file, _ in commits:
        try:
            for line in file.read().splitlines():
                json.loads(line)
        except ValueError:
            return _damaged(place, file, "is damaged")
    numbers = [int(file.name.partition(".")[0]) for file, _ in commits]
    for before, number in pairwise(numbers):
        if number != before + 1:
            return f"{place.uri}/{LOG}: {before + 1:020d}.json is missing: {_COPY}"
    return ""


def _damaged(place: StoragePath, file: StoragePath, what: str) -> str:
    newest = file.name == _commits(place)[-1][0].name
    without = " (or delete it: it is the newest, and only its rows are lost)" if newest else ""
    return f"{file.uri}: this commit of the table {what}: {_COPY}{without}"


def _commits(place: StoragePath) -> list[tuple[StoragePath, int]]:
    """The commits that are files of their own with their sizes, oldest first."""
    found = (place / LOG).walk_sizes()
    return [(file, size) for file, size in found if _COMMIT.fullmatch(file.name)]
