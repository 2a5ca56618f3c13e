"""A job that is called from somebody's own Spark session leaves that session as it was."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipeline.spark_session import SparkSettings, session


def test_the_session_of_the_caller_is_left_as_it_was(spark: Any) -> None:
    name = "spark.sql.session.timeZone"
    before = spark.conf.get(name)
    spark.conf.set(name, "America/New_York")
    try:
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
