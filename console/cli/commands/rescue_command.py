"""``ktriage rescue``: its verbs and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from console.cli.base.run import Run
from console.cli.commands.options import (
    PlanFile,
    RateOption,
    RescueDirectory,
    Rows,
    bytes_per_second,
    connected,
)
from console.cli.commands.verbs import Verb

HELP = """\
Reads what an election would cut off, before it is held, so that it can be written back afterwards.

An unclean election makes every other replica truncate its log to that of the new leader. A replica without a leader
lets its whole log be read, beyond its high watermark too. A rescue directory holds Kafka's own segment files, which
kafka-dump-log reads, beside manifests with offsets, epochs and checksums (docs/files.md).

\b
Examples:
  ktriage rescue read --bootstrap-server kafka-1:9092 recovery.json --to ./rescue
  ktriage apply --bootstrap-server kafka-1:9092 recovery.json --rescue ./rescue
  ktriage restore --bootstrap-server kafka-1:9092 ./rescue --to-source
"""

To = Annotated[
    Path,
    typer.Option(
        "--to",
        metavar="DIR",
        help="The rescue directory: a new one, or one that an earlier run of the same plan did not finish.",
        show_default=False,
    ),
]


def read(run: Run, *, plan: PlanFile, to: To, rate: RateOption = None, rows: Rows = 20) -> int:
    """Reads every offset that a replica holds and the plan's chosen log does not: the tail from where the two logs
    differ, and the head before the chosen log's start. Only replicas whose broker answers can be read. The cluster
    is not changed. Needs READ on the topics.

    Run it again with the same directory after it was interrupted: what is there is checked and not read again.

    \b
    Examples:
      ktriage rescue read --bootstrap-server kafka-1:9092 recovery.json --to ./rescue
      ktriage rescue read --cluster production recovery.json --to /backup/rescue --rate 50MB
    """
    from console.cli.recovery.rescue_plan import read_rescue  # noqa: PLC0415  # not for --help
    from console.operations.elections.plan_file_checks import WHOLE  # noqa: PLC0415
    from console.operations.rescue.rescue_read import RescueRequest  # noqa: PLC0415

    request = RescueRequest(to, bytes_per_second(rate))
    return read_rescue(run, plan, WHOLE, request, rows)


def show(
    run: Run,
    *,
    directory: RescueDirectory,
    records: Annotated[
        int, typer.Option("--records", metavar="N", min=0, help="Show the first N records of each branch.")
    ] = 0,
    rows: Rows = 20,
) -> int:
    """Shows what a rescue directory holds: offsets, records, bytes, times, compression, and how transactions ended.
    Every batch's checksum is checked. Keys and values are shown as text, or else in hexadecimal digits; records
    that are compressed with snappy, lz4 or zstd are counted, and kafka-dump-log shows them. No cluster is asked.

    \b
    Examples:
      ktriage rescue show ./rescue
      ktriage rescue show ./rescue --records 5 --output json
    """
    from console.cli.recovery.rescue_show import show_rescue  # noqa: PLC0415  # not for --help

    return show_rescue(run, directory, records=records, rows=rows, check=False)


def verify(run: Run, *, directory: RescueDirectory, rows: Rows = 20) -> int:
    """Checks a rescue directory: every file against the SHA-256 of its manifest, every batch against its own
    checksum, and that every branch is complete. The exit status is 0 only if all of it is. No cluster is asked.

    \b
    Example:
      ktriage rescue verify ./rescue
    """
    from console.cli.recovery.rescue_show import show_rescue  # noqa: PLC0415  # not for --help

    return show_rescue(run, directory, records=0, rows=rows, check=True)


VERBS = (
    Verb("read", "Read what a plan's elections cut off.", connected(read)),
    Verb("show", "Show what a rescue directory holds.", connected(show, needed=False)),
    Verb("verify", "Check a rescue directory's files and batches.", connected(verify, needed=False)),
)
