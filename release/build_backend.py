"""The build backend that pyproject.toml names: setuptools, with all packages of the wheel below ``ktriage``.

In the repository ``console/cli/main.py`` is the module ``console.cli.main``. Other projects have packages of names
like ``console`` and ``pipeline``: in the wheel the same file is ``ktriage.console.cli.main``. A build copies the
packages into a scratch directory, below ``ktriage/``, puts ``ktriage.`` in front of what they import of each other,
and lets setuptools build a wheel there. Lines stay where they are: a traceback leads to the repository's file.

An editable installation (``make setup``) is setuptools' own, of the repository as it is.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import chdir, contextmanager
from email.parser import Parser
from gzip import GzipFile
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ROOT = Path(__file__).resolve().parents[1]
NAMESPACE = "ktriage"
PACKAGES = ("recovery", "backends", "widgets", "console", "pipeline")
PAGES = "docs"
"""What help and errors refer to."""
COMMIT = "console/commit.txt"
"""``console.provenance`` reads it."""
BESIDE = ("pyproject.toml", "README.md", "LICENSE")
"""What setuptools reads beside the packages."""
EARLIEST = "315532800"
"""1980-01-01, the first time that a zip file knows: of all files in a wheel, if SOURCE_DATE_EPOCH is not set."""

Settings = Mapping[str, Any] | None


class NotPackable(Exception):
    """A module that would not find its neighbours in the wheel; says which line, and what to write instead."""


def build_wheel(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    """The same tree gives the same wheel, to the byte. Raises NotPackable."""
    target, metadata = (
        Path(wheel_directory).resolve(),
        metadata_directory and Path(metadata_directory).resolve(),
    )
    with _scratch_tree():
        return str(build_meta.build_wheel(str(target), config_settings, metadata and str(metadata)))


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Settings = None) -> str:
    """The wheel's metadata alone. Raises NotPackable."""
    target = Path(metadata_directory).resolve()
    with _scratch_tree():
        return str(build_meta.prepare_metadata_for_build_wheel(str(target), config_settings))


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """What a wheel is built from, and no more. The same tree gives the same bytes. Raises NotPackable."""
    with TemporaryDirectory() as scratch:
        metadata = Path(
            scratch, prepare_metadata_for_build_wheel(scratch, config_settings), "METADATA"
        ).read_bytes()
    version = Parser().parsestr(metadata.decode("utf-8"), headersonly=True)["Version"]
    name = f"{NAMESPACE}-{version}"
    paths = (*BESIDE, *_packages((*PACKAGES, PAGES, "release")))
    files = {path: (ROOT / path).read_bytes() for path in paths}
    files[COMMIT] = f"{commit()}\n".encode()
    target = Path(sdist_directory) / f"{name}.tar.gz"
    with (
        target.open("wb") as written,
        GzipFile("", "wb", fileobj=written, mtime=int(EARLIEST)) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path, data in sorted({**files, "PKG-INFO": metadata}.items()):
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size, entry.mode, entry.mtime = len(data), 0o644, int(EARLIEST)
            archive.addfile(entry, BytesIO(data))
    return target.name


def _packages(names: Iterable[str]) -> Iterator[str]:
    """The paths of all files of these packages, from :data:`ROOT`."""
    for name in names:
        for path in sorted((ROOT / name).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(ROOT).as_posix()


@contextmanager
def _scratch_tree() -> Iterator[None]:
    """In a directory that has the tree of the wheel, and is removed afterwards."""
    os.environ.setdefault("SOURCE_DATE_EPOCH", EARLIEST)
    before = os.umask(0o022)
    try:
        with TemporaryDirectory(prefix="ktriage-build-") as scratch:
            lay_out(Path(scratch))
            with chdir(scratch):
                yield
    finally:
        os.umask(before)


def lay_out(scratch: Path) -> None:
    """Writes the tree of the wheel into an empty directory. Raises NotPackable."""
    product = scratch / NAMESPACE
    product.mkdir()
    (product / "__init__.py").write_text(
        f'"""{NAMESPACE}: the packages of the repository, below one name."""\n'
    )
    for path in _packages((*PACKAGES, PAGES)):
        _copy(path, product / path)
    (product / COMMIT).write_text(f"{commit()}\n", "ascii")
    (product / "__main__.py").write_bytes((product / "console/cli/__main__.py").read_bytes())
    for name in BESIDE:
        shutil.copyfile(ROOT / name, scratch / name)
    settings = scratch / "pyproject.toml"
    settings.write_text(_with_namespace_in_settings(settings.read_text("utf-8")), "utf-8")


def commit() -> str:
    """The commit of this tree, ``.dirty`` behind it where files that are packed are not as committed; of a source
    archive that is unpacked, the commit that it was made from. "" where nothing tells.
    """
    file = ROOT / COMMIT
    if not (ROOT / ".git").exists():
        return file.read_text("ascii").strip() if file.is_file() else ""
    try:
        head = _git("rev-parse", "--verify", "HEAD")
        changed = _git("status", "--porcelain", "--", *BESIDE, *PACKAGES, PAGES, "release")
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{head}.dirty" if changed else head


def _git(*words: str) -> str:
    command = ["git", *words]  # whichever git there is
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _copy(path: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.suffix == ".py":
        target.write_text(with_namespace((ROOT / path).read_text("utf-8"), path), "utf-8")
    else:
        target.write_bytes((ROOT / path).read_bytes())


def _with_namespace_in_settings(settings: str) -> str:
    """The entry points are modules of the wheel, and ``ktriage`` is its only package."""
    for name in PACKAGES:
        settings = settings.replace(f' = "{name}.', f' = "{NAMESPACE}.{name}.')
        settings = settings.replace(f'"{name}*"', f'"{NAMESPACE}*"')
    return settings


def with_namespace(source: str, where: str) -> str:
    """The module with ``ktriage.`` in front of what it imports of our packages. ``where``: its path, for errors.

    Raises NotPackable for a name of our modules that is not in a ``from`` import.
    """
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            _refuse(where, node, (alias.name for alias in node.names if _is_ours(alias.name)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            _refuse(where, node, [node.value] if _names_module(node.value) else [])
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and _is_ours(node.module or ""):
            line, begin = lines[node.lineno - 1], node.col_offset
            statement = f"from {node.module} import"
            if not line[begin:].startswith(statement):
                raise NotPackable(f"{where}:{node.lineno}: write {statement!r} with single spaces")
            lines[node.lineno - 1] = f"{line[:begin]}from {NAMESPACE}.{line[begin + len('from ') :]}"
    return "".join(lines)


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in PACKAGES


def _names_module(text: str) -> bool:
    """Whether a string is the dotted name of one of our modules, or the begin or the end of it is."""
    parts = text.partition(":")[0].strip(".").split(".")
    place = ROOT.joinpath(*parts)
    return len(parts) > 1 and _is_ours(text) and (place.is_dir() or place.with_suffix(".py").is_file())


def _refuse(where: str, node: ast.stmt | ast.expr, names: Iterable[str]) -> None:
    for name in names:
        raise NotPackable(
            f"{where}:{node.lineno}: {name} is {NAMESPACE}.{name} in the wheel: import it by"
            " 'from … import …', or make the name from __package__"
        )
