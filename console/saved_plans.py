"""Plans that are kept under the state directory before they are carried out: what resumes a run needs them."""

from __future__ import annotations

from pathlib import Path

from console.errors import InputError
from console.journal.journal import cluster_directory
from console.planfile import default_name, write_new
from recovery.plan.values import Plan
from recovery.plan.write import to_json

OTHER_PLACE = "XDG_STATE_HOME names another place for the journal and the plans"


def save_plan(plan: Plan) -> Path:
    """Writes a plan of elections; returns where. Raises InputError."""
    path: Path = plans_directory(plan.header.cluster_id) / default_name(plan)
    write_new(path, to_json(plan))
    return path


def plans_directory(cluster_id: str) -> Path:
    """Where the plans of a cluster are kept; made where it is not there. Raises InputError."""
    directory = cluster_directory(cluster_id) / "plans"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{directory}: cannot be made: {error.strerror}; nothing was sent. {OTHER_PLACE}"
        ) from None
    return directory
