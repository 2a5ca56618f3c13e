"""Reads a plan from a file, or from the result of a pipeline's run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from backends.live.client.daemon_thread import in_daemon_thread
from console.app.base.copy_and_export import given_path
from console.errors import InputError
from console.plan_file_checks import refuse_other_cluster
from console.plan_files import read_regular
from console.provenance import made_by
from recovery.plan.values import BarePlan, Plan


async def load(text: str, cluster_id: str) -> tuple[Plan | BarePlan, Path | None]:
    """The plan that the person named, and its file, None for a pipeline's result.

    Raises InputError if it is unreadable, or of another cluster. A cancel ends the wait, even if a read
    hangs.
    """
    given_up = threading.Event()
    try:
        return await in_daemon_thread(partial(_load, text, cluster_id, given_up.is_set), "plan file")
    finally:
        given_up.set()


def _load(text: str, cluster_id: str, given_up: Callable[[], bool]) -> tuple[Plan | BarePlan, Path | None]:
    path = given_path(text)
    # A run is rows of tables: its URI names no directory.
    if "://" in text or path.is_dir() or (path.parent / "runs" / "_delta_log").is_dir():
        return _from_result(text, cluster_id), None
    plan = read_regular(path, given_up)
    refuse_other_cluster(plan, cluster_id, path)
    return plan, path


def _from_result(text: str, cluster_id: str) -> Plan:
    """This cluster's plan of the newest result there. Raises InputError."""
    try:
        # Arrow is imported only for a result; it is not installed without the pipeline.
        from pipeline.errors import PipelineError  # noqa: PLC0415
        from pipeline.plan.result_to_plan import plan_of  # noqa: PLC0415
        from pipeline.results import read_result  # noqa: PLC0415
        from pipeline.storage import storage_path  # noqa: PLC0415
    except ImportError:
        raise InputError(f"{text}: reading a pipeline's result needs the extra: ktriage[spark]") from None
    try:
        where = storage_path(text if "://" in text else str(given_path(text)))
        return plan_of(read_result(where, "plan"), cluster_id, made_by())
    except PipelineError as error:
        raise InputError(str(error)) from None
