"""The fixes of one cluster: which broker takes each new replica, as long as there is room, and in which order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import PipelineError
from pipeline.exposure.fix_candidates import PARTITION, TOPIC, Goal
from pipeline.tables.schemas import FIX
from recovery.arrays.nested_arrays import Array, numbers, truths
from recovery.heal_plan import BrokerRoom, BrokerSpace
from recovery.model import Broker
from recovery.replica_spread import spread_assignment

MOVE, EXTRA, MIN_ISR = "move", "extra replica", "min ISR"
COVERED, NOT_FIXED = "covered by min ISR", "not fixed"
"""The kinds of fixes, of partitions that a change of min ISR fixes, and of those that stay exposed."""

NO_ROOM = "no broker in another rack has room for it on every log dir"
OVER_LIMIT = "beyond the limits of this run"
MIXED = (
    "the partitions of its topic have different replication factors, so min.insync.replicas is not certain"
)
HIGHER = "min.insync.replicas is above its replication factor: with one replica more, acks=all would stop"

AHEAD = 2
"""How many times the limit of candidates is tried: for some of them no broker has room."""

_ORDER = [("saves", "ascending"), ("worth", "descending"), ("topic", "ascending"), ("partition", "ascending")]
"""What a failure takes completely first ("copies" before "writes"), then what saves most for each byte."""


class FixLimits(NamedTuple):
    """``goal``: what a failure has to leave. ``by_bytes``: a partition counts by the size of its log. ``tiers``:
    weights of topics by pattern, the first that matches counts. ``most``: partitions changed in each cluster;
    ``most_bytes``: copied in each cluster, None: any. ``lower_min_isr``: min ISR may be lowered to what stays 2 or
    more.
    """

    goal: Goal = Goal.WRITES
    by_bytes: bool = False
    tiers: tuple[tuple[str, float], ...] = ()
    most: int = 1000
    most_bytes: int | None = None
    lower_min_isr: bool = False

    @property
    def asked(self) -> dict[str, Any]:
        """For the row of a run."""
        return {
            "goal": self.goal.value,
            "weigh": "bytes" if self.by_bytes else "partitions",
            "tiers": [list(tier) for tier in self.tiers],
            "max_moves": self.most,
            "max_bytes": self.most_bytes,
            "lower_min_isr": self.lower_min_isr,
        }

    def weight(self, topic: str) -> float:
        """Of one partition, before its bytes count."""
        return next((value for pattern, value in self.tiers if fnmatchcase(topic, pattern)), 1.0)


def parsed_tiers(texts: Sequence[str]) -> tuple[tuple[str, float], ...]:
    """``payments-*=10``. Raises PipelineError."""
    found = []
    for text in texts:
        pattern, sign, value = text.rpartition("=")
        try:
            weight = float(value)
        except ValueError:
            weight = -1.0
        if not sign or not pattern or not 0 < weight < 1e9:
            raise PipelineError(f"--tier {text!r}: give topics and their weight, such as payments-*=10")
        found.append((pattern, weight))
    return tuple(found)


def broker_rooms(brokers: Sequence[Mapping[str, Any]]) -> Iterator[BrokerRoom]:
    """The brokers that are up and tell all their log dirs; one with a failed dir takes nothing."""
    for row in brokers:
        dirs = row["log_dirs"]
        if row["fenced"] or row["unanswered"] or not dirs or any(one["error"] is not None for one in dirs):
            continue
        if any(one["total_bytes"] is None or one["total_bytes"] < 0 for one in dirs):
            continue
        used = sum(one["total_bytes"] - one["usable_bytes"] for one in dirs)
        room = tuple((one["total_bytes"], one["usable_bytes"]) for one in dirs)
        broker = Broker(row["id"], row["host"] or "", row["port"] or -1, row["rack"], row["fenced"])
        yield BrokerRoom(broker, used, sum(one["replicas"] or 0 for one in dirs), room)


def fixes_of_cluster(rows: Any, brokers: Sequence[Mapping[str, Any]], limits: FixLimits) -> Any:
    """Every fix of a cluster, and what stays exposed and why, as a table of :data:`FIXES` without the run.

    ``rows``: its candidates and topics, a table of :data:`~pipeline.exposure.fix_candidates.CANDIDATES`.
    """
    topics = _TopicSettings.of(rows.filter(pc.equal(rows["kind"], TOPIC)))
    exposed = _judged(rows.filter(pc.equal(rows["kind"], PARTITION)), topics, limits)
    fixable = exposed.filter(pc.equal(exposed["why"], "")).sort_by(_ORDER)
    near = fixable.slice(0, AHEAD * limits.most)
    beyond = _constant(fixable.slice(AHEAD * limits.most), "why", OVER_LIMIT)
    left = pa.concat_tables([beyond, exposed.filter(pc.not_equal(exposed["why"], ""))])
    kind = pc.if_else(pc.equal(left["why"], COVERED), COVERED, NOT_FIXED)
    left = left.append_column("kind", kind).set_column(
        left.schema.get_field_index("why"), "why", pc.if_else(pc.equal(left["why"], COVERED), "", left["why"])
    )
    chosen = [*topics.fixes(limits, exposed), *_chosen(near.to_pylist(), brokers, limits)]
    cluster = rows["cluster_id"][0].as_py()
    table = pa.Table.from_pylist([row | {"cluster_id": cluster} for row in chosen], FIX)
    return pa.concat_tables([table, _conformed(left)])


class _TopicSettings(NamedTuple):
    """Of each topic the counts that decide about its min ISR; ``names`` in the order of the arrays."""

    names: Any
    partitions: Array
    least: Array
    most: Array
    left: Array
    factor: Array
    below: Array
    in_sync: Array

    @classmethod
    def of(cls, rows: Any) -> _TopicSettings:
        sums = [
            ("partitions", "sum"),
            ("min_isr", "min"),
            ("most_min_isr", "max"),
            ("left", "min"),
            ("least_replicas", "min"),
            ("below_factor", "any"),
            ("in_sync", "all"),
        ]
        found = rows.group_by("topic").aggregate(sums).sort_by("topic").combine_chunks()
        columns = [found[f"{name}_{how}"].combine_chunks() for name, how in sums]
        return cls(
            found["topic"].combine_chunks(), *(numbers(c, -1) for c in columns[:5]), *map(truths, columns[5:])
        )

    @property
    def raised(self) -> Array:
        """One replica alone may acknowledge, though with a min ISR of 2 no failure would stop acks=all."""
        alone = (self.least == 1) & (self.most == 1)
        raised: Array = alone & (self.factor >= 3) & (self.left >= 2) & self.in_sync
        return raised

    def lowered(self, limits: FixLimits) -> Array:
        """With one less, any failure leaves enough, and two replicas still acknowledge each record."""
        same = (self.least == self.most) & (self.least >= 3)
        asked = limits.lower_min_isr and limits.goal is Goal.WRITES
        lowered: Array = same & (self.left == self.least - 1) & asked
        return lowered

    def fixes(self, limits: FixLimits, exposed: Any) -> Iterator[dict[str, Any]]:
        """The changes of min ISR; they copy nothing."""
        covered = exposed.filter(pc.equal(exposed["why"], COVERED))["topic"].value_counts()
        saved = {one["values"]: one["counts"] for one in covered.to_pylist()}
        for at in np.flatnonzero(self.raised | self.lowered(limits)).tolist():
            topic = self.names[at].as_py()
            up = bool(self.raised[at])
            yield {
                "kind": MIN_ISR,
                "topic": topic,
                "bytes": 0,
                "saves": (Goal.COPIES if up else Goal.WRITES).value,
                "partitions": int(self.partitions[at]) if up else saved.get(topic, 0),
                "weight": limits.weight(topic),
                "min_isr": 2 if up else int(self.least[at]) - 1,
                "why": "",
            }


def _judged(rows: Any, topics: _TopicSettings, limits: FixLimits) -> Any:
    """With the weight and the rank of each, and what the settings of its topic say of more replicas."""
    at = numbers(pc.index_in(rows["topic"], topics.names).combine_chunks(), 0)
    least = numbers(rows["min_isr"].combine_chunks(), -1)
    full = least >= numbers(pc.list_value_length(rows["replicas"]).combine_chunks(), 0)
    below, most = topics.below[at], topics.most[at]
    why = rows["why"].combine_chunks()
    free = pc.equal(why, "").to_numpy(zero_copy_only=False)
    why = pc.if_else(pa.array(free & full & below & (most > least)), HIGHER, why)
    why = pc.if_else(pa.array(free & full & ~below & (topics.least[at] < most)), MIXED, why)
    why = pc.if_else(pa.array(topics.lowered(limits)[at]), COVERED, why)
    weights = np.array([limits.weight(name) for name in topics.names.to_pylist()])[at]
    size = np.maximum(numbers(rows["size"].combine_chunks(), 0), 1)
    copies = np.maximum(numbers(rows["copies"].combine_chunks(), 1), 1)
    value = weights * size if limits.by_bytes else weights
    columns = {
        "why": why,
        "weight": pa.array(value),
        "worth": pa.array(value / (copies * size)),
        # Only where min.insync.replicas may be above what the partition has replicas now.
        "pinned": pa.array(least, mask=~(full & ~below)),
        "saves": pc.if_else(pc.equal(rows["left"], 0), Goal.COPIES.value, Goal.WRITES.value),
    }
    columns_before = rows.drop_columns(["kind", "why"]).rename_columns({"replicas": "before"})
    return pa.table({name: columns_before[name] for name in columns_before.column_names} | columns)


def _chosen(
    candidates: Sequence[Mapping[str, Any]], brokers: Sequence[Mapping[str, Any]], limits: FixLimits
) -> Iterator[dict[str, Any]]:
    """The brokers for each new replica, the best first; why one gets none."""
    racks = {row["id"]: row["rack"] for row in brokers}
    spaces = {room.broker.id: BrokerSpace(room) for room in broker_rooms(brokers)}
    copied = place = 0
    for row in candidates:
        left = row["copies"] * row["size"] if limits.most_bytes is None else limits.most_bytes - copied
        if place == limits.most or left < row["copies"] * row["size"]:
            yield dict(row) | {"kind": NOT_FIXED, "why": OVER_LIMIT}
            continue
        need = 1 if limits.goal is Goal.COPIES else max(row["min_isr"], 1)
        after = spread_assignment(row["before"], row["size"], need, racks, spaces)
        if after is None:
            yield dict(row) | {"kind": NOT_FIXED, "why": NO_ROOM}
            continue
        place += 1
        size = row["size"] * len(set(after) - set(row["before"]))
        copied += size
        kind = EXTRA if len(after) > len(row["before"]) else MOVE
        yield dict(row) | {
            "kind": kind,
            "place": place,
            "after": after,
            "bytes": size,
            "min_isr": row["pinned"],
        }


def _constant(table: Any, name: str, value: str) -> Any:
    place = table.schema.get_field_index(name)
    return table.set_column(place, name, pa.repeat(value, table.num_rows))


def _conformed(table: Any) -> Any:
    columns = [
        table[field.name].cast(field.type)
        if field.name in table.column_names and field.name != "min_isr"
        else pa.nulls(table.num_rows, field.type)
        for field in FIX
    ]
    return pa.Table.from_arrays(columns, schema=FIX)
