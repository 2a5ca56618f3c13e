"""The options with which a printed command does as this run did."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from recovery.ranking import Ranking
from recovery.strategy import Strategy


def evidence_words(files: Iterable[Path | str] | None, metadata_dir: Path | None = None) -> tuple[str, ...]:
    """The same disks and the same copy of the metadata log, where any were named."""
    copied = () if metadata_dir is None else ("--metadata-dir", str(metadata_dir))
    return (*(word for file in files or () for word in ("--evidence", str(file))), *copied)


def choice_words(ranking: Ranking, strategy: Strategy) -> tuple[str, ...]:
    """The same ranking and the same strategy, where they are not what a command chooses by itself."""
    by_rank = () if ranking is Ranking.LAST_RECORD else ("--ranking", str(ranking))
    by_rule = () if strategy is Strategy.BALANCED else ("--strategy", str(strategy))
    return (*by_rank, *by_rule)
