"""What can be known of a cluster beside the brokers' answers: each source, what it needs and what it adds."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from backends.base.errors import BackendError, NotAllowed
from backends.base.membership import Membership
from backends.base.protocol import Backend
from recovery.model import Unknown, Why

SECONDS = 10.0


class FurtherSource(NamedTuple):
    """``available`` from here: True, or why not; None where that is up to the files that are given."""

    name: str
    available: bool | Unknown | None
    needs: str
    adds: str


_LOG_ADDS = "what happened and when; since when a partition is offline; who was in the ISR then"


async def evidence_sources(backend: Backend) -> tuple[FurtherSource, ...]:
    """Asks the active controller for its log once; of the other sources it says what they need."""
    return (
        FurtherSource(
            "metadata log, from the active controller",
            await _log_available(backend),
            "CLUSTER_ACTION on the cluster; the controllers' listener must be reachable"
            + await _addresses(backend),
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


async def _addresses(backend: Backend) -> str:
    """Where the voters listen, as the end of a sentence; "" where the cluster does not tell."""
    membership: Membership | None = getattr(backend, "membership", None)
    if membership is None:
        return ""
    try:
        async with asyncio.timeout(SECONDS):
            await membership.open()
            voters = (await membership.describe()).voters.voters
    except (TimeoutError, BackendError):
        return ""
    found = [f"{voter.key.id} at {one.host}:{one.port}" for voter in voters for one in voter.endpoints]
    return f" ({', '.join(found)})" if found else ""


async def _log_available(backend: Backend) -> bool | Unknown:
    membership: Membership | None = getattr(backend, "membership", None)
    if membership is None:
        return Unknown(Why.NOT_OFFERED, "this cluster has no quorum that could be asked")
    try:
        async with asyncio.timeout(SECONDS):
            await membership.open()
            await (await membership.metadata_log()).probe()
    except TimeoutError:
        return Unknown(Why.NOT_ANSWERED, f"within {SECONDS:.0f} s")
    except NotAllowed as error:
        return Unknown(Why.NOT_ALLOWED, str(error))
    except BackendError as error:
        return Unknown(Why.NOT_ANSWERED, str(error))
    return True
