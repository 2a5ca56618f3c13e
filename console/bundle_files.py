"""A bundle: one file with a cluster as it was, for someone who has no access to it (docs/bundle.md).

    manifest.json                         what is in it, with sizes and checksums, and what was left out
    answers.json                          what the cluster answered (backends/recorded_answers.py)
    metadata-log/__cluster_metadata-0/…   a copy of its metadata log, without secrets
    metadata-log/meta.properties
    records/…                             the journal, plans and memory of the host that made the bundle
    evidence/…                            the scans of disks whose logs count in answers.json

Everything is checked when it is opened: what the manifest does not name, or has another checksum, is refused.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from backends.metadata_log.copied_log import CopiedMetadataLog, read_copy
from backends.metadata_log.directory import MetadataDirError
from backends.recorded_answers import RecordedAnswers, RecordedBackend
from console.errors import InputError
from console.new_files import whole_new_file
from console.paths import cluster_name
from recovery.model import Unknown, Why

SCHEMA = "ktriage.bundle-manifest/1"
MANIFEST, ANSWERS, METADATA_LOG, RECORDS = "manifest.json", "answers.json", "metadata-log", "records"
MOST_BYTES = 8 << 30
"""Of a member, unpacked: 200,000 partitions with three logs each take 0.3 GiB."""
_NAME = re.compile(r"[A-Za-z0-9._@=+-]+(/[A-Za-z0-9._@=+-]+)*")
_CHUNK = 1 << 20
_MANIFEST_BYTES = 16 << 20
_FIRST_DATE = (1980, 1, 1, 0, 0, 0)
"""Of every member, so that the same content is the same file."""


class BundleMember(NamedTuple):
    """A file of the bundle: its size in bytes and its checksum."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class BundleManifest:
    """``digest`` is the SHA-256 of manifest.json, and so of the whole bundle. ``left_out`` has one line for each
    thing that is not in it, and why.
    """

    cluster_id: str
    read_ms: int
    made_by: str
    tool_version: str
    members: tuple[BundleMember, ...]
    left_out: tuple[str, ...]
    digest: str = ""

    def to_json(self) -> str:
        """The text of manifest.json."""
        return json.dumps(
            {
                "schema": SCHEMA,
                "clusterId": self.cluster_id,
                "readMs": self.read_ms,
                "madeBy": self.made_by,
                "toolVersion": self.tool_version,
                "members": [member._asdict() for member in self.members],
                "leftOut": list(self.left_out),
            },
            indent=2,
        )


def pack(path: Path, directory: Path, head: BundleManifest) -> BundleManifest:
    """Makes the bundle ``path`` of every file under ``directory``; ``head`` has no members yet.

    Whatever happens, ``path`` is absent or whole. Raises InputError: it exists, or cannot be written.
    """
    files = sorted(file for file in directory.rglob("*") if file.is_file())
    members = tuple(_member(file, file.relative_to(directory).as_posix()) for file in files)
    manifest = replace(head, members=members)
    text = manifest.to_json()
    with whole_new_file(path) as beside:
        beside.unlink(missing_ok=True)  # what an earlier process of the same id left behind
        beside.touch(0o600, exist_ok=False)
        with beside.open("r+b") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr(_entry(MANIFEST), text)
                for member, source in zip(members, files, strict=True):
                    with source.open("rb") as data, archive.open(_entry(member.name), "w") as to:
                        shutil.copyfileobj(data, to, _CHUNK)
            file.flush()
            os.fsync(file.fileno())
    return _with_digest(manifest, text)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _FIRST_DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o600 << 16
    return entry


def _member(file: Path, name: str) -> BundleMember:
    with file.open("rb") as data:
        digest = hashlib.file_digest(data, "sha256").hexdigest()
    return BundleMember(name, file.stat().st_size, digest)


def _with_digest(manifest: BundleManifest, text: str) -> BundleManifest:
    return replace(manifest, digest=hashlib.sha256(text.encode()).hexdigest())


def read_manifest(path: Path) -> BundleManifest:
    """Raises InputError: the file is no bundle, or cannot be read."""
    with _opened(path) as archive:
        return _manifest(path, archive)


def open_bundle(path: Path) -> tuple[BundleManifest, RecordedBackend]:
    """The cluster that the bundle holds. Every member is compared with the manifest. Raises InputError."""
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415  # slow to import, for a bundle only

    with _opened(path) as archive:
        manifest = _manifest(path, archive)
        names = {member.name for member in manifest.members}
        if unnamed := sorted(set(archive.namelist()) - names - {MANIFEST}):
            raise InputError(f"{path}: has {unnamed[0]}, which its manifest does not name: it was changed")
        for name in names - {ANSWERS}:
            if not name.startswith(f"{METADATA_LOG}/"):  # compared below, while it is unpacked
                for _ in _chunks(path, archive, manifest, name):
                    pass
        try:
            answers = TypeAdapter(RecordedAnswers).validate_json(_checked(path, archive, manifest, ANSWERS))
        except ValidationError as error:
            where = ".".join(map(str, error.errors()[0]["loc"]))
            raise InputError(
                f"{path}: {ANSWERS} is not as this version of ktriage reads it ({where}); open it with version"
                f" {manifest.tool_version}"
            ) from None
        log = _metadata_log(path, archive, manifest)
    title = f"{manifest.cluster_id} in {path}"
    return manifest, RecordedBackend(answers, log, title)


def encoded_answers(answers: RecordedAnswers) -> bytes:
    """The content of answers.json."""
    from pydantic import TypeAdapter  # noqa: PLC0415  # as above

    return TypeAdapter(RecordedAnswers).dump_json(answers)


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except zipfile.BadZipFile:
        raise InputError(f"{path}: is no bundle of ktriage, or only a part of one") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None


def _manifest(path: Path, archive: zipfile.ZipFile) -> BundleManifest:
    try:
        info = archive.getinfo(MANIFEST)
        text = archive.open(info).read(_MANIFEST_BYTES).decode()
        found: Mapping[str, Any] = json.loads(text)
        if found["schema"] != SCHEMA:
            raise InputError(
                f"{path}: is a bundle of the format {found['schema']!r}, and this version of ktriage reads {SCHEMA}"
            )
        members = tuple(
            BundleMember(str(one["name"]), int(one["size"]), str(one["sha256"])) for one in found["members"]
        )
        manifest = BundleManifest(
            str(found["clusterId"]),
            int(found["readMs"]),
            str(found["madeBy"]),
            str(found["toolVersion"]),
            members,
            tuple(map(str, found["leftOut"])),
        )
    except (KeyError, TypeError, ValueError, RecursionError):
        raise InputError(f"{path}: is no bundle of ktriage: it has no {MANIFEST} that can be read") from None
    for member in members:
        if not _NAME.fullmatch(member.name) or ".." in member.name.split("/"):
            raise InputError(f"{path}: its manifest names {member.name!r}, which is no name of a member")
    return _with_digest(manifest, text)


def _checked(path: Path, archive: zipfile.ZipFile, manifest: BundleManifest, name: str) -> bytes:
    return b"".join(_chunks(path, archive, manifest, name))


def _chunks(path: Path, archive: zipfile.ZipFile, manifest: BundleManifest, name: str) -> Iterator[bytes]:
    """The member piece by piece. Raises InputError, even at the end: then nothing of it is to be used."""
    member = next((one for one in manifest.members if one.name == name), None)
    if member is None:
        raise InputError(f"{path}: has no {name}")
    changed = InputError(f"{path}: {name} is not what its manifest says: the file was changed or damaged")
    digest, size = hashlib.sha256(), 0
    try:
        with archive.open(name) as data:
            while chunk := data.read(_CHUNK):
                size += len(chunk)
                if size > min(member.size, MOST_BYTES):
                    raise changed
                digest.update(chunk)
                yield chunk
    except (KeyError, zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError):
        raise changed from None
    if (size, digest.hexdigest()) != (member.size, member.sha256):
        raise changed


def _metadata_log(
    path: Path, archive: zipfile.ZipFile, manifest: BundleManifest
) -> CopiedMetadataLog | Unknown:
    """As far as it is in the bundle. It is unpacked for the time of the reading: its reader reads directories."""
    names = [one.name for one in manifest.members if one.name.startswith(f"{METADATA_LOG}/")]
    if not names:
        why = next((line for line in manifest.left_out if line.startswith("metadata log")), "it was left out")
        return Unknown(Why.NOT_ASKED, why)
    with tempfile.TemporaryDirectory(prefix="ktriage-bundle-") as directory:
        for name in names:
            to = Path(directory) / name
            to.parent.mkdir(parents=True, exist_ok=True)
            with to.open("wb") as file:
                for chunk in _chunks(path, archive, manifest, name):
                    file.write(chunk)
        try:
            copy = read_copy(Path(directory) / METADATA_LOG, manifest.read_ms)
        except MetadataDirError as error:
            return Unknown(Why.FAILED, str(error).replace(directory, str(path)))
    return copy._replace(path=path / METADATA_LOG)


def unpack_records(path: Path) -> Path:
    """A new directory with journal, plans and memory, as they lie in a state directory; it is removed when the
    process ends. Raises InputError.
    """
    directory = Path(tempfile.mkdtemp(prefix="ktriage-bundle-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    with _opened(path) as archive:
        manifest = _manifest(path, archive)
        for member in manifest.members:
            if member.name.startswith(f"{RECORDS}/"):
                to = directory / cluster_name(manifest.cluster_id) / member.name.removeprefix(f"{RECORDS}/")
                to.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                to.write_bytes(_checked(path, archive, manifest, member.name))
    return directory
