"""Events: what changed between two snapshots in the quorum, the brokers and their log dirs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.history.moment_columns import MomentColumns, names_of
from pipeline.history.state_rows import encoded
from pipeline.tables.history_schemas import EVENTS, HISTORY_MARKS
from pipeline.tables.schemas import MOMENT, without_run
from recovery.arrays.nested_arrays import Array, fields, items, joined, lists, numbers

FACTS = pa.schema([("moment", pa.int32()), ("subject", pa.string()), ("value", pa.string())])
"""What a snapshot, given as a moment, says of the quorum, a broker or a log dir."""


def facts_of(batches: Iterable[Any]) -> Iterator[Any]:
    """What observations say, with the cluster; they have its id, their ``moment``, ``brokers`` and ``quorum``."""
    for batch in batches:
        moment = numbers(batch["moment"], -1)
        facts = pa.concat_tables(
            [_quorum_facts(batch["quorum"], moment), _broker_facts(batch["brokers"], moment)]
        )
        cluster = dict(zip(moment.tolist(), batch["cluster_id"].to_pylist(), strict=True))
        names = pa.array([cluster[number] for number in facts["moment"].to_pylist()], pa.string())
        yield from facts.add_column(0, "cluster_id", names).combine_chunks().to_batches()


def facts_table(moment: Array, subject: Any, value: Any) -> pa.Table:
    """Facts from columns of one length."""
    columns = [pa.array(moment.astype(np.int32)), subject.cast(pa.string()), value.cast(pa.string())]
    return pa.table(columns, schema=FACTS)


def _quorum_facts(quorum: Any, moment: Array) -> pa.Table:
    rows = [(at, row) for at, row in zip(moment.tolist(), quorum.to_pylist(), strict=True) if row is not None]
    found: list[tuple[int, str, str | None]] = []
    for at, row in rows:
        leader = None if row["leader"] is None else str(row["leader"])
        voters = None if row["voters"] is None else _ids(row["voters"])
        known = row["unknown"] is None
        found += [
            (at, "quorum leader", leader if known else "unknown"),
            (at, "quorum voters", voters if known else "unknown"),
        ]
    at, subject, value = (list(column) for column in zip(*found, strict=True)) if found else ([], [], [])
    return facts_table(np.array(at, np.int64), pa.array(subject, pa.string()), pa.array(value, pa.string()))


def _ids(voters: list[dict[str, Any]]) -> str:
    return ", ".join(map(str, sorted(node["id"] for node in voters if node["id"] is not None)))


def _broker_facts(column: Any, moment: Array) -> pa.Table:
    brokers = items(column)
    parts = fields(brokers.values)
    silent = joined("did not answer: ", fields(parts["unanswered"])["why"])
    standing = pc.if_else(
        pc.fill_null(parts["fenced"], False),
        "fenced",
        pc.if_else(pc.is_valid(parts["unanswered"]), silent, "up"),
    )
    of_brokers = facts_table(moment[brokers.owner], joined("broker ", parts["id"]), standing)
    dirs = items(parts["log_dirs"])
    its = fields(dirs.values)
    broker = parts["id"].take(pa.array(dirs.owner))
    subject = joined("log dir ", its["path"], " of broker ", broker)
    state = pc.fill_null(joined("failed: ", its["error"]), "online")
    return pa.concat_tables([of_brokers, facts_table(moment[brokers.owner[dirs.owner]], subject, state)])


class FactChanges:
    """The facts of some clusters in order, each with the one before it of the same subject."""

    def __init__(self, facts: pa.Table, moments: MomentColumns) -> None:
        moment, subject = numbers(facts["moment"], -1), encoded(facts["subject"])
        cluster, code = moments.cluster_of(moment), numbers(subject.indices, -1)
        order = np.lexsort((moment, code, cluster))
        same = (np.diff(cluster[order]) == 0) & (np.diff(code[order]) == 0)
        self._moments = moments
        self._cluster, self._moment = cluster[order], moment[order]
        self._subject = subject.take(pa.array(order)).cast(pa.string())
        self._value = encoded(facts["value"]).take(pa.array(order)).cast(pa.string())
        self._follows, self._newest = (
            np.append(False, same)[: len(order)],
            np.append(~same, True)[: len(order)],
        )

    def events(self) -> pa.Table:
        """Where a value is another than before."""
        was = self._value.take(pa.array(np.arange(len(self._follows)) - self._follows))
        differs = pc.fill_null(pc.not_equal(was, self._value), False).to_numpy(zero_copy_only=False)
        at = np.flatnonzero(self._follows & differs)
        segment = self._moments.segment[self._moment]
        columns = [
            names_of(self._moments.clusters, self._cluster[at]).cast(pa.string()),
            pa.array(self._moments.at[self._moment[at]], MOMENT),
            *(column.take(pa.array(at)) for column in (self._subject, was, self._value)),
            pa.array(segment[at - 1] != segment[at]),
        ]
        return pa.table(columns, schema=without_run(EVENTS))

    def newest_of(self, clusters: Array) -> Any:
        """What is known last of each of those clusters, whose numbers ascend, in the form of the column
        ``facts`` of :data:`~pipeline.tables.history_schemas.HISTORY_MARKS`; null: nothing.
        """
        at = np.flatnonzero(self._newest & np.isin(self._cluster, clusters))
        cluster = self._cluster[at]
        number = self._moment[at] - self._moments.first[cluster]
        kind = HISTORY_MARKS.schema.field("facts").type.value_type
        parts = [
            self._subject.take(pa.array(at)),
            self._value.take(pa.array(at)),
            pa.array(number.astype(np.int32)),
        ]
        values = pa.StructArray.from_arrays(parts, fields=list(kind))
        owner = np.searchsorted(clusters, cluster)
        none = np.bincount(owner, minlength=len(clusters)) == 0
        return lists(owner, values, len(clusters), null=none)
