"""The reasons of decisions, with the same words as :mod:`recovery.strategy`, for many rows at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recovery.arrays.nested_arrays import Array, fields, joined, lists, text, thousands
from recovery.arrays.replica_columns import RankedReplicas, ReplicaColumns
from recovery.ranking import Ranking
from recovery.wording.decision_text import REASSIGNING
from recovery.wording.replica_text import STANDING_WORDS

REPORT_ONLY = "strategy none: nothing is elected"

_STANDINGS = pa.array([standing.value for standing in STANDING_WORDS])


def elected(replicas: ReplicaColumns, ranked: RankedReplicas, rows: Array, ranking: Ranking) -> Any:
    """Why the best replica is elected."""
    what = "last record's epoch" if ranking is Ranking.LAST_RECORD else "leader epoch"
    answered_count = np.bincount(replicas.owner[ranked.order], minlength=replicas.rows)[rows]
    best = ranked.best[rows]
    return joined(
        "best of ",
        answered_count,
        " of ",
        replicas.sizes[rows],
        f" that answered: {what} ",
        ranked.epoch[best],
        ", log end ",
        thousands(replicas.log_end[best]),
    )


def nobody(replicas: ReplicaColumns, ranked: RankedReplicas, rows: Array) -> Any:
    """Why nobody can be elected."""
    place = np.full(replicas.rows, -1)
    place[rows] = np.arange(len(rows))
    among = ranked.order[place[replicas.owner[ranked.order]] >= 0]
    standing = replicas.columns["standing"].take(pa.array(among))
    words = pa.array(list(STANDING_WORDS.values())).take(pc.index_in(standing, value_set=_STANDINGS))
    each = joined(replicas.broker[among], " is ", words)
    states = pc.binary_join(lists(place[replicas.owner[among]], each, len(rows)), ", ")
    any_answered = pc.not_equal(states, "")
    answered = joined("no replica that answered can be elected: ", states)
    return pc.if_else(any_answered, answered, "no replica answered")


def lineage_missing(replicas: ReplicaColumns, refused: Array) -> Any:
    """Why the ranking last-record refuses; ``refused``: the replicas because of which it does."""
    unknown = fields(replicas.columns["lineage_unknown"].take(pa.array(refused)))
    return joined(
        pc.fill_null(unknown["why"], ""),
        ": the last record's epoch on broker ",
        replicas.broker[refused],
        " (",
        pc.fill_null(unknown["detail"], ""),
        "); last-record needs it, and length alone can destroy acknowledged records",
    )


def reassigning(unknown: Any) -> Any:
    """Why nobody is elected for a partition that is, or may be, reassigned."""
    why, detail = (pc.fill_null(fields(unknown)[name], "") for name in ("why", "detail"))
    cause = pc.if_else(pc.equal(detail, ""), why, joined(why, ": ", detail))
    doubt = joined("whether a reassignment is in progress is not known (", cause, ")")
    return pc.if_else(unknown.is_valid(), doubt, REASSIGNING)


def led_by(leader: Array) -> Any:
    return joined("led by ", leader)


def names(brokers: Any, last: str) -> Any:
    """Lists of brokers as text, as :mod:`recovery.wording.quantity_text` joins them; ``last``: "and" or "or"."""
    each = pa.ListArray.from_arrays(brokers.offsets, text(brokers.values))
    return pc.replace_substring_regex(pc.binary_join(each, ", "), ", ([^,]*)$", rf" {last} \1")
