"""What brokers answered about their own files, kept for the time when they are dead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias

from recovery.model import FileAnswer

FileAnswers: TypeAlias = Mapping[int, Sequence[FileAnswer]]
"""By broker, the oldest answer first."""


class FileMemory(Protocol):
    """Keeps answers from command to command. It never fails: no command may fail for it."""

    def recall(self, cluster_id: str, /) -> FileAnswers:
        """Every answer that is kept of that cluster."""
        ...

    def remember(self, cluster_id: str, answers: Iterable[FileAnswer], /) -> None:
        """Keeps these answers too."""
        ...


class NoFileMemory:
    """Keeps nothing."""

    def recall(self, _cluster_id: str, /) -> FileAnswers:
        return {}

    def remember(self, _cluster_id: str, _answers: Iterable[FileAnswer], /) -> None:
        """Forgets them."""
