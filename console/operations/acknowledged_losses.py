"""A picture with what each choice of leader loses of the acknowledged records."""

from __future__ import annotations

from dataclasses import replace

from backends.base.judged_partitions import judged
from backends.base.protocol import Backend
from console.operations.partition_picture import Picture


async def with_verdicts(backend: Backend, picture: Picture) -> Picture:
    """The picture in which every partition without a leader is judged. Raises BackendError."""
    told = await judged(backend, picture.cluster.elr_enabled, picture.surveys, picture.log_dirs)
    return replace(picture, verdicts=told.verdicts)
