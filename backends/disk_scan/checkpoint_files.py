"""The small text files of a log dir: checkpoints of offsets and leader epochs, and properties."""

from __future__ import annotations

import os
from pathlib import Path

from backends.log_segments.segment_source import open_unchanged, reason_of

_LARGEST = 64 << 20
"""Bytes; a checkpoint of a million partitions has less."""


class CheckpointError(Exception):
    """A file exists and cannot be read, or is not what its name says. The message is one line for a person."""


def read_text(path: Path) -> str | None:
    """A whole small file; None where there is none. Raises CheckpointError."""
    try:
        fd = open_unchanged(str(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: cannot be opened: {reason_of(error)}") from None
    data = b""
    try:
        while len(data) <= _LARGEST:
            more = os.read(fd, 1 << 20)
            if not more:
                break
            data += more
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {reason_of(error)}") from None
    finally:
        os.close(fd)
    if len(data) > _LARGEST:
        raise CheckpointError(f"{path}: is larger than such a file ever is")
    return data.decode("utf-8", "replace")


def read_properties(path: Path) -> dict[str, str] | None:
    """Lines of meta.properties (``name=value``) or partition.metadata (``name: value``); None: there is no file."""
    text = read_text(path)
    if text is None:
        return None
    found = {}
    for line in text.splitlines():
        ends = [at for at in (line.find("="), line.find(":")) if at > 0]
        if ends and not line.startswith(("#", "!")):
            found[line[: min(ends)].strip()] = line[min(ends) + 1 :].strip()
    return found


def read_offsets(path: Path) -> dict[tuple[str, int], int]:
    """Offsets by topic and partition; none where there is no file. Raises CheckpointError."""
    found = {}
    for line in _lines(path) or ():
        words = line.split()
        if len(words) != 3 or not (_is_number(words[1]) and _is_number(words[2])):
            raise CheckpointError(f"{path}: has a line that is no offset of a partition")
        found[(words[0], int(words[1]))] = int(words[2])
    return found


def read_epochs(path: Path) -> list[tuple[int, int]] | None:
    """(leader epoch, first offset), ascending; None where there is no file. Raises CheckpointError."""
    lines = _lines(path)
    if lines is None:
        return None
    found: list[tuple[int, int]] = []
    for line in lines:
        words = line.split()
        if len(words) != 2 or not all(_is_number(word) for word in words):
            raise CheckpointError(f"{path}: has a line that is no leader epoch")
        entry = (int(words[0]), int(words[1]))
        if found and (entry[0] <= found[-1][0] or entry[1] < found[-1][1]):
            raise CheckpointError(f"{path}: its epochs do not ascend")
        found.append(entry)
    return found


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < 20


def _lines(path: Path) -> list[str] | None:
    """Behind the version, 0, and the number of lines, which must be right."""
    text = read_text(path)
    if text is None:
        return None
    version, _, rest = text.partition("\n")
    count, _, body = rest.partition("\n")
    lines = [line for line in body.split("\n") if line.strip()]
    if version.strip() != "0" or not _is_number(count.strip()) or int(count) != len(lines):
        raise CheckpointError(f"{path}: is no checkpoint of version 0, or is cut short")
    return lines
