"""Topics that the caller may not see, where log dirs alone cannot tell of them.

A list of all topics silently leaves out those that may not be seen; the log dirs of the brokers have them. A broker
that is down lists none, and a topic may have all its replicas on such brokers. The metadata log has every topic.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from backends.base.answers import Partitions
from backends.base.metadata_log import MetadataLogSource
from backends.base.time_limit import time_limit
from recovery.metadata_log.history import MetadataHistory
from recovery.model import Unknown, Why
from recovery.wording.quantity_text import both

if TYPE_CHECKING:
    from backends.base.protocol import Backend

SECONDS = 2.0
"""So long a list of all partitions waits for the metadata log; the next one reads on from there."""
AGAIN_AFTER = 15.0
"""Seconds after which a log that could not be read is asked for again."""


def unlisted(brokers: Iterable[int]) -> Unknown:
    """Why it is not known whether topics are hidden, where these brokers listed no log dirs."""
    detail = f"broker {both(sorted(brokers))} listed no log dirs, and a topic may be on them alone"
    return Unknown(Why.NOT_ANSWERED, detail)


def existing_topics(history: MetadataHistory) -> frozenset[str]:
    """The names of the topics that exist at the end of the log."""
    found: set[str] = set()
    looked_at: set[str] = set()
    for subject in history.partitions():
        if subject.topic_id in looked_at:
            continue
        looked_at.add(subject.topic_id)
        intervals = history.intervals(subject)
        name = history.topic_name(subject.topic_id)
        if name is not None and intervals and intervals[-1].until_ms is None:
            found.add(name)
    return frozenset(found)


class HiddenTopics:
    """Compares the visible topics with the metadata log, where the caller may read it."""

    def __init__(self) -> None:
        self._source = MetadataLogSource()
        self._asked = float("-inf")

    async def resolved(self, backend: Backend, found: Partitions) -> Partitions:
        """All partitions that may be seen, with the hidden topics by the metadata log; as they were where it could
        not be read.
        """
        clock = asyncio.get_running_loop().time
        if self._source.unread is not None and clock() - self._asked < AGAIN_AFTER:
            return found
        self._asked = clock()
        try:
            async with time_limit(backend, SECONDS):
                unread = await self._source.read(backend)
        except TimeoutError:
            return found
        history = self._source.history
        if unread is not None or isinstance(history, Unknown):
            return found
        visible = {state.topic for state in found.states} | {tp.topic for tp in found.unknown}
        hidden = sorted(existing_topics(history) - visible)
        return replace(found, hidden=tuple(sorted({*found.hidden, *hidden})), not_compared=None)
