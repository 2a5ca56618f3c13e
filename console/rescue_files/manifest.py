"""The two JSON files of a rescue directory: ``rescue.json`` of the whole, ``manifest.json`` of each branch.

Their schemas are documented in docs/files.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from backends.log_segments.segment_source import SegmentError, SegmentFile
from console.errors import InputError
from console.paths import topic_name
from recovery.model import EpochSpan, TopicPartition
from recovery.rescue_branches import STRAY_MARK, BranchPart, RescueBranch, UnreadReplica

LARGEST = 1 << 28
"""Bytes of a file that is read at all: the JSON of 200,000 partitions takes less."""


def read_regular(path: Path) -> bytes:
    """The whole file. Raises InputError: it is no regular file, is larger than LARGEST, or cannot be read."""
    try:
        with SegmentFile(path) as file:
            if file.size > LARGEST:
                raise InputError(f"{path}: too large: it has {file.size:,} bytes")
            return file.read(0, file.size)
    except SegmentError as error:
        raise InputError(str(error)) from None


T = TypeVar("T")

INDEX = "rescue.json"
MANIFEST = "manifest.json"
SCHEMA = "ktriage.rescue/1"
BRANCH_SCHEMA = "ktriage.rescue-branch/1"
_INT32, _INT64 = (1 << 31) - 1, (1 << 63) - 1
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
SEGMENT_NAME = re.compile(r"\d{20}\.log")


@dataclass(frozen=True, slots=True)
class RescueHeader:
    """For which plan of which cluster a rescue is, who made it, when (ISO 8601, UTC) and with which version.

    Plan and digest are "" where disks were compared with the leaders of now.
    """

    cluster_id: str
    plan_id: str
    plan_digest: str
    made_at: str
    made_by: str
    tool_version: str


class SegmentEntry(NamedTuple):
    """One segment file: the offsets of its batches (``next_offset`` exclusive), its bytes and their SHA-256."""

    name: str
    first_offset: int
    next_offset: int
    batches: int
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class BranchManifest:
    """One branch as it was read. ``whole``: every offset that the replica held was read; else ``problem`` says why
    not, and the segments hold what came before. ``read_at`` is when the reading ended.
    """

    header: RescueHeader
    branch: RescueBranch
    whole: bool
    read_at: str
    segments: tuple[SegmentEntry, ...]
    problem: str | None = None

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)


@dataclass(frozen=True, slots=True)
class RescueIndex:
    """What a rescue directory is meant to hold, and the replicas that could not be read."""

    header: RescueHeader
    branches: tuple[RescueBranch, ...]
    unread: tuple[UnreadReplica, ...]


def branch_directory(branch: RescueBranch) -> Path:
    """Where a branch lies in the rescue directory: other offsets are another directory."""
    read_from = "disk" if branch.log_dir else "broker"
    if branch.stray:
        # A broker may have set several logs of a partition aside; their folders differ in the id before the mark.
        read_from = f"stray-{branch.log_dir.removesuffix(STRAY_MARK)[-8:]}"
    place = f"{read_from}-{branch.broker}-{branch.part}-{branch.start}-{branch.end}"
    return Path(f"{topic_name(branch.tp.topic)}-{branch.tp.partition}") / place


def index_json(index: RescueIndex) -> str:
    """``rescue.json``: one branch a line."""
    head = json.dumps({"schema": SCHEMA, **_header_fields(index.header)})[:-1]
    branches = ",\n".join(json.dumps(_branch_fields(branch)) for branch in index.branches)
    unread = ",\n".join(
        json.dumps(
            {
                "topic": one.tp.topic,
                "partition": one.tp.partition,
                "broker": one.broker,
                "why": one.why,
                "partly": one.partly,
            }
        )
        for one in index.unread
    )
    return f'{head},\n"branches": [\n{branches}],\n"unread": [\n{unread}]}}\n'


def manifest_json(manifest: BranchManifest) -> str:
    """``manifest.json`` of a branch."""
    fields = {
        "schema": BRANCH_SCHEMA,
        "whole": manifest.whole,
        **_header_fields(manifest.header),
        **_branch_fields(manifest.branch),
        "readAt": manifest.read_at,
        "problem": manifest.problem,
        "segments": [_segment_fields(segment) for segment in manifest.segments],
    }
    return json.dumps(fields, indent=1) + "\n"


def read_index(path: Path) -> RescueIndex:
    """Raises InputError."""
    return _read(path, SCHEMA, _index)


def read_manifest(path: Path) -> BranchManifest:
    """Raises InputError."""
    return _read(path, BRANCH_SCHEMA, _manifest)


def _read(path: Path, schema: str, parse: Callable[[Mapping[str, Any]], T]) -> T:
    try:
        fields = json.loads(read_regular(path))
        if not isinstance(fields, dict) or fields.get("schema") != schema:
            found = fields.get("schema") if isinstance(fields, dict) else None
            raise InputError(f"{path}: its schema is {found!r}, and {schema!r} is read here")
        return parse(fields)
    except KeyError as error:
        raise InputError(f"{path}: {error} is missing") from None
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{path}: not a rescue's file ({error})") from None


def _header_fields(header: RescueHeader) -> dict[str, object]:
    return {_camel(name): value for name, value in asdict(header).items()}


def _header(fields: Mapping[str, Any]) -> RescueHeader:
    return RescueHeader(**{name: _text(fields[_camel(name)]) for name in RescueHeader.__slots__})


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _branch_fields(branch: RescueBranch) -> dict[str, object]:
    return {
        "topic": branch.tp.topic,
        "partition": branch.tp.partition,
        "topicId": branch.topic_id,
        "chosenLeader": branch.leader,
        "broker": branch.broker,
        "part": str(branch.part),
        "startOffset": branch.start,
        "endOffset": branch.end,
        "epochs": [list(span) for span in branch.spans],
        "estimatedBytes": branch.size,
        "logDir": branch.log_dir or None,
    }


def _branch(fields: Mapping[str, Any]) -> RescueBranch:
    spans = tuple(EpochSpan(*(_number(one, -1) for one in span)) for span in fields["epochs"])
    branch = RescueBranch(
        _partition(fields),
        _text(fields["topicId"]),
        _number(fields["chosenLeader"], most=_INT32),
        _number(fields["broker"], most=_INT32),
        BranchPart(fields["part"]),
        spans,
        _number(fields["estimatedBytes"], -1),
        _text(fields.get("logDir") or ""),
    )
    gaps = any(one.end != other.start for one, other in pairwise(spans))
    if not spans or gaps or any(not 0 <= span.start < span.end for span in spans):
        raise ValueError(f"the epochs of {branch.tp} are no run of offsets")
    if (branch.start, branch.end) != (fields["startOffset"], fields["endOffset"]):
        raise ValueError(f"the offsets of {branch.tp} are not those of its epochs")
    return branch


def _partition(fields: Mapping[str, Any]) -> TopicPartition:
    topic = _text(fields["topic"])
    if not _TOPIC.fullmatch(topic):
        raise ValueError(f"{topic!r} is no topic name")
    return TopicPartition(topic, _number(fields["partition"], most=_INT32))


def _segment_fields(segment: SegmentEntry) -> dict[str, object]:
    return {
        "file": segment.name,
        "firstOffset": segment.first_offset,
        "nextOffset": segment.next_offset,
        "batches": segment.batches,
        "bytes": segment.size,
        "sha256": segment.sha256,
    }


def _segment(fields: Mapping[str, Any]) -> SegmentEntry:
    name = _text(fields["file"])
    if not SEGMENT_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no segment's name")
    first, after, batches, size = (
        _number(fields[key]) for key in ("firstOffset", "nextOffset", "batches", "bytes")
    )
    return SegmentEntry(name, first, after, batches, size, _text(fields["sha256"]))


def _index(fields: Mapping[str, Any]) -> RescueIndex:
    unread = (
        UnreadReplica(
            _partition(one),
            _number(one["broker"], most=_INT32),
            _text(one["why"]),
            partly=one.get("partly") is True,
        )
        for one in fields["unread"]
    )
    branches = tuple(map(_branch, fields["branches"]))
    if len({branch_directory(one) for one in branches}) < len(branches):
        raise ValueError("a branch stands in it twice")
    return RescueIndex(_header(fields), branches, tuple(unread))


def _manifest(fields: Mapping[str, Any]) -> BranchManifest:
    problem = fields["problem"]
    segments = tuple(map(_segment, fields["segments"]))
    if any(one.next_offset > other.first_offset for one, other in pairwise(segments)):
        raise ValueError("its segments do not follow each other")
    return BranchManifest(
        _header(fields),
        _branch(fields),
        fields["whole"] is True,
        _text(fields["readAt"]),
        segments,
        None if problem is None else _text(problem),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _number(value: object, least: int = 0, most: int = _INT64) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is no number")
    if not least <= value <= most:
        raise ValueError(f"{value} is not between {least} and {most}")
    return value
