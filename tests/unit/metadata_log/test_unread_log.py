"""A metadata log of which nothing could be read is not known; it is no empty log."""

from __future__ import annotations

from typing import Any, cast

from backends.base.errors import NotAllowed
from backends.base.metadata_log import MetadataLogSource
from backends.base.protocol import Backend
from recovery.metadata_log.history import MetadataHistory
from recovery.model import Unknown, Why


class RefusedLog:
    """The log of a cluster that refuses Fetch to this caller."""

    simulated = False

    def __init__(self) -> None:
        self.history = MetadataHistory()
        self.membership = self

    async def open(self) -> str:
        return "cluster"

    async def metadata_log(self) -> RefusedLog:
        return self

    async def read(self, **_options: Any) -> None:
        raise NotAllowed("CLUSTER_ACTION", "the cluster", "call Fetch")


async def test_a_log_that_may_not_be_read_says_which_permission_is_missing() -> None:
    source = MetadataLogSource()
    why = await source.read(cast("Backend", RefusedLog()))
    assert (
        why
        == source.history
        == Unknown(Why.NOT_ALLOWED, "the metadata log needs CLUSTER_ACTION on the cluster")
    )
