"""A job that is called from somebody's own Spark session leaves that session as it was."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipeline.errors import PipelineError
from pipeline.spark_session import SparkSettings, session


def test_the_session_of_the_caller_is_left_as_it_was(spark: Any) -> None:
    name = "spark.sql.session.timeZone"
    before = spark.conf.get(name)
    spark.conf.set(name, "America/New_York")
    try:
        # This makes the session the active one, whatever another test has used since.
        spark.createDataFrame([(1,)], "n int")
        spark.range(3).createOrReplaceTempView("mine")
        with pytest.raises(KeyError), session("a job", SparkSettings()) as ours:
            assert ours.conf.get(name) == "UTC"
            ours.createDataFrame([(1,)], "n int").createOrReplaceTempView("mine")
            assert ours.table("mine").count() == 1
            raise KeyError("the job fails")
        assert spark.conf.get(name) == "America/New_York"
        active: Any = SparkSession.getActiveSession()
        assert active is spark
        assert spark.table("mine").count() == 3
    finally:
        spark.conf.set(name, before)


@pytest.mark.usefixtures("spark")
def test_a_server_that_is_named_is_not_replaced_by_the_callers_session() -> None:
    """The job would run on the machine of the caller, without a word."""
    with socket.create_server(("127.0.0.1", 0)) as listens:
        url = f"sc://127.0.0.1:{listens.getsockname()[1]}"
        with pytest.raises(PipelineError, match="this process has a Spark session already, on no server"):
            session("a job", SparkSettings(url)).__enter__()
    with pytest.raises(PipelineError, match="no server of Spark Connect can be reached there"):
        session("a job", SparkSettings(url)).__enter__()
