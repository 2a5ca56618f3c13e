"""``ktriage snapshot``: its verbs and their options."""

from __future__ import annotations

from pathlib import Path

from console.cli.base import declared
from console.cli.base.declaration import REQUIRED, option
from console.cli.base.options import connected, without_cluster
from console.cli.base.run import Run
from console.cli.base.verbs import Verb
from console.errors import InputError
from console.jobs.pipeline.job_options import require_pyarrow, storage_errors

HELP = """\
Writes the state of clusters into Delta tables: one row for each partition, with the log of every replica,
and one row for each time that a cluster was asked. ktriage pipeline, Spark, DuckDB and Polars read them. A
snapshot is written completely or not at all. A series has a full snapshot each hour, and the changes in
between. Nothing is changed on the cluster.

The default verb is take. The URI of --out is a directory, or s3://, gs:// or another store that Delta
Lake's library supports.

\b
Examples:
  ktriage snapshot --bootstrap-server kafka-1:9092 --out /var/lib/ktriage/lake
  ktriage snapshot --cluster production --out s3://ops/lake --every 60s --keep 48
  ktriage snapshot --clusters fleet.yaml --out s3://ops/lake --every 60s --keep 48
  ktriage snapshot --simulate zone-power-loss --out lake --every 60s --count 30
  ktriage snapshot compact --out lake
"""

OUT = option("--out URI", "The directory of the tables.", REQUIRED)


def take(
    run: Run,
    *,
    out: str = OUT,
    clusters: Path | None = option(
        "--clusters FILE",
        "Take snapshots of every cluster in this file of profiles (as ~/.config/ktriage/clusters.yaml), in"
        " one process and with one commit for all of them at each interval. A cluster that cannot be read is"
        " recorded, and does not hold the others up.",
    ),
    every: str | None = option(
        "--every TIME",
        "Take a snapshot at this interval, such as 30s, 5m or 1h, until stopped. Default: one"
        " snapshot. With --simulate the interval is virtual time, which passes without waiting:"
        " give --count too.",
    ),
    count: int | None = option("--count N", "With --every: stop after N snapshots.", min=1),
    keep: int | None = option(
        "--keep N",
        "Keep the newest N full snapshots of each cluster, with their changes: remove whole days that have"
        " none of them. Default: nothing is removed.",
        min=1,
    ),
    recovery_duration_ms: int = declared.RECOVERY_DURATION_MS,
) -> int:
    """Takes one snapshot of the cluster, or with --every a series of snapshots until stopped.

    \b
    Examples:
      ktriage snapshot take --bootstrap-server kafka-1:9092 --out /var/lib/ktriage/lake
      ktriage snapshot take --cluster production --out s3://ops/lake --every 60s --keep 48
      ktriage snapshot take --clusters fleet.yaml --out s3://ops/lake --every 60s --keep 48
    """
    require_pyarrow("a snapshot")
    from console.jobs.pipeline import take_snapshots  # noqa: PLC0415  # not for --help

    if clusters is not None and run.named is not None:
        raise InputError("--clusters names the clusters: give no --bootstrap-server, --cluster or --simulate")
    with storage_errors():
        return take_snapshots.take(
            run,
            out,
            clusters=clusters,
            every=every,
            count=count,
            keep=keep,
            answer_seconds=recovery_duration_ms / 1000,
        )


def list_(run: Run, *, out: str = OUT) -> int:
    """Lists the snapshots of each cluster, oldest first, and names those that cannot be read.

    \b
    Example:
      ktriage snapshot list --out lake
    """
    require_pyarrow("a snapshot")
    from console.jobs.pipeline import take_snapshots  # noqa: PLC0415  # not for --help

    with storage_errors():
        return take_snapshots.list_snapshots(run.program, out, json=run.json)


def compact(
    run: Run,
    *,
    out: str = OUT,
    keep: int | None = option(
        "--keep N",
        "Also remove the days of each cluster that have none of its newest N full snapshots.",
        min=1,
    ),
) -> int:
    """Merges the small files of the tables, and deletes files that have not been in use for a day. A running
    series merges the files of its own day each hour.

    \b
    Example:
      ktriage snapshot compact --out lake --keep 48
    """
    require_pyarrow("a snapshot")
    from console.jobs.pipeline import take_snapshots  # noqa: PLC0415  # not for --help

    with storage_errors():
        return take_snapshots.compact_snapshots(run.program, out, keep)


VERBS = (
    Verb("take", "Take one snapshot, or with --every a series until stopped.", connected(take, needed=False)),
    Verb("list", "List the snapshots below --out.", without_cluster(list_)),
    Verb("compact", "Merge small files, and delete unused ones.", without_cluster(compact, output=False)),
)
DEFAULT_VERB = "take"
