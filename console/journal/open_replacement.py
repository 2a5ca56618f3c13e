"""A controller replacement in the journal: one entry from its first step to its last."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from console.journal.change_kinds import REPLACE
from console.journal.unfinished_entries import Unfinished


class OpenReplacement(NamedTuple):
    """A replacement that was started and not finished; ``file`` is its plan, ``confirmed`` the steps that an
    operator said are done.
    """

    entry: str
    at: str
    file: Path
    confirmed: frozenset[int] = frozenset()


def open_replacement(found: Unfinished) -> OpenReplacement | None:
    """The newest unfinished replacement."""
    replacements = found.of(REPLACE)
    if not replacements:
        return None
    newest = replacements[-1]
    confirmed = found.confirmed.get(str(newest.detail.get("planId", "")), frozenset())
    return OpenReplacement(newest.entry, newest.at, Path(str(newest.detail.get("file", ""))), confirmed)
