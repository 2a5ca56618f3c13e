"""What the parts of the active controller may do with the metadata: read the newest state, and write after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from recovery.controller.cluster_image import ClusterImage, Effect
from recovery.model import TopicPartition

Then = Callable[[], None]


class MetadataWriter(Protocol):
    """``image`` is the newest state, committed or not."""

    image: ClusterImage

    def next_broker_epoch(self) -> int:
        """A broker epoch that no broker ever had."""
        ...

    def write(
        self,
        effect: Effect,
        why: str,
        *,
        then: Then | None = None,
        otherwise: Then | None = None,
        brokers: Iterable[int] = (),
        created: Sequence[TopicPartition] = (),
    ) -> None:
        """Make ``effect`` the newest state and append it to the metadata log.

        ``then`` runs when it is committed, ``otherwise`` when the leadership was lost before.
        """
        ...
