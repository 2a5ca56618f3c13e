"""Events: what changed between two snapshots in the quorum, the brokers and their log dirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.history.moment_columns import MomentColumns
from pipeline.history.packed_rows import FACTS, SCHEMAS, names_of
from pipeline.history.state_rows import encoded
from pipeline.tables.history_schemas import EVENTS, HISTORY_MARKS
from pipeline.tables.schemas import MOMENT, OBSERVATIONS, without_run
from recovery.arrays.nested_arrays import Array, fields, items, joined, lists, numbers, valid

OBSERVED = pa.schema([OBSERVATIONS.schema.field(name) for name in ("snapshot", "brokers", "quorum")])
"""What is read of an observation."""


def facts_of(batch: Any, moments: Mapping[str, int]) -> pa.Table:
    """What the observations of those snapshots say, as :data:`~pipeline.history.packed_rows.FACTS`."""
    moment = np.array([moments.get(name, -1) for name in batch["snapshot"].to_pylist()], np.int64)
    batch, moment = batch.filter(pa.array(moment >= 0)), moment[moment >= 0]
    return pa.concat_tables([_quorum_facts(batch["quorum"], moment), _broker_facts(batch["brokers"], moment)])


def facts_table(moment: Array, subject: Any, value: Any) -> pa.Table:
    """Facts from columns of one length."""
    columns = [pa.array(moment.astype(np.int32)), encoded(subject), encoded(value)]
    return pa.table(columns, schema=SCHEMAS[FACTS])


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


def known_facts(marks: pa.Table, continued: Mapping[str, int], moments: MomentColumns) -> pa.Table:
    """The facts of the marks of an earlier run, of those clusters, given with their numbers."""
    marks = marks.filter(pc.is_in(marks["cluster_id"], pa.array(list(continued), pa.string())))
    listed = items(marks["facts"].combine_chunks())
    parts = fields(listed.values)
    cluster = np.array([continued[name] for name in marks["cluster_id"].to_pylist()], np.int64)
    moment = moments.first[cluster[listed.owner]] + numbers(parts["number"], 0)
    found = facts_table(moment, parts["subject"], parts["value"])
    return found.filter(pa.array(valid(parts["number"])))
