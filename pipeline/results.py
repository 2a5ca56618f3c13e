"""Results: each run of a job has its own directory, and the manifest, which is written last, is the commit."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pipeline.errors import PipelineError
from pipeline.storage import StoragePath

FORMAT = "ktriage.result"
VERSION = 1
MANIFEST = "manifest.json"


class JobOutput(NamedTuple):
    """What a job has done. ``tables`` are directories with Parquet files below its own; ``asked`` is what was
    requested; ``summary`` is what the driver received. ``files``: the names of the files of a table that
    count; of a table without an entry, all count.
    """

    tables: tuple[str, ...]
    asked: Mapping[str, Any]
    summary: Mapping[str, Any]
    files: Mapping[str, tuple[str, ...]] = {}


@dataclass(frozen=True, slots=True)
class JobResult:
    """A finished run, below ``place``; for the other fields see :class:`JobOutput`."""

    place: StoragePath
    job: str
    made_at: datetime
    tool_version: str
    tables: tuple[str, ...]
    asked: Mapping[str, Any]
    summary: Mapping[str, Any]
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def table(self, name: str) -> StoragePath:
        """The directory of a table. Raises PipelineError if the run has no such table."""
        if name not in self.tables:
            raise PipelineError(f"{self.place.uri}: a result of {self.job}, without {name}")
        return self.place / name

    def paths(self, name: str) -> str | list[str]:
        """The table's directory, or those of its files that count. Raises PipelineError as :meth:`table`."""
        table = self.table(name)
        return [(table / file).path for file in self.files.get(name, ())] or table.path


def run_directory(out: StoragePath, job: str, now: datetime, token: str) -> StoragePath:
    """A new directory for a run; the names of runs sort by time."""
    return out / f"{job}-{now.astimezone(UTC).strftime('%Y%m%dT%H%M%S')}Z-{token}"


def commit(result: JobResult) -> JobResult:
    """Writes the manifest: from then on the result exists. Raises PipelineError."""
    fields = asdict(result) | {
        "format": FORMAT,
        "version": VERSION,
        "made_at": result.made_at.astimezone(UTC).isoformat(),
    }
    del fields["place"]
    (result.place / MANIFEST).write((json.dumps(fields, indent=1, sort_keys=True) + "\n").encode())
    return result


def read_result(place: StoragePath, job: str | None = None) -> JobResult:
    """The run in that directory, or the newest of ``job`` below it.

    A run that cannot be read is placed by its directory's name. If it may be the newest, PipelineError is
    raised, because an older run would be mistaken for the newest; if a newer one can be read, it is skipped.
    Also raises PipelineError if there is no run.
    """
    if (place / MANIFEST).exists():
        result = _read(place)
        if job is not None and result.job != job:
            raise PipelineError(f"{place.uri}: a result of {result.job}, not of {job}")
        return result
    sound, broken = _below(place)
    found = [one for one in sound if job in (None, one.job)]
    newest = max(found, key=lambda result: (result.made_at, result.place.name), default=None)
    for name, error in broken:
        named, moment = _job_and_moment(name)
        if named not in (None, job) and job is not None:
            continue
        if newest is None or moment is None or moment >= newest.made_at.replace(microsecond=0):
            raise error
    if newest is None:
        raise PipelineError(f"{place.uri}: no finished result{f' of {job}' if job else ''} is here")
    return newest


def read_results(place: StoragePath) -> tuple[JobResult, ...]:
    """Every finished run in or directly below that directory, oldest first. Raises PipelineError."""
    sound, broken = _below(place)
    for _, error in broken:
        raise error
    return tuple(sorted(sound, key=lambda result: result.made_at))


def _below(place: StoragePath) -> tuple[list[JobResult], list[tuple[str, PipelineError]]]:
    """The results that can be read there, and for the others the directory's name and the error."""
    sound: list[JobResult] = []
    broken: list[tuple[str, PipelineError]] = []
    for file in place.walk():
        if file.name == MANIFEST:
            above = StoragePath(
                file.files, file.path.rsplit("/", 1)[0], file.uri.rsplit("/", 1)[0], file.scheme
            )
            try:
                sound.append(_read(above))
            except PipelineError as error:
                broken.append((above.name, error))
    return sound, broken


_NAME = re.compile(r"(?P<job>\w+)-(?P<moment>\d{8}T\d{6})Z-\w+")


def _job_and_moment(name: str) -> tuple[str | None, datetime | None]:
    """What :func:`run_directory` wrote into the name; None if the name has another form."""
    parts = _NAME.fullmatch(name)
    if parts is None:
        return None, None
    try:
        moment = datetime.strptime(parts["moment"], "%Y%m%dT%H%M%S")
    except ValueError:
        return None, None
    return parts["job"], moment.replace(tzinfo=UTC)


def _read(place: StoragePath) -> JobResult:
    where = f"{place.uri}/{MANIFEST}"
    try:
        fields = json.loads((place / MANIFEST).read())
        version, known = fields["version"], fields["format"] == FORMAT
    except (ValueError, KeyError, TypeError) as error:
        raise PipelineError(f"{where}: broken ({error})") from None
    if not known:
        raise PipelineError(f"{where}: not a result of the pipeline")
    if type(version) is not int or version > VERSION:
        raise PipelineError(
            f"{where}: result format {version}; this version of ktriage reads up to {VERSION}"
        )
    try:
        return JobResult(
            place,
            fields["job"],
            datetime.fromisoformat(fields["made_at"]),
            fields["tool_version"],
            tuple(fields["tables"]),
            fields["asked"],
            fields["summary"],
            {name: tuple(files) for name, files in fields.get("files", {}).items()},
        )
    except (AttributeError, ValueError, KeyError, TypeError) as error:
        raise PipelineError(f"{where}: broken ({error})") from None
