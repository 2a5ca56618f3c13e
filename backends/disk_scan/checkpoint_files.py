"""The small text files of a log dir: checkpoints of offsets and leader epochs, and properties."""

from __future__ import annotations

import os
from pathlib import Path

from backends.java_properties import JavaPropertiesError, java_properties
from backends.log_segments.segment_source import open_unchanged, reason_of

_LARGEST = 64 << 20
"""Bytes; a checkpoint of a million partitions has less."""


class CheckpointError(Exception):
    """A file exists and cannot be read, or is not what its name says. The message is one line for a person."""


class NotReadByKafka(CheckpointError):
    """Kafka cannot read the file either. ``not_numbers``: where it expects a number stands another word, which it
    reports in another way (NumberFormatException instead of IOException).
    """

    def __init__(self, message: str, *, not_numbers: bool = False) -> None:
        super().__init__(message)
        self.not_numbers = not_numbers


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
    """meta.properties, as java.util.Properties reads it; None: there is no file. Raises CheckpointError."""
    text = read_text(path)
    if text is None:
        return None
    try:
        return {key: value for _, key, value in java_properties(text)}
    except JavaPropertiesError as error:
        raise NotReadByKafka(f"{path}: line {error.line}: {error}") from None


def read_offsets(path: Path) -> dict[tuple[str, int], int]:
    """Offsets by topic and partition; none where there is no file, or one of 0 bytes, as Kafka creates it.

    Raises CheckpointError.
    """
    found = {}
    for line in _lines(path) or ():
        words = line.split()
        if len(words) != 3:
            raise NotReadByKafka(f"{path}: has a line that is no offset of a partition")
        found[(words[0], _number(words[1], path))] = _number(words[2], path)
    return found


def read_epochs(path: Path) -> list[tuple[int, int]] | None:
    """(leader epoch, first offset), ascending; None where there is no file. Raises CheckpointError."""
    lines = _lines(path)
    if lines is None:
        return None
    found: list[tuple[int, int]] = []
    for line in lines:
        words = line.split()
        if len(words) != 2:
            raise NotReadByKafka(f"{path}: has a line that is no leader epoch")
        entry = (_number(words[0], path), _number(words[1], path))
        if found and (entry[0] <= found[-1][0] or entry[1] < found[-1][1]):
            raise CheckpointError(f"{path}: its epochs do not ascend")
        found.append(entry)
    return found


def _number(word: str, path: Path) -> int:
    if not _is_number(word):
        raise NotReadByKafka(f"{path}: has {word[:40]!r} where a number is expected", not_numbers=True)
    return int(word)


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < 20


def _lines(path: Path) -> list[str] | None:
    """Behind the version, 0, and the number of lines, which must be right. A file of 0 bytes, or with the version
    alone, has no entry for Kafka (CheckpointFile.CheckpointReadBuffer).
    """
    text = read_text(path)
    if text is None:
        return None
    version, *rest = text.replace("\r\n", "\n").split("\n")
    if not text or (version == "0" and not "".join(rest)):
        return []
    if version != "0" or not _is_number(rest[0]):
        raise NotReadByKafka(f"{path}: is no checkpoint of version 0")
    lines = rest[1:-1] if not rest[-1] else rest[1:]
    if int(rest[0]) != len(lines):
        raise NotReadByKafka(f"{path}: is cut short: it has {len(lines)} of {rest[0]} lines")
    return lines
