"""A voter change with its preflight, and what has become worse or different since it was shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from recovery.membership.preflight import EndpointProbe, PreflightResult
from recovery.membership.quorum import Quorum
from recovery.membership.voters import Voter, VoterEndpoint


class VoterChange(StrEnum):
    """The kind of voter change."""

    ADD = "add"
    REMOVE = "remove"


class RequestedVoter(NamedTuple):
    """What the operator named; the directory and the endpoints are looked up if they are not given."""

    node_id: int
    directory_id: str | None = None
    endpoints: tuple[VoterEndpoint, ...] = ()


@dataclass(frozen=True, slots=True)
class PreparedChange:
    """A change with its preflight; ``probes`` are the answers at the new voter's endpoints."""

    change: VoterChange
    given: RequestedVoter
    voter: Voter
    quorum: Quorum
    verdict: PreflightResult
    probes: tuple[EndpointProbe, ...] = ()

    @property
    def sentence(self) -> str:
        """The request to be sent."""
        if self.change is VoterChange.REMOVE:
            return f"remove voter {self.voter.key}"
        return f"add voter {self.voter.key} at {', '.join(map(str, self.voter.endpoints)) or 'no endpoint'}"


def differences(shown: PreparedChange, now: PreparedChange) -> str:
    """What has changed since a change was shown, in one line; "" if the change may be sent as it was shown.

    A voter that has come back since does not prevent the change.
    """
    return "; ".join(_differences(shown, now))


def _differences(shown: PreparedChange, now: PreparedChange) -> Iterator[str]:
    was, voter = shown.voter, now.voter
    if voter.key != was.key:
        yield f"node {was.key.id} was {was.key} and is {voter.key}"
    if voter.endpoints != was.endpoints:
        yield f"node {was.key.id} was at {_named(was.endpoints)} and is at {_named(voter.endpoints)}"
    before, after = (p.quorum.voters.keys for p in (shown, now))
    if set(before) != set(after):
        yield f"the voters were {_named(before)} and are {_named(after)}"
    yield from (f"{key} does not fetch any more, or is behind" for key in _lost(shown.verdict, now.verdict))
    yield from now.verdict.refused
    yield from (warning for warning in now.verdict.warnings if warning not in shown.verdict.warnings)


def _lost(shown: PreflightResult, now: PreflightResult) -> Iterator[object]:
    """The voters that were up and are now down."""
    return (key for key in now.before.down if key in shown.before.up)


def _named(values: tuple[object, ...]) -> str:
    return ", ".join(map(str, values)) or "nowhere"
