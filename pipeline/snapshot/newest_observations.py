"""What the newest observation of each cluster tells besides its partitions."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.snapshot.catalog import PARALLEL, Chain
from pipeline.snapshot.state_sources import Sources
from pipeline.tables.delta_table import DataFile, data_files, opened, read_file
from pipeline.tables.schemas import OBSERVATIONS

_READ = pa.schema([OBSERVATIONS.schema.field(name) for name in ("snapshot", "brokers", "elr_enabled")])


def newest_observations(sources: Sources) -> dict[str, dict[str, Any]]:
    """By cluster id the ``brokers``, each as in :data:`pipeline.tables.schemas.BROKER`, and ``elr_enabled``. Raises
    PipelineError.

    One row of each cluster is read, for which Spark would read the table's log and start a job.
    """
    found: dict[str, dict[str, Any]] = {
        one.full.cluster_id: {"brokers": [], "elr_enabled": None} for one in sources.chains
    }
    wanted = list(_files(sources))
    with ThreadPoolExecutor(PARALLEL) as pool:
        tables = pool.map(lambda pair: read_file(pair[1], _READ), wanted)
        for (chain, _), rows in zip(wanted, tables, strict=True):
            newest = rows.filter(pc.equal(rows["snapshot"], chain.newest.snapshot))
            for row in newest.to_pylist():
                found[chain.full.cluster_id] = row | {"brokers": row["brokers"] or []}
    return found


def _files(sources: Sources) -> Iterator[tuple[Chain, DataFile]]:
    """The files that may have the newest observation of each cluster."""
    roots = {chain.root.uri: chain.root for chain in sources.chains}
    by_day: dict[tuple[str, str, Any], list[DataFile]] = {}
    for uri, root in roots.items():
        table = opened(root, OBSERVATIONS)
        for file in data_files(root, OBSERVATIONS, table) if table is not None else ():
            key = (uri, file.partition["cluster_id"], file.partition["day"])
            by_day.setdefault(key, []).append(file)
    for chain in sources.chains:
        newest = chain.newest
        for file in by_day.get((chain.root.uri, newest.cluster_id, newest.day), ()):
            if file.first is None or file.first <= newest.snapshot <= file.last:
                yield chain, file
