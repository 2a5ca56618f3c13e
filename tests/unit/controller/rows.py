"""Kafka's own unit tests as rows of data: what a row means in the words of recovery.controller."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from recovery.controller.registration import LeaderRecoveryState, PartitionChange, Registration
from recovery.controller.rules import ControllerRules
from recovery.controller.transition_targets import ElectionKind, Proposal

VECTORS = Path(__file__).parents[2] / "vectors"

Row = dict[str, Any]


def rows(section: str) -> list[Row]:
    """The rows of one section of the vectors, in their order."""
    loaded: dict[str, list[Row]] = json.loads((VECTORS / "kafka-controller.json").read_text())
    return loaded[section]


def registration(row: Row) -> Registration:
    partition = row["partition"]
    return Registration(
        replicas=tuple(partition["replicas"]),
        isr=tuple(partition["isr"]),
        leader=partition["leader"],
        leader_epoch=partition["leaderEpoch"],
        partition_epoch=partition["partitionEpoch"],
        elr=tuple(partition["elr"]),
        last_known_elr=tuple(partition["lastKnownElr"]),
        leader_recovery_state=LeaderRecoveryState(partition["leaderRecoveryState"]),
        removing=tuple(partition["removing"]),
        adding=tuple(partition["adding"]),
    )


def proposal(row: Row) -> Proposal:
    def brokers(key: str) -> tuple[int, ...] | None:
        return tuple(row[key]) if key in row else None

    state = row.get("targetLeaderRecoveryState")
    return Proposal(
        acceptable=frozenset(row["acceptableLeaders"]),
        min_isr=row["minIsr"],
        election=ElectionKind(row["election"]),
        isr=brokers("targetIsr"),
        replicas=brokers("targetReplicas"),
        removing=brokers("targetRemoving"),
        adding=brokers("targetAdding"),
        leader_recovery_state=None if state is None else LeaderRecoveryState(state),
        unclean_shutdown=frozenset(row.get("uncleanShutdownReplicas", ())),
    )


def rules(row: Row) -> ControllerRules:
    """The shipped rules, with the switches that the row names.

    Kafka's ``useLastKnownLeaderInBalancedRecovery`` off is the recovery manager on: the members are recorded and
    none of them is elected without being asked.
    """
    last_leader = row["useLastKnownLeaderInBalancedRecovery"]
    return ControllerRules(
        elr=row["elrEnabled"],
        last_known_elr_members=not last_leader,
        leader_recovery=row.get("leaderRecoverySupported", True),
        leader_epoch_bump_on_isr_shrink=row.get("leaderEpochBumpOnIsrShrink", False),
    )


_ORDERED = {
    "leader": "leader",
    "isr": "isr",
    "replicas": "replicas",
    "removing": "removing",
    "adding": "adding",
}
_SETS = {"elr": "elr", "lastKnownElr": "last_known_elr"}


def as_row(change: PartitionChange | None) -> Row | None:
    """A change in the row's words: what is unchanged is absent, ELR and LastKnownELR are sets."""
    if change is None:
        return None
    row: Row = {key: getattr(change, field) for key, field in _ORDERED.items()}
    row |= {
        key: None if getattr(change, field) is None else set(getattr(change, field))
        for key, field in _SETS.items()
    }
    row["leaderRecoveryState"] = change.leader_recovery_state and change.leader_recovery_state.value
    return {key: value for key, value in row.items() if value is not None}


def expected(record: Row | None) -> Row | None:
    """An expected record in the same form."""
    if record is None:
        return None
    tuples = {key: tuple(value) if isinstance(value, list) else value for key, value in record.items()}
    return {key: set(value) if key in _SETS else value for key, value in tuples.items()}
