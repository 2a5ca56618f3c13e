"""What the newest observation of each cluster tells besides its partitions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.snapshot.catalog import PARALLEL, files_by_day
from pipeline.snapshot.state_sources import Sources
from pipeline.tables.delta_table import DataFile, each_once, read_file
from pipeline.tables.schemas import OBSERVATIONS

_READ = pa.schema(
    [OBSERVATIONS.schema.field(name) for name in ("cluster_id", "snapshot", "brokers", "elr_enabled")]
)


def newest_observations(sources: Sources) -> dict[str, dict[str, Any]]:
    """By cluster id the ``brokers``, each as in :data:`pipeline.tables.schemas.BROKER`, and ``elr_enabled``. Raises
    PipelineError.

    Few rows are read, for which Spark would read the table's log and start a job.
    """
    found: dict[str, dict[str, Any]] = {
        one.full.cluster_id: {"brokers": [], "elr_enabled": None} for one in sources.chains
    }
    newest = {chain.newest.identity for chain in sources.chains}
    names = pa.array(sorted({snapshot for _, snapshot in newest}), pa.string())

    def rows(file: DataFile) -> list[dict[str, Any]]:
        read = read_file(file, _READ)
        chosen = read.filter(pc.is_in(read["snapshot"], value_set=names)).to_pylist()
        return [row for row in chosen if (row["cluster_id"], row["snapshot"]) in newest]

    with ThreadPoolExecutor(PARALLEL) as pool:
        for row in (row for mine in pool.map(rows, _files(sources)) for row in mine):
            found[row["cluster_id"]] = row | {"brokers": row["brokers"] or []}
    return found


def _files(sources: Sources) -> list[DataFile]:
    """The files that may have the newest observation of a cluster, each once."""
    roots = {chain.root.uri: chain.root for chain in sources.chains}
    by_day = {uri: files_by_day(root, OBSERVATIONS) for uri, root in roots.items()}
    return each_once(
        file
        for chain in sources.chains
        for file in by_day[chain.root.uri].get(chain.newest.day, ())
        if file.may_have(chain.newest.cluster_id)
        and (file.first is None or file.first <= chain.newest.snapshot <= file.last)
    )
