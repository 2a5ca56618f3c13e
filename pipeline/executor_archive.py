"""The archive that executors on other machines need: the packages of the jobs, without console and tests.

They also need Python and the libraries of the simulator (pydantic, PyYAML), and aiokafka for ``watch``.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from pipeline.storage import StoragePath

ROOMS = (
    "recovery",
    "backends/base",
    "backends/simulator",
    "backends/log_segments",
    "backends/metadata_log",
    "pipeline",
    "locked_jars",
)
SUFFIXES = frozenset({".py", ".yaml", ".lock"})
NAME = "ktriage-pipeline.zip"

_EPOCH = (1980, 1, 1, 0, 0, 0)


def build(out: StoragePath) -> tuple[StoragePath, int]:
    """Writes the archive into that directory; equal code gives equal bytes. Raises PipelineError."""
    root = Path(__file__).parent.parent
    names = ["backends/__init__.py"]
    for room in ROOMS:
        found = (path for path in (root / room).rglob("*") if path.suffix in SUFFIXES)
        names += sorted(path.relative_to(root).as_posix() for path in found)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            path = root / name
            if path.is_file():
                archive.writestr(zipfile.ZipInfo(name, _EPOCH), path.read_bytes(), zipfile.ZIP_DEFLATED)
    archive_place = out / NAME
    archive_place.write(buffer.getvalue())
    return archive_place, len(names)
