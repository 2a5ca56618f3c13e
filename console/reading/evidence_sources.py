"""What can be known of a cluster beside the brokers' answers: each source, what it needs and what it adds."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from backends.base.errors import BackendError, NotAllowed
from backends.base.membership import Membership
from backends.base.protocol import Backend
from recovery.model import Unknown, Why

SECONDS = 10.0
"""For the voters and for the log, which are asked at once: where no controller answers, neither is known."""


class FurtherSource(NamedTuple):
    """``available`` from here: True, or why not; None where that is up to the files that are given."""

    name: str
    available: bool | Unknown | None
    needs: str
    adds: str


_LOG_ADDS = "what happened and when; since when a partition is offline; who was in the ISR then"


async def evidence_sources(backend: Backend) -> tuple[FurtherSource, ...]:
    """Asks the active controller for its log once; of the other sources it says what they need."""
    available, addresses = await _controllers_log(backend)
    return (
        FurtherSource(
            "metadata log, from the active controller",
            available,
            f"CLUSTER_ACTION on the cluster; the controllers' listener must be reachable{addresses}",
            _LOG_ADDS,
        ),
        FurtherSource(
            "metadata log, from a disk",
            None,
            "__cluster_metadata-0 of any controller or broker: timeline --metadata-dir",
            f"{_LOG_ADDS}, also without a quorum",
        ),
        FurtherSource(
            "disk of a dead broker",
            None,
            "its log dirs, mounted anywhere: ktriage disk",
            "where its logs end",
        ),
    )


async def _controllers_log(backend: Backend) -> tuple[bool | Unknown, str]:
    """Whether the active controller's log can be read from here, or why not; and where the voters listen, as the
    end of a sentence: "" where the cluster does not tell.
    """
    membership: Membership | None = getattr(backend, "membership", None)
    if membership is None:
        return Unknown(Why.NOT_OFFERED, "this cluster has no quorum that could be asked"), ""
    deadline = asyncio.get_running_loop().time() + SECONDS
    try:
        async with asyncio.timeout_at(deadline):
            await membership.open()
    except (TimeoutError, BackendError) as error:
        return _why_not(error), ""
    return await asyncio.gather(_log_available(membership, deadline), _addresses(membership, deadline))


async def _log_available(membership: Membership, deadline: float) -> bool | Unknown:
    try:
        async with asyncio.timeout_at(deadline):
            await (await membership.metadata_log()).probe()
    except (TimeoutError, BackendError) as error:
        return _why_not(error)
    return True


async def _addresses(membership: Membership, deadline: float) -> str:
    try:
        async with asyncio.timeout_at(deadline):
            voters = (await membership.describe()).voters.voters
    except (TimeoutError, BackendError):
        return ""
    found = [f"{voter.key.id} at {one.host}:{one.port}" for voter in voters for one in voter.endpoints]
    return f" ({', '.join(found)})" if found else ""


def _why_not(error: TimeoutError | BackendError) -> Unknown:
    if isinstance(error, TimeoutError):
        return Unknown(Why.NOT_ANSWERED, f"within {SECONDS:.0f} s")
    why = Why.NOT_ALLOWED if isinstance(error, NotAllowed) else Why.NOT_ANSWERED
    return Unknown(why, str(error))
