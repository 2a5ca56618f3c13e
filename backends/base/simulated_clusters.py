"""The ids of simulated clusters. Those of real ones are 22 characters without a dot."""

from __future__ import annotations

from typing import NamedTuple

_PREFIX = "simulated."


class Rehearsal(NamedTuple):
    """A scenario by its name in a cluster id, and the seed that it ran with."""

    scenario: str
    seed: int


def simulated_id(scenario: str, seed: int) -> str:
    """The cluster id of that scenario; its name must not contain a dot."""
    return f"{_PREFIX}{scenario}.{seed}"


def is_simulated(cluster_id: str) -> bool:
    """Whether a cluster of that id is a simulated one."""
    return cluster_id.startswith(_PREFIX)


def rehearsal(cluster_id: str) -> Rehearsal | None:
    """What a simulated cluster was made of; None: it is a real one."""
    scenario, _, seed = cluster_id.removeprefix(_PREFIX).rpartition(".")
    if not is_simulated(cluster_id) or not scenario or not seed.isdecimal():
        return None
    return Rehearsal(scenario, int(seed))
