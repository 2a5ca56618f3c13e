"""Surveys for the tests, written as an operator would tell them."""

from __future__ import annotations

from recovery.model import (
    EpochSpan,
    Lineage,
    PartitionState,
    Replica,
    ReplicaLog,
    Standing,
    Survey,
    Unknown,
    Why,
)

SILENT = Unknown(Why.NOT_ANSWERED, "connection refused")
NO_READ = Unknown(Why.NOT_ALLOWED, "needs READ on topic t")


def log(*spans: tuple[int, int, int], leader_epoch: int = 4, start: int = 0) -> ReplicaLog:
    """A log of (epoch, start, end) spans."""
    epoch_spans = tuple(EpochSpan(*span) for span in spans)
    end = epoch_spans[-1].end if epoch_spans else start
    last = epoch_spans[-1].epoch if epoch_spans else -1
    return ReplicaLog(leader_epoch, end, start, 0, Lineage(last, epoch_spans, start))


def survey(
    logs: dict[int, ReplicaLog | Unknown],
    *,
    leader: int = -1,
    isr: tuple[int, ...] = (),
    elr: tuple[int, ...] | None = (),
    last_known_elr: tuple[int, ...] | None = (),
    standings: dict[int, Standing] | None = None,
    reassigning: bool | Unknown = False,
) -> Survey:
    """A partition whose replicas, in assignment order, answered (or not) with ``logs``.

    Who did not answer is fenced unless ``standings`` says otherwise.
    """
    known = standings or {}
    replicas = tuple(
        Replica(
            broker,
            known.get(broker, Standing.FENCED if isinstance(what, Unknown) else Standing.ELECTABLE),
            what,
        )
        for broker, what in logs.items()
    )
    offline = tuple(r.broker for r in replicas if r.standing is not Standing.ELECTABLE)
    state = PartitionState("t", 0, "id", leader, 4, tuple(logs), isr, elr, last_known_elr, offline)
    return Survey(state, replicas, 2, reassigning)
