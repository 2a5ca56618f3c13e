"""A copied metadata log that an operator names."""

from __future__ import annotations

import time
from pathlib import Path

from backends.metadata_log.copied_log import CopiedMetadataLog, read_copy
from backends.metadata_log.directory import MetadataDirError
from console.errors import InputError


def read_metadata_dir(path: Path | None) -> CopiedMetadataLog | None:
    """The metadata log in that directory; None: none was named. Raises InputError."""
    return None if path is None else _read(path)


def read_cluster_on_disks(path: Path) -> CopiedMetadataLog:
    """The same, as all that there is of a cluster. Raises InputError, also where the cluster's id is not known."""
    found = _read(path)
    if not found.cluster_id:
        raise InputError(
            f"--metadata-dir {path}: the cluster's id is not known: copy meta.properties to {found.path.parent}, or"
            " name a cluster that runs"
        )
    return found


def _read(path: Path) -> CopiedMetadataLog:
    try:
        return read_copy(path, int(time.time() * 1000))
    except MetadataDirError as error:
        raise InputError(f"--metadata-dir {error}") from None
