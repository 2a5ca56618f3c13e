"""One Spark session for all of these tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pipeline.spark_session import SparkSettings, session
from tests.pipeline.brief_java import BRIEF_JAVA
from tests.pipeline.small_data import SMALL_DATA


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Two cores."""
    patch = pytest.MonkeyPatch()
    patch.setenv("SPARK_SUBMIT_OPTS", BRIEF_JAVA)
    extra = SMALL_DATA | {"spark.default.parallelism": "4"}
    with session("ktriage tests", SparkSettings("local[2]", extra=extra, brief=True)) as running:
        patch.undo()
        yield running
