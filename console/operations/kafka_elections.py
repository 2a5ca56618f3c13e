"""Preferred and unclean elections, as Kafka holds them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from backends.base.answers import Election, Outcome
from backends.base.protocol import Backend, Recorder
from console.operations.election_batches import SUCCESS
from console.operations.partition_selection import Selected
from console.signals import StopRequest


@dataclass(frozen=True, slots=True)
class Held:
    """Elections that were held. Of an election of all partitions Kafka tells only those that it touched."""

    elections: tuple[Election, ...]

    @property
    def counts(self) -> Mapping[Outcome, int]:
        return Counter(election.outcome for election in self.elections)

    @property
    def failures(self) -> tuple[Election, ...]:
        return tuple(election for election in self.elections if election.outcome not in SUCCESS)


async def hold(
    backend: Backend,
    selected: Selected,
    recorder: Recorder,
    *,
    preferred: bool,
    every: bool,
    stop: StopRequest,
) -> Held:
    """Elects the partitions selected, or all of the cluster (``every``). Raises BackendError."""
    partitions = None if every else [state.tp for state in selected.states]
    with stop.in_flight():
        return Held(await backend.elect(preferred, partitions, recorder))
