"""What has become worse or different since a voter change was shown to the operator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from recovery.membership.preflight import PreflightResult

if TYPE_CHECKING:
    from console.operations.voters.voter_change import PreparedChange


def moved(shown: PreparedChange, now: PreparedChange) -> str:
    """What has changed since, in one line; "" if the change may be sent as it was shown.

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
