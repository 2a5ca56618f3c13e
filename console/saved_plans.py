"""Plans that are kept under the state directory before they are carried out: what resumes a run needs them."""

from __future__ import annotations

from pathlib import Path

from console.errors import InputError
from console.journal.journal import cluster_directory, make_directories
from console.journal.state_access import SHARED, records_access
from console.new_files import write_new
from console.plan_files import default_name
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
    directory = cluster_directory(cluster_id) / "plans"
    try:
        make_directories(directory, records_access())
    except OSError as error:
        raise InputError(
            f"{directory}: cannot be made: {error.strerror}; nothing was sent. {OTHER_PLACE}"
        ) from None
    return directory
