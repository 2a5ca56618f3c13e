"""Delta Lake's jars: what is used is what the lock names, whatever the network or another process does."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from locked_jars.jars import Jar
from pipeline.delta_jars import delta_jars, locked_delta_jars
from pipeline.errors import PipelineError


@pytest.fixture(scope="module")
def real_jars() -> dict[str, Path]:
    """From the cache, filled from the network if need be."""
    return {path.name: path for path in delta_jars()}


def test_only_what_is_missing_or_damaged_is_fetched(real_jars: dict[str, Path], tmp_path: Path) -> None:
    asked: list[Jar] = []

    def fetch(jar: Jar, target: Path) -> None:
        asked.append(jar)
        shutil.copyfile(real_jars[jar.filename], target)

    one, other = locked_delta_jars()
    assert [path.name for path in delta_jars(tmp_path, fetch)] == [one.filename, other.filename]
    delta_jars(tmp_path, fetch)
    assert asked == [one, other]
    (tmp_path / other.filename).write_bytes(b"half a ja")
    delta_jars(tmp_path, fetch)
    assert asked == [one, other, other]
    assert {path.name for path in tmp_path.iterdir()} == {one.filename, other.filename}


def test_bytes_that_the_lock_does_not_name_are_not_kept(tmp_path: Path) -> None:
    def wrong(_jar: Jar, target: Path) -> None:
        target.write_bytes(b"x")

    with pytest.raises(PipelineError, match=r"SHA-256 is [0-9a-f]{64}, the lock file says") as caught:
        delta_jars(tmp_path, wrong)
    assert "\n" not in str(caught.value) and list(tmp_path.iterdir()) == []
