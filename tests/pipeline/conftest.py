"""One Spark application for all of these tests."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from pipeline.spark_session import SQL_SETTINGS, SparkSettings, session
from tests.pipeline.brief_java import BRIEF_JAVA
from tests.pipeline.small_data import SMALL_DATA


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """On two cores. The application is a server of Spark Connect too, which costs less than a Java of its own."""
    patch = pytest.MonkeyPatch()
    patch.setenv("SPARK_SUBMIT_OPTS", BRIEF_JAVA)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    extra = SMALL_DATA | {
        "spark.default.parallelism": "4",
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        # The sessions on the server begin with this, as somebody else's server may have it.
        "spark.sql.session.timeZone": "Asia/Tokyo",
    }
    with session("ktriage tests", SparkSettings("local[2]", extra=extra, brief=True)) as running:
        for name, value in SQL_SETTINGS.items():
            running.conf.set(name, value)
        patch.undo()
        yield running


@pytest.fixture(scope="session")
def server(spark: Any) -> str:
    """The URL of the server of Spark Connect."""
    return f"sc://127.0.0.1:{spark.conf.get('spark.connect.grpc.binding.port')}"
