"""The version of this tool, and who makes a plan, when, and with which version."""

from __future__ import annotations

import getpass
import os
import platform
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from recovery.wording.quantity_text import time_text

if TYPE_CHECKING:
    from recovery.plan.values import Header
    from recovery.ranking import Ranking
    from recovery.strategy import Strategy


BUILT_FROM = "commit.txt"
"""The file beside this module that a build adds: the commit of its source."""
_SHOWN = 10


@cache
def version() -> str:
    """The version with the commit, as ``0.1.0+g4fa14caa00``; "unknown" in a tree that is not installed."""
    from importlib import metadata  # noqa: PLC0415  # costs more than most of what a command does

    try:
        release = metadata.version("ktriage")
    except metadata.PackageNotFoundError:
        return "unknown"
    source = commit()
    return f"{release}+g{source[:_SHOWN]}{DIRTY if source.endswith(DIRTY) else ''}" if source else release


DIRTY = ".dirty"
"""Behind a commit: the build had changes that are not in it."""


def commit() -> str:
    """The commit that this was built from, in a clone the one that is checked out (nothing tells of changes there);
    "" where neither is known.
    """
    loader = getattr(__spec__, "loader", None)
    with suppress(OSError, AttributeError):
        return str(loader.get_data(str(Path(__file__).with_name(BUILT_FROM))), "ascii").strip()  # type: ignore[union-attr]  # in a zip file too
    return checked_out(Path(__file__).parents[1])


def checked_out(root: Path) -> str:
    """The commit at the head of the clone at ``root``; "" where that is none, or cannot be read without git."""
    try:
        git = root / ".git"
        if git.is_file():  # a work tree beside its repository
            git = root / git.read_text("utf-8").partition(":")[2].strip()
        head = (git / "HEAD").read_text("utf-8").strip()
        if not head.startswith("ref: "):
            return head
        name = head.removeprefix("ref: ")
        shared = git / "commondir"
        common = git / shared.read_text("utf-8").strip() if shared.is_file() else git
        if (common / name).is_file():
            return (common / name).read_text("utf-8").strip()
        packed = (line.split() for line in (common / "packed-refs").read_text("utf-8").splitlines())
        return next((words[0] for words in packed if words[1:] == [name]), "")
    except (OSError, ValueError):
        return ""


class Recorded(NamedTuple):
    """The bundle that stands for the cluster: its digest, and when it was read (ms since 1970)."""

    digest: str
    read_ms: int


_recorded: list[Recorded] = []


def use_recorded(bundle: Recorded) -> bool:
    """Decides for the rest of the process: the time is the bundle's, and every plan from it is the same. Returns
    whether that is new.
    """
    before = list(_recorded)
    _recorded[:] = [bundle]
    return before != _recorded


def now() -> datetime:
    """The time of day, in UTC; of a bundle, when it was read."""
    return datetime.fromtimestamp(_recorded[0].read_ms / 1000, UTC) if _recorded else datetime.now(UTC)


def now_ms() -> int:
    """The same in ms since 1970."""
    return round(now().timestamp() * 1000)


def user() -> str:
    """Who runs this; the number where it has no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def made_by() -> str:
    """``USER@HOST``."""
    return f"{user()}@{platform.node()}"


def made_text(at_ms: int) -> str:
    """When and by whom a page was made."""
    return f"{time_text(at_ms)} by {made_by()}"


def plan_header(cluster_id: str, ranking: Ranking, strategy: Strategy, accepted: str = "") -> Header:
    """The header of a plan of elections that is made here and now; from a bundle, the same whoever makes the plan.
    ``accepted`` as in :class:`Header`.
    """
    from recovery.plan.values import Header  # noqa: PLC0415  # most commands make no plan

    digest = _recorded[0].digest if _recorded else ""
    named = f"ktriage:{digest}:{ranking}:{strategy}:{accepted}"
    return Header(
        plan_id=str(uuid.uuid5(uuid.NAMESPACE_URL, named) if digest else uuid.uuid4()),
        cluster_id=cluster_id,
        made_at=now(),
        made_by=f"bundle {digest[:16]}" if digest else made_by(),
        tool_version=version(),
        ranking=ranking,
        strategy=strategy,
        accepted=accepted,
    )
