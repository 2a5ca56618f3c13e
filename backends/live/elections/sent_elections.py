"""What was sent for rows of a plan, for all attempts at them."""

from __future__ import annotations

from dataclasses import dataclass, field

from recovery.model import TopicPartition

ELECTION_ALIVE_FOR = 120.0
"""Seconds after which a request without an answer is certainly dead: a broker holds a forwarded request for up to
60 s and sends it again after a disconnect, and the controller may work on it until the request's own timeout.
"""


@dataclass
class SentElections:
    """What all attempts at the same rows share.

    ``asked``: something was sent for these. ``in_doubt``: an election of these was sent without an answer, at that
    time of the event loop, and may still be carried out. ``standing``: our order of these was left in place.
    """

    asked: set[TopicPartition] = field(default_factory=set)
    in_doubt: dict[TopicPartition, float] = field(default_factory=dict)
    standing: set[TopicPartition] = field(default_factory=set)
