"""``ktriage rescue``: its verbs and their options."""

from __future__ import annotations

from pathlib import Path

from console.cli.base import declared
from console.cli.base.declaration import REQUIRED, argument, option
from console.cli.base.declared import own_words
from console.cli.base.options import bytes_per_second, connected
from console.cli.base.run import Run
from console.cli.base.verbs import Verb
from console.errors import InputError

HELP = """\
Reads what an election would cut off, before the election, so that it can be written back afterwards.

An unclean election makes every other replica truncate its log to that of the new leader. A replica without a leader
lets its whole log be read, beyond its high watermark too. A rescue directory holds Kafka's own segment files, which
kafka-dump-log reads, beside manifests with offsets, epochs and checksums (docs/files.md).

\b
Examples:
  ktriage rescue read --bootstrap-server kafka-1:9092 recovery.json --to ./rescue
  ktriage apply --bootstrap-server kafka-1:9092 recovery.json --rescue ./rescue
  ktriage restore --bootstrap-server kafka-1:9092 ./rescue --to-source
"""


def read(
    run: Run,
    *,
    plan: Path | None = argument("PLAN", "The plan file.", None),
    to: Path = option(
        "--to DIR",
        "The rescue directory: a new one, or one that an earlier run of the same plan did not finish.",
        REQUIRED,
    ),
    from_disk: list[Path] | None = option(
        "--from-disk DIR",
        "A log dir of a broker that is down, as in log.dirs: a mounted volume, a copy. May be repeated: give"
        " all log dirs of the broker.",
    ),
    topic: list[str] | None = option("--topic TOPIC", "Without a plan: only this topic. May be repeated."),
    rate: str | None = declared.RATE,
    rows: int = declared.ROWS,
) -> int:
    """Reads every offset that a replica holds and the plan's chosen log does not: the tail from where the two logs
    differ, and the head before the chosen log's start. The cluster is not changed. Needs READ on the topics.

    Replicas whose broker answers are read from it. With --from-disk, what only a dead broker has is read from its
    log dirs, which are opened for reading only. Without a plan, the disks are compared with the present leaders:
    what an election has cut off may still be on them. The head may then be what the topic's retention has deleted.

    Run it again with the same directory after it was interrupted: what is there is checked and not read again.

    \b
    Examples:
      ktriage rescue read --bootstrap-server kafka-1:9092 recovery.json --to ./rescue
      ktriage rescue read --cluster production recovery.json --to /backup/rescue --rate 50MB
      ktriage rescue read --cluster production recovery.json --to ./rescue --from-disk /mnt/broker-3
      ktriage rescue read --cluster production --to ./rescue-3 --from-disk /mnt/broker-3 --topic orders
    """
    if plan is None and not from_disk:
        raise InputError("give a plan, or --from-disk DIR, or both")
    run.refuse_bundle("rescue read")
    if plan is not None and topic:
        raise InputError("--topic is for a rescue without a plan")
    from console.jobs.rescue.rescue_read import RescueRequest  # noqa: PLC0415
    from console.jobs.rescue.rescue_view import (  # noqa: PLC0415  # not for --help
        read_rescue,
        read_rescue_of_disks,
    )
    from console.plan_file_checks import WHOLE  # noqa: PLC0415

    request = RescueRequest(to, bytes_per_second(rate), log_dirs=tuple(from_disk or ()))
    if plan is None:
        return read_rescue_of_disks(run, request, topic or (), rows)
    return read_rescue(run, plan, WHOLE, request, rows)


def show(
    run: Run,
    *,
    directory: Path = declared.RESCUE_DIRECTORY,
    records: int = option("--records N", "Show the first N records of each branch.", 0, min=0),
    rows: int = declared.ROWS,
) -> int:
    """Shows what a rescue directory holds: offsets, records, bytes, times, compression, and how transactions ended.
    Every batch's checksum is checked. Keys, values and headers are shown as text, JSON in one line, or else in
    hexadecimal digits. No cluster is asked.

    \b
    Examples:
      ktriage rescue show ./rescue
      ktriage rescue show ./rescue --records 5 --output json
    """
    from console.jobs.rescue.rescue_view import show_rescue  # noqa: PLC0415  # not for --help

    return show_rescue(run, directory, records=records, rows=rows, check=False)


def verify(run: Run, *, directory: Path = declared.RESCUE_DIRECTORY, rows: int = declared.ROWS) -> int:
    """Checks a rescue directory: every file against the SHA-256 of its manifest, every batch against its own
    checksum, and that every branch is complete. The exit status is 0 only if all of it is. No cluster is asked.

    \b
    Example:
      ktriage rescue verify ./rescue
    """
    from console.jobs.rescue.rescue_view import show_rescue  # noqa: PLC0415  # not for --help

    return show_rescue(run, directory, records=0, rows=rows, check=True)


def waive(
    run: Run,
    *,
    broker_id: int = option("--broker-id N", "The broker whose disk is not read.", REQUIRED, min=0),
    topic: list[str] | None = option(
        "--topic TOPIC", "Only this topic of it. May be repeated. Default: all."
    ),
    reason: str = option("--reason TEXT", "Why not, for the journal.", REQUIRED, callback=own_words),
) -> int:
    """Says that the disk of a broker will not be read before the broker starts: after an election without that
    broker's log, every command names the disk until it is read, or waived so. The cluster is not changed.

    \b
    Example:
      ktriage rescue waive --cluster production --broker-id 3 --reason "its disk is destroyed"
    """
    if not reason.strip():
        raise InputError("--reason needs a text: the journal records why the disk is not read")
    from console.jobs.rescue.rescue_view import waive_disk  # noqa: PLC0415  # not for --help

    return waive_disk(run, broker_id, topic or (), reason.strip())


VERBS = (
    Verb("read", "Read what a plan's elections cut off.", connected(read)),
    Verb("show", "Show what a rescue directory holds.", connected(show, needed=False)),
    Verb("verify", "Check a rescue directory's files and batches.", connected(verify, needed=False)),
    Verb("waive", "Say that a broker's disk will not be read before it starts.", connected(waive)),
)
