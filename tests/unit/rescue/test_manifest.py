"""A manifest that nobody of this program has written: nothing of it is believed that cannot be."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from console.errors import InputError
from console.rescue_files.manifest import (
    INDEX,
    RescueHeader,
    RescueIndex,
    index_json,
    manifest_json,
    read_index,
    read_manifest,
)
from tests.unit.rescue.batches import batch
from tests.unit.rescue.test_restore import rescued

Fields = dict[str, Any]


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """A rescue of one branch."""
    header = RescueHeader("c", "p", "d", "now", "me", "1")
    path = tmp_path / INDEX
    path.write_text(
        index_json(RescueIndex(header, (rescued(tmp_path / "one", batch(500, 10, 0)).branch,), ()))
    )
    assert len(read_index(path).branches) == 1
    return path


def changed(path: Path, change: Callable[[Fields], None]) -> Path:
    fields = json.loads(path.read_text())
    change(fields)
    path.write_text(json.dumps(fields))
    return path


@pytest.mark.parametrize("key", ["partition", "broker", "chosenLeader"])
@pytest.mark.parametrize("value", [-2, 1 << 31, 10**30])
def test_a_number_that_kafka_does_not_have_is_refused(index: Path, key: str, value: int) -> None:
    def change(fields: Fields) -> None:
        fields["branches"][0][key] = value

    with pytest.raises(InputError, match=f"{value} is not between"):
        read_index(changed(index, change))


def test_offsets_beyond_every_log_are_refused(index: Path) -> None:
    def change(fields: Fields) -> None:
        fields["branches"][0] |= {"epochs": [[0, 500, 1 << 63]], "endOffset": 1 << 63}

    with pytest.raises(InputError, match="is not between"):
        read_index(changed(index, change))


def test_a_branch_is_not_counted_twice(index: Path) -> None:
    def change(fields: Fields) -> None:
        fields["branches"] *= 2

    with pytest.raises(InputError, match="stands in it twice"):
        read_index(changed(index, change))


def test_a_segment_is_not_counted_twice(tmp_path: Path) -> None:
    manifest = rescued(tmp_path / "one", batch(500, 10, 0)).manifest
    assert manifest is not None
    path = tmp_path / "manifest.json"
    path.write_text(manifest_json(manifest))
    assert len(read_manifest(path).segments) == 1

    def change(fields: Fields) -> None:
        fields["segments"] *= 2

    with pytest.raises(InputError, match="do not follow each other"):
        read_manifest(changed(path, change))
