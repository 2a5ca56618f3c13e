"""The version of this tool, and who makes a plan, when, and with which version."""

from __future__ import annotations

import getpass
import os
import platform
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recovery.plan.values import Header
    from recovery.ranking import Ranking
    from recovery.strategy import Strategy


def version() -> str:
    """The version, or "unknown" when it runs from a tree that is not installed."""
    from importlib import metadata  # noqa: PLC0415  # costs more than most of what a command does

    try:
        return metadata.version("ktriage")
    except metadata.PackageNotFoundError:
        return "unknown"


def now() -> datetime:
    """The time of day, in UTC."""
    return datetime.now(UTC)


def user() -> str:
    """Who runs this; the number where it has no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def made_by() -> str:
    """``USER@HOST``."""
    return f"{user()}@{platform.node()}"


def plan_header(cluster_id: str, ranking: Ranking, strategy: Strategy, accepted: str = "") -> Header:
    """The header of a plan of elections that is made here and now. ``accepted`` as in :class:`Header`."""
    from recovery.plan.values import Header  # noqa: PLC0415  # most commands make no plan

    return Header(
        plan_id=str(uuid.uuid4()),
        cluster_id=cluster_id,
        made_at=now(),
        made_by=made_by(),
        tool_version=version(),
        ranking=ranking,
        strategy=strategy,
        accepted=accepted,
    )
