"""Pieces of Spark SQL that the rules are written with.

Everything is an expression over one row's nested replicas: a partition is never taken apart into rows, so nothing
is shuffled, and one topic of a million partitions is as many tasks as it has row groups.
"""

from __future__ import annotations

from itertools import count
from typing import NamedTuple

NO_SPANS = "cast(array() as array<struct<epoch: int, start: bigint, end: bigint>>)"
NO_BROKERS = "cast(array() as array<int>)"

_names = count()


def fresh(stem: str) -> str:
    """A name for a lambda's variable that no other has: SQL would take the inner one of two alike."""
    return f"{stem}_{next(_names)}"


def text(value: str) -> str:
    """A string in SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


class Let(NamedTuple):
    """A name for a value inside a lambda, where SQL has no other way: ``let.within(body)``."""

    name: str
    value: str

    def within(self, body: str) -> str:
        return f"transform(array({self.value}), {self.name} -> {body})[0]"


def let(stem: str, value: str) -> Let:
    """``value`` is worked out once, and the body uses the name."""
    return Let(fresh(stem), value)


def span(epoch: str, start: str, end: str) -> str:
    return f"named_struct('epoch', {epoch}, 'start', {start}, 'end', {end})"


def clip(spans: str, low: str, high: str) -> str:
    """What of the spans lies from ``low`` up to ``high`` (:func:`recovery.loss._clip`)."""
    s = fresh("s")
    cut = span(f"{s}.epoch", f"greatest({s}.start, {low})", f"least({s}.end, {high})")
    return f"filter(transform({spans}, {s} -> {cut}), {s} -> {s}.start < {s}.end)"


def union(spans: str) -> str:
    """The spans joined per epoch, overlaps counted once (:func:`recovery.loss.union`)."""
    acc, s = fresh("acc"), fresh("s")
    last = f"{acc}[size({acc}) - 1]"
    joined = span(f"{s}.epoch", f"{last}.start", f"greatest({last}.end, {s}.end)")
    touches = f"size({acc}) > 0 AND {last}.epoch = {s}.epoch AND {s}.start <= {last}.end"
    grown = f"concat(slice({acc}, 1, size({acc}) - 1), array({joined}))"
    return (
        f"aggregate(array_sort({spans}), {NO_SPANS},"
        f" ({acc}, {s}) -> CASE WHEN {touches} THEN {grown} ELSE concat({acc}, array({s})) END)"
    )


def length(spans: str) -> str:
    """How many offsets the spans hold (:func:`recovery.loss.count`)."""
    total, s = fresh("n"), fresh("s")
    return f"aggregate({spans}, 0L, ({total}, {s}) -> {total} + {s}.end - {s}.start)"


def names(brokers: str, between: str = " and ") -> str:
    """The brokers' ids as part of a sentence."""
    return f"array_join(transform({brokers}, b -> cast(b AS string)), '{between}')"
