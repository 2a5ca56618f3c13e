"""The requests that were sent for rows of a plan, over all attempts."""

from __future__ import annotations

from dataclasses import dataclass, field

from recovery.model import TopicPartition


@dataclass
class SentElections:
    """What all attempts at the same rows share.

    ``asked``: something was sent for these. ``in_doubt``: an election of these was sent without an answer, at
    that time of the event loop, and may still be carried out. ``standing``: our order of these rows was not
    restored.
    """

    asked: set[TopicPartition] = field(default_factory=set)
    in_doubt: dict[TopicPartition, float] = field(default_factory=dict)
    standing: set[TopicPartition] = field(default_factory=set)
