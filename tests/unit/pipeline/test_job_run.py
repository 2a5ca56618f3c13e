"""What a run that failed says: one line, out of the many that Spark has for it."""

from __future__ import annotations

import pytest

from pipeline.errors import PipelineError, naming_input
from pipeline.job_run import spark_message

TRACE = """\
An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "pieces.py", line 77, in read
pipeline.errors.PipelineError: file:///lake/part-00000.parquet: it is torn
"""


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (TRACE, "file:///lake/part-00000.parquet: it is torn"),
        (
            "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found",
            "s3a.S3A",
        ),
        ('No FileSystem for scheme "gs"', "no client for that store (gs), and needs Hadoop's"),
        (
            "[STREAM_FAILED] terminated\nModuleNotFoundError: No module named 'pipeline'\n SQLSTATE: 38000",
            "its Python workers have no module pipeline: docs/pipeline.md, Where it runs",
        ),
        (TRACE.replace("pipeline.errors.PipelineError", "ValueError"), "ValueError: file:///lake/part-00000"),
        ("[DIVIDE_BY_ZERO] by zero.\nat x", "[DIVIDE_BY_ZERO] by zero."),
    ],
)
def test_one_line_is_told_of_many(lines: str, said: str) -> None:
    found = spark_message(lines.splitlines(), lines.splitlines()[0])
    assert said in found and "\n" not in found


def test_an_error_that_nobody_expected_says_where_it_happened() -> None:
    with pytest.raises(PipelineError) as told, naming_input(lambda: "cluster c: file:///lake/part-0.parquet"):
        raise KeyError("orders")
    assert str(told.value) == "cluster c: file:///lake/part-0.parquet: KeyError: 'orders'"
    with pytest.raises(PipelineError) as told, naming_input(lambda: "cluster c"):
        raise PipelineError("file:///lake/part-0.parquet: it is torn")
    assert str(told.value) == "file:///lake/part-0.parquet: it is torn", "it names the file already"
