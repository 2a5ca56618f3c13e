"""``ktriage snapshot``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from console.cli.base.run import Run
from console.cli.commands.options import DurationMs, connected
from console.exit_status import STATUS_HELP

HELP = f"""\
Writes a cluster's state as Parquet, one row a partition with every replica's log: what ktriage pipeline works on.
A snapshot is there whole or not at all. A series has a full snapshot each hour and the changes between. Nothing is
changed on the cluster.

\b
  take     one snapshot, or with --every one after the other until stopped
  list     the snapshots that are there
  compact  runs of changes become full snapshots; what dead writers left goes

URI is a directory, or s3://, gs:// or hdfs:// and what else the file systems here know.

\b
Examples:
  ktriage snapshot --bootstrap-server kafka-1:9092 --out /var/lib/ktriage/lake
  ktriage snapshot --cluster production --out s3://ops/lake --every 60s --keep 48
  ktriage snapshot --simulate zone-power-loss --out lake --every 60s --count 30
  ktriage snapshot compact --out lake

{STATUS_HELP}"""


class Verb(StrEnum):
    """What to do."""

    TAKE = "take"
    LIST = "list"
    COMPACT = "compact"


def snapshot(
    run: Run,
    *,
    verb: Annotated[Verb, typer.Argument(metavar="[take|list|compact]")] = Verb.TAKE,
    out: Annotated[str, typer.Option("--out", metavar="URI", help="Where the snapshots lie.")],
    every: Annotated[
        str | None,
        typer.Option(
            "--every",
            metavar="TIME",
            help="take: go on at this interval, 30s or 5m, until stopped. With --simulate it is virtual time,"
            " which goes by at once: give --count too.",
        ),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option("--count", min=1, metavar="N", help="take: with --every, stop after so many."),
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option(
            "--keep",
            min=1,
            metavar="N",
            help="Leave the newest N full snapshots, and the changes since: take: of the cluster that is taken;"
            " compact: of each cluster.",
        ),
    ] = None,
    recovery_duration_ms: DurationMs = 30_000,
) -> int:
    from console.cli.pipeline import take_snapshots  # noqa: PLC0415  # not for --help

    if verb is Verb.LIST:
        return take_snapshots.list_snapshots(run, out)
    if verb is Verb.COMPACT:
        return take_snapshots.bound(run, out, keep)
    interval = take_snapshots.seconds(every) if every is not None else None
    wanted = take_snapshots.Wanted(out, interval, count, keep, recovery_duration_ms / 1000)
    return take_snapshots.take(run, wanted)


snapshot.__doc__ = HELP
command = connected(snapshot, needed=False)
