"""``ktriage disk``: its verbs and their options."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from backends.disk_scan.scan_values import ScanDepth
from console.cli.base import declared
from console.cli.base.declaration import argument, option
from console.cli.base.options import without_cluster
from console.cli.base.run import Run
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
    run: Run,
    *,
    dirs: list[Path] = argument("DIR", "A log dir, as in log.dirs."),
    checksums: Checksums = option(
        "--checksums",
        "Check the checksums of what the broker had not flushed for certain, of all batches, or of none.",
        Checksums.UNFLUSHED,
    ),
    every_batch: bool = option(
        "--every-batch",
        "Read every batch. Without it, flushed batches are skipped where the index of their segment tells"
        " their leader epoch.",
    ),
    rows: int = declared.ROWS,
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

    return scan_disks(run.program, dirs, ScanDepth(checksums, every_batch), rows, json=run.json)


def script(run: Run) -> int:
    """Prints the scan as one Python file, for hosts where ktriage is not installed. It needs Python 3.8 or newer
    and nothing else, and writes the same JSON as ktriage disk scan --output json.

    \b
    Examples:
      ktriage disk script > scan.py
      ssh HOST python3 - /var/lib/kafka/data < scan.py > broker-3.json
      kubectl exec -i kafka-3 -- python3 - /var/lib/kafka/data < scan.py > broker-3.json
    """
    from console.jobs.disks.disk_scan_run import print_script  # noqa: PLC0415  # not for --help

    return print_script(run.program)


VERBS = (
    Verb("scan", "What the log dirs of a broker hold, read from its disk.", without_cluster(scan)),
    Verb(
        "script",
        "The scan as one Python file, to be piped to the broker's host.",
        without_cluster(script, output=False),
    ),
)
