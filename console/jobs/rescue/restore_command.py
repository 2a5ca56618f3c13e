"""``ktriage restore``."""

from __future__ import annotations

import re
from pathlib import Path

from console.cli.base import declared
from console.cli.base.declaration import option
from console.cli.base.options import bytes_per_second, connected, stated
from console.cli.base.run import Run
from console.errors import InputError
from console.rescue_files.restore_selection import RestoredTransactions
from recovery.plan.json_fields import is_topic_name


def restore(
    run: Run,
    *,
    directory: Path = declared.RESCUE_DIRECTORY,
    to_topic: str | None = option(
        "--to-topic NAME", "Write to the same partitions of this topic. It is created if it does not exist."
    ),
    to_source: bool = option("--to-source", "Write to the partitions that the records come from."),
    topic: list[str] | None = option("--topic TOPIC", "Only records of this topic. May be repeated."),
    transactions: RestoredTransactions = option(
        "--transactions",
        "committed: records of committed transactions, and those outside of any. open, aborted: only"
        " records of transactions without an end in the rescue, or of aborted ones.",
        RestoredTransactions.COMMITTED,
    ),
    after_offset: int | None = option("--after-offset N", "Only records with a higher offset.", min=0),
    before_offset: int | None = option("--before-offset N", "Only records with a lower offset.", min=0),
    since: str | None = option("--from TIME", "Only records from this time on: 2026-11-22T18:13 (UTC)."),
    until: str | None = option("--to TIME", "Only records from before this time."),
    key: str | None = option("--key REGEX", "Only records whose whole key matches, as UTF-8 text."),
    only_keys_missing: bool = option(
        "--only-keys-missing",
        "Only records whose key has no newer record in the source now. A compacted topic takes records"
        " back to its source only with this.",
    ),
    mark: bool = option(
        "--mark", "Add the header ktriage-rescued-from to each record: partition, offset, epoch, broker."
    ),
    incomplete: bool = option(
        "--incomplete",
        "Also what there is of branches that could not be read whole, and the sound batches of damaged"
        " files.",
    ),
    again: bool = option(
        "--again", "With --yes: write also what was written to the same target before, from another rescue."
    ),
    rate: str | None = declared.RATE,
    dry_run: bool = option("--dry-run", "Show what goes where, and send nothing."),
    yes: bool = declared.YES,
    reason: str | None = declared.REASON,
    rows: int = declared.ROWS,
) -> int:
    """Writes rescued records to their source again, or to a topic of their own. Batches are sent as they are, with
    their compression; only producer, sequence and transaction are taken out of them. Batches that a broker would
    refuse (thinned by compaction, or too large for the topic), and those of which only a part is wanted, are
    encoded anew with the same keys, values, headers and timestamps, and counted. Transaction markers are never
    written. Each partition keeps the order of the rescue; records that were written since stay before it.

    Run it again after it was interrupted: it goes on, and a batch that the broker has already is not appended
    twice. At the end the records are read back and counted. Needs WRITE and READ on the topic, and CREATE for a
    new one.

    \b
    Examples:
      ktriage restore --bootstrap-server kafka-1:9092 ./rescue --to-topic orders-rescued --dry-run
      ktriage restore --cluster production ./rescue --to-source --topic orders --rate 10MB
      ktriage restore --cluster production ./rescue --to-source --topic customers --only-keys-missing
    """
    if (to_topic is None) == (not to_source):
        raise InputError("give either --to-topic NAME or --to-source")
    if to_topic is not None and not is_topic_name(to_topic):
        raise InputError(
            f"--to-topic {to_topic!r}: a topic's name has at most 249 letters, digits, '.', '_' and '-'"
        )
    why = stated(reason, asked=not yes or dry_run)
    from console.cli.base.option_values import moment_ms  # noqa: PLC0415
    from console.jobs.rescue.rescue_view import restore_rescue  # noqa: PLC0415  # not for --help
    from console.jobs.rescue.restore_records import RestoreRecords  # noqa: PLC0415
    from console.rescue_files.restore_selection import RecordFilter, RestoreSelection  # noqa: PLC0415

    from_ms = None if since is None else moment_ms("--from", since)
    to_ms = None if until is None else moment_ms("--to", until)
    if from_ms is not None and to_ms is not None and from_ms >= to_ms:
        raise InputError(f"--from {since} is not before --to {until}: no record is chosen")
    if after_offset is not None and before_offset is not None and after_offset + 1 >= before_offset:
        raise InputError(
            f"no offset is above --after-offset {after_offset} and below --before-offset {before_offset}"
        )
    only = RecordFilter(
        after_offset,
        from_ms,
        to_ms,
        _expression(key),
        only_keys_missing,
        before_offset,
    )
    change = RestoreRecords(
        directory,
        to_topic,
        RestoreSelection(transactions, incomplete, tuple(topic or ()), only, mark),
        run.target.title,
        why,
        bytes_per_second(rate),
        dry_run,
        again=again,
    )
    return restore_rescue(run, change, ask=not yes, rows=rows)


def _expression(key: str | None) -> str | None:
    """Raises InputError where it is no regular expression."""
    try:
        return None if key is None else re.compile(key).pattern
    except re.error as error:
        raise InputError(f"--key {key!r} is no regular expression: {error}") from None


command = connected(restore)
