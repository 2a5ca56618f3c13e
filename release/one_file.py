"""``ktriage.pyz``: ktriage and its libraries in one file, for every Python that it supports.

Compiled libraries cannot be imported from a zip file, so that the file unpacks itself the first time it is run
(:mod:`release.unpack_and_run`): the libraries that any Python can use, and those compiled for the Python that runs.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

EVERY = "every"
"""The folder for every Python; the others are named as in wheels: cp312."""
_MOVED = re.compile(r"[^/]+\.data/(?:purelib|platlib)/")
_LEFT_OUT = re.compile(r"[^/]+\.data/")
_FIRST_TIME = (1980, 1, 1, 0, 0, 0)


def python_of(wheel: Path) -> str:
    """``cp312`` of a wheel that only CPython 3.12 can use, :data:`EVERY` of one that any can."""
    *_, python, abi, _platform = wheel.stem.split("-")
    return EVERY if abi in ("none", "abi3") else python


def write_one_file(target: Path, wheels: Iterable[Path]) -> None:
    """The same wheels give the same bytes."""
    packed: dict[str, dict[str, bytes]] = {}
    for wheel in sorted(wheels):
        packed.setdefault(python_of(wheel), {}).update(_files(wheel))
    archives = {f"{name}.zip": _zip(files) for name, files in sorted(packed.items())}
    digest = hashlib.sha256(b"".join(archives.values())).hexdigest()[:16]
    start = (Path(__file__).with_name("unpack_and_run.py")).read_text("utf-8")
    assert start.count("BUILD = ") == 1
    main = start.replace('BUILD = ""', f'BUILD = "{digest}"').encode()
    # The archives are packed already.
    outer = _zip({"__main__.py": main, **archives}, zipfile.ZIP_STORED)
    target.write_bytes(b"#!/usr/bin/env python3\n" + outer)
    target.chmod(0o755)


def _files(wheel: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            installed = _MOVED.sub("", name)
            if not name.endswith("/") and not _LEFT_OUT.match(installed):
                yield installed, archive.read(name)


def _zip(files: Mapping[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", compression, compresslevel=9) as archive:
        for name, data in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _FIRST_TIME)
            entry.external_attr, entry.compress_type = 0o644 << 16, compression
            archive.writestr(entry, data)
    return written.getvalue()
