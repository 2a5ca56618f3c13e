"""Where a plan comes from: a file, or the result of a pipeline's run."""

from __future__ import annotations

import platform
from pathlib import Path

from console.app.takeaway import given_path
from console.cli.planning import refuse_other_cluster
from console.cli.recording import user
from console.errors import InputError
from console.planfile import read
from recovery.plan.values import BarePlan, Plan


def is_result(text: str) -> bool:
    """Whether that names a pipeline's result: a directory, or a place elsewhere."""
    return "://" in text or given_path(text).is_dir()


def from_file(path: Path, cluster_id: str) -> Plan | BarePlan:
    """Raises InputError: unreadable, or of another cluster."""
    plan = read(path)
    refuse_other_cluster(plan, cluster_id, path)
    return plan


def from_result(text: str, cluster_id: str) -> Plan:
    """This cluster's plan of the newest result there. Raises InputError."""
    try:
        # Arrow is for those who bring a result; whoever has no pipeline installed has none.
        from pipeline.errors import PipelineError  # noqa: PLC0415
        from pipeline.places import place  # noqa: PLC0415
        from pipeline.plan.result import plan_of  # noqa: PLC0415
        from pipeline.results import read_result  # noqa: PLC0415
    except ImportError:
        raise InputError(f"{text}: reading a pipeline's result needs the extra: ktriage[spark]") from None
    try:
        where = place(text if "://" in text else str(given_path(text)))
        return plan_of(read_result(where, "plan"), cluster_id, f"{user()}@{platform.node()}")
    except PipelineError as error:
        raise InputError(str(error)) from None
