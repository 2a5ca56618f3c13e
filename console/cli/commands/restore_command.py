"""``ktriage restore``."""

from __future__ import annotations

from typing import Annotated

import typer

from console.cli.base.run import Run
from console.cli.commands.options import (
    RateOption,
    Reason,
    RescueDirectory,
    Rows,
    Yes,
    bytes_per_second,
    connected,
    stated,
)
from console.errors import InputError


def restore(
    run: Run,
    *,
    directory: RescueDirectory,
    to_topic: Annotated[
        str | None,
        typer.Option(
            "--to-topic",
            metavar="NAME",
            help="Write to the same partitions of this topic. It is created if it does not exist.",
        ),
    ] = None,
    to_source: Annotated[
        bool, typer.Option("--to-source", help="Write to the partitions that the records come from.")
    ] = False,
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="TOPIC", help="Only records of this topic. May be repeated."),
    ] = None,
    uncommitted: Annotated[
        bool,
        typer.Option("--uncommitted", help="Records of aborted and of unfinished transactions too."),
    ] = False,
    incomplete: Annotated[
        bool,
        typer.Option("--incomplete", help="Also what there is of branches that could not be read whole."),
    ] = False,
    rate: RateOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what goes where, and send nothing.")
    ] = False,
    yes: Yes = False,
    reason: Reason = None,
    rows: Rows = 20,
) -> int:
    """Writes rescued records to their source again, or to a topic of their own. Batches are sent as they are, with
    their compression; only producer, sequence and transaction are taken out of them. Transaction markers are never
    written, and of transactions only committed records. Each partition keeps the order of the rescue; records that
    were written since stay before it.

    Run it again after it was interrupted: it goes on, and a batch that the broker has already is not appended
    twice. At the end the records are read back and counted. Needs WRITE and READ on the topic, and CREATE for a
    new one.

    \b
    Examples:
      ktriage restore --bootstrap-server kafka-1:9092 ./rescue --to-topic orders-rescued --dry-run
      ktriage restore --cluster production ./rescue --to-source --topic orders --rate 10MB
    """
    if (to_topic is None) == (not to_source):
        raise InputError("give either --to-topic NAME or --to-source")
    why = stated(reason, asked=not yes or dry_run)
    from console.cli.recovery.restore_rescue import restore_rescue  # noqa: PLC0415  # not for --help
    from console.operations.rescue.restore_records import RestoreRecords  # noqa: PLC0415
    from console.rescue.restore_selection import RestoreSelection  # noqa: PLC0415

    change = RestoreRecords(
        directory,
        to_topic,
        RestoreSelection(uncommitted, incomplete, tuple(topic or ())),
        run.target.title,
        why,
        bytes_per_second(rate),
        dry_run,
    )
    return restore_rescue(run, change, ask=not yes, rows=rows)


command = connected(restore)
