"""Topics as the newest metadata of a broker has them."""

from __future__ import annotations

from collections.abc import Mapping

from backends.simulator.broker.describe import id_of
from backends.simulator.partition_table import PartitionTable
from recovery.controller.cluster_image import ClusterImage
from recovery.controller.registration import Registration


def rows_of(image: ClusterImage) -> Mapping[str, tuple[Registration, ...]]:
    """Every topic's partitions."""
    table = image.partitions
    return table.topics if isinstance(table, PartitionTable) else {}


_newest: tuple[object, dict[str, str]] = (None, {})


def names_by_id(image: ClusterImage) -> dict[str, str]:
    """Every topic's name by its id; kept for as long as nothing changes."""
    global _newest  # noqa: PLW0603  # thousands of requests ask the same of one table
    if _newest[0] is not image.partitions:
        _newest = (image.partitions, {id_of(image, name): name for name in rows_of(image)})
    return _newest[1]
