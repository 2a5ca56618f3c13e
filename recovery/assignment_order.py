"""Designated elections by the order of an assignment: when it must be rewritten, and when that cannot help.

Kafka's unclean election takes the first electable replica in assignment order if no ISR or ELR member can be
elected.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from recovery.model import PartitionState, Standing, TopicPartition


class WrittenOrder(NamedTuple):
    """A partition's assignment, and the order of it that is written for a designated election.

    ``replicas`` is the assignment to revert; ``order`` holds the same replicas, the designated leader
    first.
    """

    tp: TopicPartition
    topic_id: str
    replicas: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def leader(self) -> int:
        return self.order[0]


def needs_reorder(
    replicas: tuple[int, ...], order: tuple[int, ...], standings: Mapping[int, Standing]
) -> bool:
    """Whether the assignment must be rewritten so that Kafka's election follows ``order``.

    Kafka takes the first electable replica in assignment order. One that cannot be elected now may be back by the
    time of the election (a broker that is just starting), so the chosen leader has to stand before those too. Where
    a broker is not registered no assignment with it can be written, and those that can be elected now decide.
    """
    electable = [broker for broker in order if standings.get(broker) is Standing.ELECTABLE]
    present = [broker for broker in replicas if standings.get(broker) is Standing.ELECTABLE]
    if electable != present or Standing.UNREGISTERED in standings.values():
        return electable != present
    return replicas[0] != order[0]


def blocked_by_last_known_leader(state: PartitionState, standings: Mapping[int, Standing]) -> int | None:
    """The dead sole LastKnownELR member that keeps older controllers from electing (KAFKA-19522), or None."""
    if state.isr or state.elr or not state.last_known_elr or len(state.last_known_elr) != 1:
        return None
    member = state.last_known_elr[0]
    return None if standings.get(member) is Standing.ELECTABLE else member
