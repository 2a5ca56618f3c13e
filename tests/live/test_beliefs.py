"""The places in Kafka's source that the beliefs name, in the jars of each release that the testbed runs."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from recovery.acknowledged.beliefs import Belief, KafkaMethod
from testbed.kafka import jars

LOCKS = sorted(Path(jars.__file__).parent.glob("kafka-*.lock"))
RELEASES = [lock.stem.removeprefix("kafka-") for lock in LOCKS]


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest) -> list[zipfile.ZipFile]:
    return [zipfile.ZipFile(path) for path in jars.kafka_jars(request.param) if "kafka" in path.name]


@pytest.mark.parametrize("belief", Belief, ids=lambda belief: belief.name)
def test_a_belief_names_a_method_that_each_release_has(
    release: list[zipfile.ZipFile], belief: Belief
) -> None:
    assert any(_has(jar, source) for source in belief.details.sources for jar in release), (
        belief.details.sources
    )


def _has(jar: zipfile.ZipFile, source: KafkaMethod) -> bool:
    """The names of a class's methods are constants in its file; Scala puts some into classes of their own."""
    path = source.owner.replace(".", "/")
    names = (f"{path}.class", f"{path}$.class")
    known = set(jar.namelist())
    return any(source.name.encode() in jar.read(name) for name in names if name in known)
