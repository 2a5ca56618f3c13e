"""``check`` says whether the controllers' log can be read from here, and where the controllers listen."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from backends.base.errors import NotAllowed
from backends.base.protocol import Backend
from console.reading import evidence_sources as sources
from recovery.model import Unknown, Why


class HangingQuorum:
    """A quorum that answers one question only once the other one was asked too."""

    def __init__(self, refused: NotAllowed | None = None) -> None:
        self.opened = 0
        self._refused = refused
        self._log_asked = asyncio.Event()
        self._voters_asked = asyncio.Event()

    async def open(self) -> str:
        self.opened += 1
        return "cluster"

    async def metadata_log(self) -> HangingQuorum:
        return self

    async def probe(self) -> None:
        self._log_asked.set()
        await self._voters_asked.wait()
        if self._refused is not None:
            raise self._refused

    async def describe(self) -> Any:
        self._voters_asked.set()
        await self._log_asked.wait()
        voter = SimpleNamespace(
            key=SimpleNamespace(id=100), endpoints=(SimpleNamespace(host="controller-100", port=9093),)
        )
        return SimpleNamespace(voters=SimpleNamespace(voters=(voter,)))


async def controllers_log(quorum: HangingQuorum) -> sources.FurtherSource:
    found = await sources.evidence_sources(cast("Backend", SimpleNamespace(membership=quorum)))
    return found[0]


async def test_the_voters_and_their_log_are_asked_at_once_over_one_opened_quorum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where no controller answers, an operator waits once and not twice."""
    monkeypatch.setattr(sources, "SECONDS", 1.0)
    quorum = HangingQuorum()
    source = await controllers_log(quorum)
    assert source.available is True
    assert source.needs.endswith("must be reachable (100 at controller-100:9093)")
    assert quorum.opened == 1


async def test_without_the_permission_it_still_says_where_the_controllers_listen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sources, "SECONDS", 1.0)
    refused = NotAllowed("CLUSTER_ACTION", "Cluster:kafka-cluster", "read the metadata log")
    source = await controllers_log(HangingQuorum(refused))
    assert isinstance(source.available, Unknown) and source.available.why is Why.NOT_ALLOWED
    assert source.needs.endswith("(100 at controller-100:9093)")
