"""``ktriage disk``: its verbs and their options."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from backends.disk_scan.scan_values import ScanDepth
from console.cli.base.options import OutputFormat, Rows
from console.cli.base.run import Output
from console.cli.base.verbs import Verb

HELP = """\
Reads the log dirs of a broker from its disk: a dead broker's, a mounted volume, a copy. Files are opened for
reading only, and nothing is written to the dirs. What is read is evidence for ktriage plan --evidence: the replica
then counts as answered, and cannot be chosen.

\b
Examples:
  ktriage disk scan /var/lib/kafka/data-1 /var/lib/kafka/data-2
  ktriage disk scan --output json /mnt/broker-3 > broker-3.json
  ktriage disk script > scan.py
  ssh HOST python3 - /var/lib/kafka/data < scan.py > broker-3.json
"""


class Checksums(StrEnum):
    """Which batches' checksums are checked."""

    UNFLUSHED = "unflushed"
    ALL = "all"
    NONE = "none"


def scan(
    ctx: typer.Context,
    *,
    dirs: Annotated[
        list[Path], typer.Argument(metavar="DIR", help="A log dir, as in log.dirs.", show_default=False)
    ],
    checksums: Annotated[
        Checksums,
        typer.Option(
            "--checksums",
            help="Check the checksums of what the broker had not flushed for certain, of all batches, or of none.",
        ),
    ] = Checksums.UNFLUSHED,
    every_batch: Annotated[
        bool,
        typer.Option(
            "--every-batch",
            help="Read every batch. Without it, flushed batches are skipped where the index of their segment tells"
            " their leader epoch.",
        ),
    ] = False,
    rows: Rows = 20,
    output: OutputFormat = Output.TABLE,
) -> int:
    """Shows whose the dirs are, and where every log starts and ends: epochs, high watermark, a torn or damaged
    tail, copies that are being moved or deleted, and strays. Give all log dirs of the broker at once.

    If the dirs are of several nodes, their metadata logs are compared: which is the longest, and what the others
    lack of it.

    Batches that the broker had flushed are skipped where the index of their segment tells their leader epoch; the
    epochs and the ends are the same. Damage in the middle of a flushed segment is then not noticed: if you suspect
    the disk, use --checksums all, which reads every byte.

    Logs that lost records at their end come first. The broker may be running: then its newest batches may look
    torn.

    \b
    Examples:
      ktriage disk scan /var/lib/kafka/data-1 /var/lib/kafka/data-2
      ktriage disk scan --checksums all /mnt/broker-3
      ktriage disk scan --output json /mnt/broker-3 > broker-3.json
    """
    from console.jobs.disks.disk_scan_run import scan_disks  # noqa: PLC0415  # not for --help

    return scan_disks(ctx.obj, dirs, ScanDepth(checksums, every_batch), rows, json=output == Output.JSON)


def script(ctx: typer.Context) -> int:
    """Prints the scan as one Python file, for hosts where ktriage is not installed. It needs Python 3.8 or newer
    and nothing else, and writes the same JSON as ktriage disk scan --output json.

    \b
    Examples:
      ktriage disk script > scan.py
      ssh HOST python3 - /var/lib/kafka/data < scan.py > broker-3.json
      kubectl exec -i kafka-3 -- python3 - /var/lib/kafka/data < scan.py > broker-3.json
    """
    from console.jobs.disks.disk_scan_run import print_script  # noqa: PLC0415  # not for --help

    return print_script(ctx.obj)


VERBS = (
    Verb("scan", "What the log dirs of a broker hold, read from its disk.", scan),
    Verb("script", "The scan as one Python file, to be piped to the broker's host.", script),
)
