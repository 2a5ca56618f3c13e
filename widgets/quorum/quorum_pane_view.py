"""The metadata quorum as this pane shows it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class QuorumRole(StrEnum):
    """A node's role in the quorum."""

    LEADER = "leader"
    VOTER = "voter"
    OBSERVER = "observer"
    CONTROLLER = "controller"
    """It has registered; whether it is a voter is unknown."""


class QuorumPaneRow(NamedTuple):
    """One voter or observer. ``lag`` in records behind the leader, ``fetched_s`` and ``caught_up_s`` in seconds
    ago; None where they are unknown. ``note`` says what is wrong with it ("ghost: removed, and still listed").
    """

    role: QuorumRole
    id: int
    directory_id: str
    log_end: int
    lag: int | None
    fetched_s: float | None
    caught_up_s: float | None
    endpoint: str = ""
    note: str = ""

    @property
    def key(self) -> tuple[int, str]:
        return self.id, self.directory_id


class VoterChangePreview(NamedTuple):
    """A change of the voters: what it is, whether it is possible, and why not, or what it would lead to."""

    name: str
    possible: bool
    why: str


@dataclass(frozen=True, slots=True)
class QuorumPaneView:
    """``verdict`` says how many more failures the set tolerates; ``healthy`` is False where that is none, or where
    it does not commit. ``high_watermark``, ``log_end`` and ``kraft_version`` are None where they are not known.
    """

    leader: int
    leader_epoch: int
    high_watermark: int | None
    log_end: int | None
    kraft_version: int | None
    members: tuple[QuorumPaneRow, ...]
    verdict: str
    healthy: bool
    changes: tuple[VoterChangePreview, ...] = ()
    notes: tuple[str, ...] = ()
