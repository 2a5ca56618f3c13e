"""Finds the newest usable snapshots of each cluster and reads their rows; lists what could not be used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.errors import PipelineError
from pipeline.snapshot.catalog import BrokenManifest, Chain
from pipeline.snapshot.manifest import Manifest, SnapshotFile
from pipeline.snapshot.read_catalog import checked_roots, read_newest
from pipeline.snapshot_schema import TABLES, ddl, is_expected
from pipeline.storage import StoragePath


class RefusedSnapshot(NamedTuple):
    """A snapshot that could not be used, and why, in one line; ``rows`` is its number of rows, -1 if unknown."""

    cluster_id: str
    snapshot: str
    reason: str
    rows: int


@dataclass(frozen=True, slots=True)
class Sources:
    """The chain of each cluster, and the snapshots that could not be used."""

    chains: tuple[Chain, ...]
    refused: tuple[RefusedSnapshot, ...]

    @property
    def asked(self) -> dict[str, Any]:
        """The snapshots that a result was made from, for its manifest."""
        return {
            "clusters": {
                chain.full.cluster_id: [manifest.snapshot for manifest in chain.manifests]
                for chain in self.chains
            }
        }

    def snapshots(self) -> Iterator[tuple[StoragePath, Manifest]]:
        """Every snapshot of every chain, each with its root."""
        for chain in self.chains:
            yield from ((chain.root, manifest) for manifest in chain.manifests)

    def without(self, undecodable: Mapping[tuple[str, str], str]) -> Sources:
        """The clusters without any of those snapshots, given as (cluster, name) with their reasons. Raises
        PipelineError if there is none.
        """
        sound, refused = [], list(self.refused)
        for chain in self.chains:
            why = next((undecodable[m.identity] for m in chain.manifests if m.identity in undecodable), "")
            if why:
                newest = chain.newest
                refused.append(RefusedSnapshot(newest.cluster_id, newest.snapshot, why, newest.partitions))
            else:
                sound.append(chain)
        return _checked(Sources(tuple(sound), tuple(refused)))


def find(
    roots: Iterable[StoragePath], cluster_ids: Sequence[str] = (), at: datetime | None = None
) -> Sources:
    """Each cluster's newest complete state, or its state at that moment. Raises PipelineError if nothing can
    be used.
    """
    chains: list[Chain] = []
    refused: list[RefusedSnapshot] = []
    known: set[str] = set()
    for catalog in checked_roots(read_newest(root, cluster_ids, at) for root in roots):
        unusable = catalog.unusable(at)
        for cluster_id in sorted(catalog.clusters.keys() | unusable.keys()):
            known.add(cluster_id)
            chain, broken = catalog.chain(cluster_id, at), unusable.get(cluster_id)
            cut_off = catalog.cut_off(cluster_id, at)
            # An older state must not be mistaken for the current one.
            if broken is not None and (chain is None or broken.snapshot > chain.newest.snapshot):
                refused.append(RefusedSnapshot(*broken, -1))
            elif cut_off is not None:
                refused.append(RefusedSnapshot(*cut_off, -1)._replace(reason=_instead(cut_off, chain)))
            elif chain is None:
                oldest = catalog.clusters[cluster_id][0].taken_at
                reason = f"it has no whole snapshot that old: the oldest is of {oldest:%Y-%m-%dT%H:%M:%SZ}"
                refused.append(RefusedSnapshot(cluster_id, "", reason, -1))
            else:
                chains.append(chain)
    missing = [cluster_id for cluster_id in cluster_ids if cluster_id not in known]
    if missing:
        raise PipelineError(f"there is no snapshot of cluster {', '.join(missing)}")
    return _with_files(chains, refused)


def _instead(cut_off: BrokenManifest, chain: Chain | None) -> str:
    if chain is None:
        return cut_off.reason
    asked = chain.newest.taken_at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return f"{cut_off.reason}; --at {asked} is the newest whole one"


def _with_files(chains: list[Chain], refused: list[RefusedSnapshot]) -> Sources:
    """Reads the footer of every file: a broken file excludes its cluster and does not fail the job."""
    with ThreadPoolExecutor(8) as pool:
        problems = list(pool.map(problem, chains))
    for chain, why in zip(chains, problems, strict=True):
        if why:
            refused.append(
                RefusedSnapshot(chain.full.cluster_id, chain.newest.snapshot, why, chain.newest.partitions)
            )
    sound = tuple(chain for chain, why in zip(chains, problems, strict=True) if not why)
    return _checked(Sources(sound, tuple(refused)))


def _checked(sources: Sources) -> Sources:
    """The same sources. Raises PipelineError, with every reason, if they have no cluster."""
    if not sources.chains:
        raise PipelineError(
            "; ".join(f"cluster {one.cluster_id}: {one.reason}" for one in sources.refused)
            or "there is no usable snapshot"
        )
    return sources


def problem(chain: Chain) -> str:
    """Why the chain's files cannot be read, "" if they can."""
    return next(filter(None, (_problem(chain.root, manifest) for manifest in chain.manifests)), "")


def readable(
    root: StoragePath, manifests: Sequence[Manifest]
) -> tuple[tuple[Manifest, ...], tuple[RefusedSnapshot, ...]]:
    """The snapshots whose files can be read, and the others with the reason."""
    with ThreadPoolExecutor(8) as pool:
        problems = list(pool.map(lambda manifest: _problem(root, manifest), manifests))
    checked = list(zip(manifests, problems, strict=True))
    refused = (RefusedSnapshot(m.cluster_id, m.snapshot, why, m.partitions) for m, why in checked if why)
    return tuple(manifest for manifest, why in checked if not why), tuple(refused)


def _problem(root: StoragePath, manifest: Manifest) -> str:
    for part in manifest.parts:
        place = root / part.path
        try:
            why = _file_problem(place, part, manifest.version)
        except PipelineError as error:
            why = str(error)
        if why:
            return why
    return ""


def _file_problem(place: StoragePath, part: SnapshotFile, version: int) -> str:
    found = place.size()
    if found is None:
        return f"{place.uri}: the manifest names this file, and it is missing"
    if found != part.size:
        return f"{place.uri}: truncated or changed: {found:,} bytes, the manifest says {part.size:,}"
    try:
        with place.open() as file:
            parquet = pq.ParquetFile(file)
            schema, rows = parquet.schema_arrow, parquet.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        return f"{place.uri}: {str(error).splitlines()[0]}"
    if rows != part.rows:
        return f"{place.uri}: changed: {rows:,} rows, the manifest says {part.rows:,}"
    return _schema_problem(place, TABLES[part.table], schema, version)


def _schema_problem(place: StoragePath, expected: pa.Schema, schema: pa.Schema, version: int) -> str:
    for field in expected:
        index = schema.get_field_index(field.name)
        if index < 0 and not is_expected(field, version):
            continue
        if index < 0:
            return f"{place.uri}: the column {field.name} is missing"
        if not _is_readable(schema.field(index).type, field.type, version):
            return f"{place.uri}: the column {field.name} is {schema.field(index).type}, not {field.type}"
    return ""


def _is_readable(found: pa.DataType, expected: pa.DataType, version: int) -> bool:
    """Whether the types are equal, except for the names of list items, and for what is added to a struct."""
    if pa.types.is_list(expected):
        return bool(pa.types.is_list(found)) and _is_readable(found.value_type, expected.value_type, version)
    if pa.types.is_struct(expected):
        if not pa.types.is_struct(found):
            return False
        types = {field.name: field.type for field in found}
        return all(
            _is_readable(types[field.name], field.type, version)
            if field.name in types
            else not is_expected(field, version)
            for field in expected
        )
    return bool(found.equals(expected))


def frame(
    spark: Any,
    root: StoragePath,
    manifests: Sequence[Manifest],
    table: str = "partitions",
    schema: pa.Schema | None = None,
) -> Any:
    """The rows of those snapshots, with the directories as columns, which limit what is read; with another
    ``schema`` than the table's, only its columns.
    """
    directories = sorted({path.rsplit("/", 1)[0] for manifest in manifests for path in manifest.files(table)})
    columns = ddl(schema or TABLES[table], layout=True)
    if not directories:
        # A cluster without partitions has no such file.
        return spark.createDataFrame([], columns)
    reader = spark.read.schema(columns).option("basePath", (root / table).hadoop)
    return reader.parquet(*((root / directory).hadoop for directory in directories))


def together(
    spark: Any, parts: Iterable[tuple[StoragePath, Sequence[Manifest]]], table: str = "partitions"
) -> Any:
    """The rows of those snapshots (at least one), as :func:`frame` reads them: all clusters of a root at
    once.
    """
    roots: dict[str, tuple[StoragePath, list[Manifest]]] = {}
    for root, manifests in parts:
        roots.setdefault(root.uri, (root, []))[1].extend(manifests)
    return _union([frame(spark, root, manifests, table) for root, manifests in roots.values()])


def _union(frames: Sequence[Any]) -> Any:
    return reduce(lambda whole, other: whole.unionByName(other), frames)


def state(spark: Any, chains: Sequence[Chain], schema: pa.Schema | None = None) -> Any:
    """Every partition of every cluster at the end of its chain, without ``deleted`` ones.

    ``schema``: the columns that are read; None: all.
    """
    frames = []
    for root in {chain.root.uri: chain.root for chain in chains}.values():
        mine = [chain for chain in chains if chain.root is root]
        plain = [chain.full for chain in mine if not chain.changes]
        if plain:
            frames.append(frame(spark, root, plain, schema=schema))
        moving = [chain for chain in mine if chain.changes]
        if moving:
            frames.append(_merged(spark, root, moving, schema))
    return _union(frames)


KEY = ("cluster_id", "topic", "partition")


def _merged(spark: Any, root: StoragePath, chains: Sequence[Chain], schema: pa.Schema | None) -> Any:
    """The full rows without changes, and the newest row of each changed partition. The names sort by time."""
    from pyspark.sql import Window  # noqa: PLC0415  # an extra
    from pyspark.sql import functions as f  # noqa: PLC0415

    full = frame(spark, root, [chain.full for chain in chains], schema=schema)
    changes = frame(spark, root, [manifest for chain in chains for manifest in chain.changes], schema=schema)
    latest = Window.partitionBy(*KEY).orderBy(f.desc("snapshot"))
    newest = changes.withColumn("_place", f.row_number().over(latest)).where("_place = 1").drop("_place")
    untouched = full.join(newest.select(*KEY), list(KEY), "left_anti").select(*full.columns)
    return untouched.unionByName(newest.where("NOT coalesce(deleted, false)"))
