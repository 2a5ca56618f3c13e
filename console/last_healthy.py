"""The last healthy state of a cluster, stored for an incident: the voters, and the replicas of each log dir."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from console.paths import cluster_name, memory_dir

FORMAT = 1


def remember(cluster_id: str, name: str, what: Mapping[str, object], root: Path | None = None) -> None:
    """Store ``what`` under ``name``, replacing what was there. Errors are ignored: no command may fail for it."""
    name_of_cluster = cluster_name(cluster_id)
    with contextlib.suppress(OSError, ValueError):
        directory = (root or memory_dir()) / name_of_cluster
        if not name_of_cluster:
            return
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = directory / f".{name}.{os.getpid()}.tmp"
        try:
            beside.write_text(json.dumps({"format": FORMAT, **what}), encoding="utf-8")
            beside.replace(directory / f"{name}.json")
        finally:
            beside.unlink(missing_ok=True)


def forget(cluster_id: str, name: str, root: Path | None = None) -> None:
    """Remove what was stored, if anything was."""
    with contextlib.suppress(OSError, ValueError):
        ((root or memory_dir()) / cluster_name(cluster_id) / f"{name}.json").unlink()


def clusters_known(root: Path | None = None) -> list[str]:
    """The directories of the clusters of which anything is stored; each has the name that :func:`recall` takes."""
    with contextlib.suppress(OSError, ValueError):
        return sorted(path.name for path in (root or memory_dir()).iterdir() if path.is_dir())
    return []


def recall(cluster_id: str, name: str, root: Path | None = None) -> Mapping[str, Any] | None:
    """What was stored; None if there is nothing, or it cannot be read."""
    with contextlib.suppress(OSError, ValueError):
        directory = (root or memory_dir()) / cluster_name(cluster_id)
        found = json.loads((directory / f"{name}.json").read_text(encoding="utf-8"))
        if isinstance(found, dict) and found.get("format") == FORMAT:
            return found
    return None
