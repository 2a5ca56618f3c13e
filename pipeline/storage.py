"""Paths of data. Every path is a URI; a plain path is a file on this machine.

The driver and the tasks read files through pyarrow's file systems, ``deltalake`` writes through its own, and Spark
reads and writes through Hadoop's. All get the same path, each with its own scheme.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from pyarrow import fs

from pipeline.errors import PipelineError, one_line

_HERE = fs.LocalFileSystem()
_GLOBS = frozenset("*?{}[]")
_PLAIN = "/:@&=+,;~!$'()"
_HADOOP_SCHEMES = {"s3": "s3a", "gcs": "gs"}
_NEEDS = dict.fromkeys(
    ("hdfs", "viewfs"), " (this needs Hadoop here: HADOOP_HOME, JAVA_HOME, and CLASSPATH of its jars)"
)
_ARROW_SCHEMES = {"s3a": "s3", "s3n": "s3"}


@dataclass(frozen=True, slots=True)
class StoragePath:
    """A directory or file. ``uri`` is what the user gave, ``path`` is the path in its file system."""

    files: Any
    path: str
    uri: str
    scheme: str

    def __truediv__(self, name: str) -> StoragePath:
        return StoragePath(self.files, f"{self.path}/{name}", f"{self.uri}/{name}", self.scheme)

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]

    @property
    def hadoop(self) -> str:
        """The URI for Spark."""
        scheme, _, rest = self.uri.partition("://")
        return f"{_HADOOP_SCHEMES.get(scheme, scheme)}://{rest}"

    @property
    def delta(self) -> str:
        """The URI for ``deltalake``."""
        scheme, _, rest = self.uri.partition("://")
        return self.path if scheme == "file" else f"{_ARROW_SCHEMES.get(scheme, scheme)}://{rest}"

    def read(self) -> bytes:
        """The file's content. Raises PipelineError."""
        with _explained(self), self.files.open_input_stream(self.path) as stream:
            content: bytes = stream.read()
            return content

    def write(self, content: bytes) -> None:
        """Creates the file with that content, in one write. Raises PipelineError."""
        with _explained(self), self.create() as stream:
            stream.write(content)

    def make(self) -> None:
        """Creates the directory, and those above it. Raises PipelineError."""
        with _explained(self):
            self.files.create_dir(self.path, recursive=True)

    def reserve(self, size: int) -> None:
        """Raises PipelineError if nothing can be written into this directory, or not ``size`` bytes. Only a
        directory of this machine is tried.
        """
        if self.scheme != "file":
            return
        with _explained(self), TemporaryFile(dir=self.path) as file:
            os.posix_fallocate(file.fileno(), 0, size)

    def create(self) -> Any:
        """A new file for writing; directories above it are created. Raises PipelineError."""
        with _explained(self):
            self.files.create_dir(self.path.rsplit("/", 1)[0], recursive=True)
            return self.files.open_output_stream(self.path)

    def open(self) -> Any:
        """The file, opened for reading at any offset. Raises PipelineError."""
        with _explained(self):
            return self.files.open_input_file(self.path)

    def size(self) -> int | None:
        """The size in bytes, or None if there is no such file. Raises PipelineError."""
        with _explained(self):
            info = self.files.get_file_info(self.path)
        return info.size if info.is_file else None

    def exists(self) -> bool:
        """Whether the file or directory exists. Raises PipelineError."""
        with _explained(self):
            return bool(self.files.get_file_info(self.path).type != fs.FileType.NotFound)

    def directories(self) -> Iterator[StoragePath]:
        """The directories directly below, by path; empty if the directory does not exist. Raises PipelineError."""
        with _explained(self):
            found = self.files.get_file_info(fs.FileSelector(self.path, allow_not_found=True))
        for info in sorted(found, key=lambda info: str(info.path)):
            if info.type == fs.FileType.Directory:
                yield self / info.base_name

    def walk(self) -> Iterator[StoragePath]:
        """Every file below, by path; empty if the directory does not exist. Raises PipelineError."""
        return (file for file, _ in self.walk_sizes())

    def walk_sizes(self) -> Iterator[tuple[StoragePath, int]]:
        """Like :meth:`walk`, each file with its size in bytes."""
        with _explained(self):
            found = self.files.get_file_info(fs.FileSelector(self.path, recursive=True, allow_not_found=True))
        for info in sorted(found, key=lambda info: str(info.path)):
            if info.is_file:
                below = info.path[len(self.path) :]
                yield StoragePath(self.files, info.path, self.uri + below, self.scheme), info.size

    def above(self) -> Iterator[StoragePath]:
        """The directories that it is in, nearest first."""
        path, uri = self.path, self.uri
        while "/" in path:
            path, uri = path.rsplit("/", 1)[0], uri.rsplit("/", 1)[0]
            if path:
                yield StoragePath(self.files, path, uri, self.scheme)

    def remove(self) -> None:
        """Removes the directory or file, if it is there. Raises PipelineError."""
        with _explained(self):
            kind = self.files.get_file_info(self.path).type
            if kind == fs.FileType.Directory:
                self.files.delete_dir(self.path)
            elif kind == fs.FileType.File:
                self.files.delete_file(self.path)


@contextmanager
def _explained(place: StoragePath) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise PipelineError(f"{place.uri}: {one_line(error)}") from None


_FILE = re.compile(r"file:(?://(?:localhost)?(?=/)|(?=/(?!/)))")
"""The prefixes of a URI of this machine (RFC 8089, section 2 and appendix B)."""


def _local(text: str) -> str:
    """The path. Raises PipelineError for a file of another machine."""
    path = _FILE.sub("", text, count=1)
    if path.startswith("file:"):
        raise PipelineError(f"{text}: a file URI names an absolute path on this machine: file:///lake")
    return path


def storage_path(text: str) -> StoragePath:
    """The directory or file of a URI or path. Raises PipelineError for an unknown scheme or a pattern."""
    if not text.strip():
        raise PipelineError(f"{text!r} is not a directory or a URI: give one")
    if set(text) & _GLOBS:
        raise PipelineError(f"{text}: *, ?, {{}} and [] would be patterns for Spark; use a path without them")
    scheme, sign, rest = text.partition("://")
    if not sign or scheme == "file":
        path = str(Path(_local(text)).absolute()).rstrip("/")
        return StoragePath(_HERE, path, f"file://{path}", "file")
    try:
        # Hadoop reads "%" and blanks literally; Arrow would read them as escapes.
        files, path = fs.FileSystem.from_uri(
            f"{_ARROW_SCHEMES.get(scheme, scheme)}://{quote(rest, safe=_PLAIN)}"
        )
    except (OSError, ValueError, pa.ArrowException) as error:
        raise PipelineError(f"{text}: {one_line(error)}{_NEEDS.get(scheme, '')}") from None
    return StoragePath(files, path.rstrip("/"), text.rstrip("/"), scheme)
