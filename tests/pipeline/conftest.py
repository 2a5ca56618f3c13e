"""One Spark session for all of these tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pipeline.spark_session import SparkSettings, session
from tests.pipeline.brief_java import BRIEF_JAVA

EXTRA = {
    "spark.sql.shuffle.partitions": "4",
    "spark.default.parallelism": "4",
    # To compile code for a query takes longer than to go through a few rows without it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""For small data; jobs that run as processes of their own have what ktriage sets."""


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Two cores."""
    patch = pytest.MonkeyPatch()
    patch.setenv("SPARK_SUBMIT_OPTS", BRIEF_JAVA)
    with session("ktriage tests", SparkSettings("local[2]", extra=EXTRA, brief=True)) as running:
        patch.undo()
        yield running
