"""One Spark session for all of these tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pipeline.spark_session import SparkSettings, session


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Two cores, few shuffle partitions, and Java's first compiler only: the data is small."""
    extra = {"spark.sql.shuffle.partitions": "4", "spark.default.parallelism": "4"}
    with session("ktriage tests", SparkSettings("local[2]", extra=extra, brief=True)) as running:
        yield running
