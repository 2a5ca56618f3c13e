"""``__main__`` of ktriage.pyz: unpacks what the running Python needs, once, and starts ktriage from there.

Python 3.7 can read it, so that one that is too old gets a sentence and not a syntax error.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

BUILD = ""
"""Names the content; release.one_file writes it."""
NAME = f"cp{sys.version_info[0]}{sys.version_info[1]}"
OLDEST = (3, 11)


def main() -> None:
    """Runs ktriage."""
    if sys.version_info < OLDEST:
        sys.exit(f"ktriage needs Python 3.11 or newer; this is {sys.version_info[0]}.{sys.version_info[1]}")
    sys.path[0] = str(unpacked())
    import_module("ktriage.console.cli.entry").ktriage()


def unpacked() -> Path:
    """The folder with everything for this Python. Exits where there is no place for it."""
    for place in places():
        target = place / f"{BUILD}-{NAME}"
        try:
            place.mkdir(0o755, parents=True, exist_ok=True)
            if not is_own(place):
                continue
            if not target.is_dir():
                unpack(place, target)
            if is_own(target):
                return target
        except OSError:
            continue
    sys.exit(
        "ktriage: it cannot unpack itself: set XDG_CACHE_HOME to a directory of yours that can be written"
    )


def places() -> Iterator[Path]:
    """Where it may be unpacked: the first that can be written, or where it is already."""
    environment = os.environ
    if environment.get("XDG_CACHE_HOME"):
        yield Path(environment["XDG_CACHE_HOME"], "ktriage")
    elif environment.get("HOME"):
        yield Path(environment["HOME"], ".cache", "ktriage")
    for folder in (environment.get("XDG_RUNTIME_DIR"), environment.get("TMPDIR"), "/tmp", "/dev/shm"):  # noqa: S108  # is_own
        if folder:
            yield Path(folder, f"ktriage-{os.getuid()}")


def is_own(folder: Path) -> bool:
    """Whether nobody but this user, or root, can have written what is in it. Raises OSError."""
    found = folder.lstat()
    others = stat.S_IWGRP | stat.S_IWOTH
    return stat.S_ISDIR(found.st_mode) and found.st_uid in (0, os.getuid()) and not found.st_mode & others


def unpack(place: Path, target: Path) -> None:
    """Whole or not at all. Raises OSError."""
    import shutil  # noqa: PLC0415  # only the first run needs them
    import zipfile  # noqa: PLC0415

    scratch = Path(tempfile.mkdtemp(prefix=".new-", dir=str(place)))
    try:
        with zipfile.ZipFile(Path(__file__).resolve().parent) as outer:
            if f"{NAME}.zip" not in outer.namelist():
                sys.exit(f"ktriage: this file has no libraries for Python {sys.version.split()[0]}")
            for part in ("every.zip", f"{NAME}.zip"):
                with outer.open(part) as packed, zipfile.ZipFile(packed) as archive:
                    archive.extractall(scratch)
        scratch.chmod(0o755)  # nothing in it is secret, and root may unpack it for others
        try:
            scratch.rename(target)
        except OSError:
            if not target.is_dir():  # or else another process was first
                raise
    finally:
        shutil.rmtree(str(scratch), ignore_errors=True)


if __name__ == "__main__":
    main()
