"""Delta Lake's jars: what is used is what the lock names, whatever the network or another process does."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pipeline.delta_jars import DeltaJar, delta_jars, from_maven_central, locked_jars
from pipeline.errors import PipelineError


@pytest.fixture(scope="module")
def real_jars() -> dict[str, Path]:
    """From the cache, filled from the network if need be."""
    return {path.name: path for path in delta_jars()}


def test_only_what_is_missing_or_damaged_is_fetched(real_jars: dict[str, Path], tmp_path: Path) -> None:
    asked: list[DeltaJar] = []

    def fetch(jar: DeltaJar, target: Path) -> None:
        asked.append(jar)
        shutil.copyfile(real_jars[jar.filename], target)

    one, other = locked_jars()
    assert [path.name for path in delta_jars(tmp_path, fetch)] == [one.filename, other.filename]
    delta_jars(tmp_path, fetch)
    assert asked == [one, other]
    (tmp_path / other.filename).write_bytes(b"half a ja")
    delta_jars(tmp_path, fetch)
    assert asked == [one, other, other]
    assert {path.name for path in tmp_path.iterdir()} == {one.filename, other.filename}


def test_bytes_that_the_lock_does_not_name_are_not_kept(tmp_path: Path) -> None:
    def wrong(_jar: DeltaJar, target: Path) -> None:
        target.write_bytes(b"x")

    with pytest.raises(PipelineError, match=r"SHA-256 is [0-9a-f]{64}, the lock file says") as caught:
        delta_jars(tmp_path, wrong)
    assert "\n" not in str(caught.value) and list(tmp_path.iterdir()) == []


def test_a_network_that_stays_away_is_tried_again_and_then_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    pauses: list[float] = []
    with pytest.raises(PipelineError, match=r"cannot fetch .* from Maven Central") as caught:
        from_maven_central(locked_jars()[1], tmp_path / "part", pause=pauses.append)
    assert pauses == [1.0, 2.0, 4.0]
    assert "\n" not in str(caught.value)
