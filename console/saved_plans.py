"""What is kept under the state directory beside the journal: plans, which a resume needs, and rescues."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

from console.errors import InputError
from console.journal.journal import cluster_directory, make_directories
from console.journal.state_access import SHARED, records_access
from console.new_files import write_new
from console.paths import cluster_name
from console.plan_files import default_name
from console.rescue.manifest import INDEX
from recovery.plan.values import Plan
from recovery.plan.write import to_json

OTHER_PLACE = "--state-dir or XDG_STATE_HOME names another place for the journal and the plans"


def save_plan(plan: Plan) -> Path:
    """Writes a plan of elections; returns where. Raises InputError."""
    path: Path = plans_directory(plan.header.cluster_id) / default_name(plan)
    write_new(path, to_json(plan))
    share_plan(path)
    return path


def share_plan(path: Path) -> None:
    """Lets everybody who may use the state directory read a plan that is kept there: they may have to resume it."""
    access = records_access()
    if access == SHARED:
        path.chmod(access.file_mode)


def plans_directory(cluster_id: str) -> Path:
    """Where the plans of a cluster are kept; made where it is not there. Raises InputError."""
    return _made(cluster_directory(cluster_id) / "plans")


def rescue_directory(plan: Plan) -> Path:
    """Where the console rescues what a plan's elections cut off: the same for the same plan, so that a later run
    continues it.

    Raises InputError.
    """
    header = plan.header
    made = header.made_at.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    return _made(_rescues(header.cluster_id)) / f"{made}-{cluster_name(header.plan_id)[:8]}"


def newest_rescue(cluster_id: str) -> Path | None:
    """The rescue of that cluster that was begun last, None if the state directory has none."""
    found = [path.parent for path in _rescues(cluster_id).glob(f"*/{INDEX}")]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def _rescues(cluster_id: str) -> Path:
    return cluster_directory(cluster_id) / "rescues"


def _made(directory: Path) -> Path:
    try:
        make_directories(directory, records_access())
    except OSError as error:
        raise InputError(
            f"{directory}: cannot be made: {error.strerror}; nothing was sent. {OTHER_PLACE}"
        ) from None
    return directory
