"""``ktriage transactions``: its verbs and their options."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from console.cli.base import declared
from console.cli.base.declaration import argument, option
from console.cli.base.options import connected, stated
from console.cli.base.run import Run
from console.cli.base.verbs import Verb
from console.errors import InputError

HELP = """\
Shows transactions that an election has left hanging, and ends them as they were decided.

An unclean election can cut off the marker that ends a transaction. Consumers that read committed records then
stand still at its first record, for good. Kafka's own tool can only abort such a transaction; where it was
committed, that would hide records that were acknowledged.

\b
Examples:
  ktriage transactions --bootstrap-server kafka-1:9092
  ktriage transactions show --bootstrap-server kafka-1:9092 recovery.json
  ktriage transactions fix --bootstrap-server kafka-1:9092 recovery.json
"""

PLAN = argument("[PLAN]", "A plan file: only its partitions. Default: all.", None)


class OutcomeName(StrEnum):
    """What --outcome takes."""

    COMMIT = "commit"
    ABORT = "abort"


def show(
    run: Run,
    *,
    plan: Path | None = PLAN,
    topic: list[str] | None = declared.TOPICS,
    rescue: Path | None = declared.RESCUED_MARKERS,
    rows: int = declared.ROWS,
) -> int:
    """Shows every transaction that is open in a partition's log, and what became of it: open and alive; hanging,
    was committed; hanging, was aborted; may hang, outcome unknown. The leaders tell what is open, the coordinators
    what they know of it, and the log of __transaction_state, or a rescue, how it was decided. It says how many
    offsets wait behind it, and which groups have committed exactly the offset where they would wait.

    Needs READ on the topics and on __transaction_state, and DESCRIBE on the transactional ids. Nothing is changed.
    The exit status is 1 if a transaction is hanging, or if that is not known.

    \b
    Examples:
      ktriage transactions show --bootstrap-server kafka-1:9092 recovery.json
      ktriage transactions show --bootstrap-server kafka-1:9092 recovery.json --rescue ./rescue
      ktriage transactions show --cluster production --topic payments
    """
    from console.jobs.consumers.consumer_views import show_transactions  # noqa: PLC0415  # not for --help

    return show_transactions(run, plan, tuple(topic or ()), rescue, rows)


def fix(
    run: Run,
    *,
    plan: Path | None = PLAN,
    topic: list[str] | None = declared.TOPICS,
    rescue: Path | None = declared.RESCUED_MARKERS,
    outcome: OutcomeName | None = option(
        "--outcome", "With --producer-id: how the transaction ended, where that is not certain otherwise."
    ),
    producer_id: int | None = option(
        "--producer-id N", "Only this producer's transactions; with --outcome.", min=0
    ),
    dry_run: bool = option("--dry-run", "Show what would be written, and send nothing."),
    yes: bool = declared.YES,
    reason: str | None = declared.REASON,
    rows: int = declared.ROWS,
) -> int:
    """Writes the marker that a hanging transaction lost, to the partition's leader: COMMIT where it was committed,
    ABORT where it was aborted. A transaction of which this is not certain is left, unless you name its outcome. A
    marker cannot be taken back. Afterwards the partitions are read again.

    Needs ALTER on the cluster (WriteTxnMarkers), beside what ktriage transactions show needs.

    \b
    Examples:
      ktriage transactions fix --bootstrap-server kafka-1:9092 recovery.json --dry-run
      ktriage transactions fix --cluster production --topic payments --producer-id 4001 --outcome commit
    """
    if plan is None and not topic:
        raise InputError("give a plan file, or --topic")
    if (outcome is None) != (producer_id is None):
        raise InputError("--outcome and --producer-id go together")
    why = stated(reason, asked=not yes or dry_run)
    from console.jobs.consumers.consumer_views import fix_transactions, selection_words  # noqa: PLC0415
    from console.jobs.consumers.fix_transactions import FixTransactions, NamedOutcome  # noqa: PLC0415
    from console.plan_files import read  # noqa: PLC0415

    named = None
    if outcome is not None and producer_id is not None:
        named = NamedOutcome(producer_id, outcome is OutcomeName.COMMIT)
    from console.rescue_files.rescued_branch import rescue_of  # noqa: PLC0415

    parsed = None if plan is None else read(plan)
    change = FixTransactions(
        parsed,
        tuple(topic or ()),
        run.target.title,
        why,
        named,
        dry_run,
        rescue_of(rescue, parsed),
    )
    words = selection_words(plan, topic or (), rescue)
    if outcome is not None:
        words = (*words, "--producer-id", str(producer_id), "--outcome", outcome.value)
    return fix_transactions(run, change, words, ask=not yes, rows=rows)


DEFAULT_VERB = "show"
VERBS = (
    Verb("show", "Which transactions are open, and what became of them.", connected(show)),
    Verb("fix", "Write the markers that hanging transactions lost.", connected(fix)),
)
