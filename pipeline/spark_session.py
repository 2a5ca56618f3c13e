"""A Spark session: local by default, any cluster by its master URL, and under spark-submit with its settings."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from pipeline.errors import NotInstalled, PipelineError
from recovery.wording.missing_extra import missing_extra

JAVA = 17
"""The oldest Java that Spark 4 runs on."""

DRIVER_MEMORY = "2g"

_CONNECT_PORT = 15002
"""Spark's default."""
_CONNECT_SECONDS = 10.0
_STOPPING = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """``master`` None: local, with all cores; ``sc://…``: a server of Spark Connect. ``wheel``: ktriage's own, for
    executors on other machines. ``brief``: a job whose work is done in Python, so that Java runs briefly.
    """

    master: str | None = None
    driver_memory: str = DRIVER_MEMORY
    progress: bool = False
    wheel: str | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    brief: bool = False

    @property
    def connects(self) -> bool:
        """Whether the session is on a server of Spark Connect, so that this process needs no Java."""
        return self.master is not None and self.master.startswith("sc://")


_PY_FILES = "spark.submit.pyFiles"


def submitted() -> bool:
    """Whether spark-submit started this process: its master and its settings are used."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


SQL_SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    # Skewed shuffles are split while they run; files are split by their row groups before that.
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.skewJoin.enabled": "true",
    "spark.sql.parquet.compression.codec": "zstd",
    # Spark's own default is a type that Parquet has given up.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # The fixed cost per batch is paid a fifth as often as with the default of 10,000.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    # "Not by size": Spark 4.1 measures the whole batch before each row otherwise, most of a job's CPU time.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
}
"""The settings that belong to a session, not to the whole Spark application."""


def configuration(settings: SparkSettings, *, under_submit: bool) -> dict[str, str]:
    """The settings of the session, in addition to those of spark-submit."""
    options = SQL_SETTINGS | {"spark.ui.showConsoleProgress": "true" if settings.progress else "false"}
    if not under_submit:
        master = settings.master or "local[*]"
        options["spark.master"] = master
        options["spark.ui.enabled"] = "false"
        options["spark.driver.memory"] = settings.driver_memory
        if master.startswith("local"):
            options |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
        elif settings.wheel:
            options[_PY_FILES] = settings.wheel
    return options | dict(settings.extra)


@contextmanager
def session(name: str, settings: SparkSettings) -> Iterator[Any]:
    """A session that is stopped at the end. If the caller has a session, it is one beside the caller's, which is
    left as it was. Raises NotInstalled if Java or PySpark is missing, PipelineError if the server of Spark Connect
    that ``settings`` name cannot be used.
    """
    check_installed(settings)
    from pyspark.sql import SparkSession  # noqa: PLC0415  # an extra, and slow to import

    if settings.connects:
        _require_listener(str(settings.master))
    caller = SparkSession.getActiveSession()
    if caller is not None:
        if settings.connects and not _on_connect(caller):
            # The job would run on the caller's machine, and not on the server that was named.
            raise PipelineError(f"{settings.master}: this process has a Spark session already, on no server")
        with _separate_session(caller) as spark:
            yield spark
        return
    if settings.connects:
        with _connected(name, str(settings.master)) as spark:
            yield spark
        return
    under_submit = submitted()
    with TemporaryDirectory(prefix="ktriage-spark-") as scratch:
        spark = _built(SparkSession.builder.appName(name), settings, Path(scratch), under_submit=under_submit)
        spark.sparkContext.setLogLevel("ERROR")
        try:
            _give_wheels_to_workers(spark.sparkContext, Path(scratch))
            yield spark
        except BaseException:
            # Further errors follow from this one.
            with suppress(Exception):
                spark.sparkContext.setLogLevel("OFF")
            raise
        finally:
            spark.stop()


@contextmanager
def _connected(name: str, url: str) -> Iterator[Any]:
    """A session on a server of Spark Connect. Raises PipelineError."""
    from pyspark.errors import PySparkException  # noqa: PLC0415  # an extra
    from pyspark.sql import SparkSession  # noqa: PLC0415

    try:
        spark = _with_settings(SparkSession.builder.appName(name).remote(url).getOrCreate())
    except PySparkException as error:
        raise PipelineError(f"{url}: {' '.join(str(error).split())}") from None
    try:
        yield spark
    finally:
        spark.stop()


def _require_listener(url: str) -> None:
    """PySpark would try to reach a server for many minutes without a word. Raises PipelineError."""
    try:
        found = urlsplit(url)
        address = (found.hostname or "", found.port or _CONNECT_PORT)
        socket.create_connection(address, _CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        raise PipelineError(f"{url}: no server of Spark Connect can be reached there: {error}") from None


@contextmanager
def _separate_session(caller: Any) -> Iterator[Any]:
    """A session with settings and views of its own, in the caller's Spark application."""
    with (_cloned if _on_connect(caller) else _new)(caller) as spark:
        yield _with_settings(spark)


def _on_connect(caller: Any) -> bool:
    """Whether the session is on a server of Spark Connect."""
    return hasattr(caller, "cloneSession")


def _with_settings(spark: Any) -> Any:
    for key, value in SQL_SETTINGS.items():
        spark.conf.set(key, value)
    return spark


@contextmanager
def _cloned(caller: Any) -> Iterator[Any]:
    """On Spark Connect: a session of its own on the server."""
    spark = caller.cloneSession()
    try:
        yield spark
    finally:
        # Not stop() or close(), which would also end threads that the caller's session uses.
        spark.client.release_session()


@contextmanager
def _new(caller: Any) -> Iterator[Any]:
    """Without Spark Connect: a session of its own in the caller's JVM."""
    from pyspark.sql import SparkSession  # noqa: PLC0415  # an extra

    try:
        yield caller.newSession()
    finally:
        # PySpark makes a session the active one as soon as it is used.
        SparkSession._activeSession = caller
        caller._jvm.SparkSession.setActiveSession(caller._jsparkSession)


def _built(builder: Any, settings: SparkSettings, scratch: Path, *, under_submit: bool) -> Any:
    options = configuration(settings, under_submit=under_submit)
    if not under_submit:
        if (settings.master or "local").startswith("local"):
            # Local workers run this interpreter, not the first python3 on the path; for other machines
            # PYSPARK_PYTHON names it.
            os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
            os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        os.environ["PYTHONPATH"] = os.pathsep.join(_code(os.environ.get("PYTHONPATH", "")))
        quiet = scratch / "log4j2.properties"
        quiet.write_text(_QUIET)
        os.environ.setdefault("SPARK_LAUNCHER_OPTS", _QUIET_JAVA)
        options.setdefault("spark.driver.extraJavaOptions", java_options(settings, quiet))
    for key, value in options.items():
        builder = builder.config(key, value)
    with signals_afterwards():
        return builder.getOrCreate()


@contextmanager
def signals_afterwards() -> Iterator[None]:
    """A signal that comes while Spark's Java starts is delivered afterwards; a second one at once.

    PySpark removes the file by which Java tells its port as soon as the start is interrupted: Java would run on
    without a parent. PySpark's own handler of SIGINT, which would end in a traceback, is replaced too.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(signum: int, _: object) -> None:
        if came:
            restore()
            signal.raise_signal(signum)
        came.append(signum)

    def restore() -> None:
        for signum, handler in handlers.items():
            signal.signal(signum, handler)

    handlers = {signum: signal.getsignal(signum) for signum in _STOPPING}
    for signum, handler in handlers.items():
        if handler is not signal.SIG_IGN:
            signal.signal(signum, note)
    try:
        yield
    finally:
        restore()
    if came:
        signal.raise_signal(came[0])


def _give_wheels_to_workers(context: Any, scratch: Path) -> None:
    """PySpark 4.1 puts only files that are named ``.zip``, ``.egg`` or ``.jar`` on the path of its workers, and a
    wheel is a zip file. The driver's worker of a streaming source gets no files, only the environment.
    """
    from pyspark import SparkFiles  # noqa: PLC0415  # an extra

    for uri in (context.getConf().get(_PY_FILES) or "").split(","):
        if uri.endswith(".whl"):
            # Spark has fetched it to there.
            fetched = Path(SparkFiles.get(uri.rsplit("/", 1)[-1]))
            named = str(scratch / f"{fetched.stem}.zip")
            shutil.copyfile(fetched, named)
            context.addPyFile(named)
            before = context.environment.get("PYTHONPATH")
            context.environment["PYTHONPATH"] = os.pathsep.join(filter(None, (named, before)))


def java_options(settings: SparkSettings, quiet: Path) -> str:
    """Of the JVM of a session; ``quiet``: the file with the settings of its log."""
    options = f"-Dlog4j2.configurationFile=file:{quiet} {_QUIET_JAVA}"
    local = (settings.master or "local").startswith("local")
    return f"{options} {_FIRST_COMPILER_ONLY}" if settings.brief and local else options


_FIRST_COMPILER_ONLY = "-XX:TieredStopAtLevel=1"
"""Half of the CPU time of a job on a million partitions was Java compiling Spark's code a second time, for a speed
that only a much longer job would gain from: the rules run in Python.
"""

_QUIET_JAVA = "-Xlog:disable -Xlog:all=warning:stderr -XX:-UsePerfData"
"""Options that stop a JVM from logging to stdout: stdout is for results, and the output of Spark's launcher
is read as a command. They also stop the message whenever another JVM reads its performance counters in /tmp.
"""

_QUIET = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
# Has a level of its own, so that Spark does not set one for a shell and say so.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
# What these report is in the error that ends the job, which we explain in one line.
logger.task.name = org.apache.spark.executor.Executor
logger.task.level = off
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
logger.stream.name = org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution
logger.stream.level = off
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = Spark: %p %c{1}: %m{nolookups}%n%ex{0}
"""


def _code(before: str) -> list[str]:
    """PYTHONPATH for the workers of a local run: ktriage first, and how its processes start."""
    package = Path(__file__).parent
    importable = Path(__file__).parents[__name__.count(".")]
    ours = (importable, package / "spark_python")
    return [*map(str, ours), *(part for part in before.split(os.pathsep) if part)]


def check_installed(settings: SparkSettings) -> None:
    """Raises NotInstalled, with what to do, if PySpark or the Java that it needs is missing."""
    if find_spec("pyspark") is None or find_spec("pyarrow") is None:
        raise NotInstalled(missing_extra("the pipeline needs", "PySpark", "spark"))
    if not settings.connects:
        check_java(_java_version())


def check_java(answer: str | None) -> None:
    """``answer``: what ``java -version`` prints; None: there is no java. Raises NotInstalled."""
    advice = f"Java {JAVA} or newer is needed to run Spark; on Debian: apt install openjdk-17-jre-headless"
    if answer is None:
        raise NotInstalled(f"{advice} (no java was found; JAVA_HOME may name one)")
    found = re.search(r'version "(\d+)', answer)
    if found is None or int(found[1]) < JAVA:
        raise NotInstalled(
            f"{advice} (found: {answer.splitlines()[0] if answer else 'one that does not answer'})"
        )


def _java_version() -> str | None:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not Path(java).exists():
        return None
    try:
        ended = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ended.stderr or ended.stdout
