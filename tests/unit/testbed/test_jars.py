"""Kafka's jars: what is kept is what the lock names, whatever the network or another process does.

The network's part is played by copies from the cache: a wrong byte or a dead line cannot be had from a registry at
will.
"""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from testbed.kafka import TestbedError
from testbed.kafka.jars import cache_directory, kafka_jars, read_lock
from testbed.kafka.maven_jars import Fetch, Jar, from_maven_central

VERSION = "4.3.1"


@pytest.fixture(scope="module")
def real_jars() -> Path:
    """The cache, filled from the network if need be."""
    kafka_jars(VERSION)
    return cache_directory(VERSION)


@pytest.fixture
def most_jars(real_jars: Path, tmp_path: Path) -> Path:
    """A directory with all jars but the first."""
    for jar in read_lock(VERSION)[1:]:
        (tmp_path / jar.filename).symlink_to(real_jars / jar.filename)
    return tmp_path


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def copier(source: Path) -> Fetch:
    def fetch(jar: Jar, target: Path) -> None:
        shutil.copyfile(source / jar.filename, target)

    return fetch


def quiet(_line: str) -> None:
    pass


def test_only_what_is_missing_is_fetched_and_told(real_jars: Path, most_jars: Path) -> None:
    first = read_lock(VERSION)[0]
    asked: list[Jar] = []
    told: list[str] = []

    def fetch(jar: Jar, target: Path) -> None:
        asked.append(jar)
        shutil.copyfile(real_jars / jar.filename, target)

    paths = kafka_jars(VERSION, directory=most_jars, fetch=fetch, say=told.append)
    assert asked == [first]
    assert [path.name for path in paths] == [jar.filename for jar in read_lock(VERSION)]
    assert "1/1" in told[-1]
    kafka_jars(VERSION, directory=most_jars, fetch=fetch, say=told.append)
    assert asked == [first]


def test_a_damaged_jar_is_fetched_again(real_jars: Path, most_jars: Path) -> None:
    first = read_lock(VERSION)[0]
    (most_jars / first.filename).write_bytes(b"half a ja")
    kafka_jars(VERSION, directory=most_jars, fetch=copier(real_jars), say=quiet)
    assert (most_jars / first.filename).read_bytes() == (real_jars / first.filename).read_bytes()


def test_bytes_that_the_lock_does_not_name_are_not_kept(most_jars: Path) -> None:
    before = names(most_jars)

    def wrong(_jar: Jar, target: Path) -> None:
        target.write_bytes(b"x")

    with pytest.raises(TestbedError, match=r"SHA-256 is [0-9a-f]{64}, the lock file says") as caught:
        kafka_jars(VERSION, directory=most_jars, fetch=wrong, say=quiet)
    assert "\n" not in str(caught.value)
    assert names(most_jars) == before


def test_two_runs_that_fetch_at_once_both_get_every_jar(real_jars: Path, tmp_path: Path) -> None:
    def run(_number: int) -> tuple[Path, ...]:
        return kafka_jars(VERSION, directory=tmp_path, fetch=copier(real_jars), say=quiet)

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(run, range(2))
    assert one == other
    assert names(tmp_path) == {jar.filename for jar in read_lock(VERSION)}


def test_a_version_without_a_lock_is_named_with_those_that_have_one() -> None:
    with pytest.raises(
        TestbedError, match=r"no lock file for Kafka 9\.9\.9; there is one for 3\.9\.1, 4\.3\.1"
    ):
        kafka_jars("9.9.9")


def test_a_network_that_stays_away_is_tried_again_and_then_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    pauses: list[float] = []
    with pytest.raises(TestbedError, match=r"cannot fetch .* from Maven Central") as caught:
        from_maven_central(read_lock(VERSION)[0], tmp_path / "part", pause=pauses.append)
    assert pauses == [1.0, 2.0, 4.0]
    assert "\n" not in str(caught.value)
