"""``ktriage heal``: its verbs and their options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from console.cli.base import declared
from console.cli.base.declaration import REQUIRED, argument, option
from console.cli.base.options import bytes_per_second, connected, stated
from console.cli.base.run import Run
from console.cli.base.verbs import Verb
from console.errors import InputError

if TYPE_CHECKING:
    from console.jobs.heal.heal_replicas import HealLimits
    from console.jobs.heal.heal_survey import HealSelection

HELP = """\
Brings partitions back to full strength after a broker that does not come back: new replicas on other brokers.

Every replica that is left stays where it is. New ones go to racks without a replica, then to the brokers that hold
the least, and only where they fit on every log dir with a tenth of it left free.

\b
Examples:
  ktriage heal recovery.json --gone-for-good --bootstrap-server kafka-1:9092
  ktriage heal show --cluster production --broker-id 3 --gone-for-good --export heal.json
"""

PLAN = argument(
    "[PLAN]",
    "A plan file: only its partitions, and without --broker-id every broker of theirs that is not up.",
    None,
)
GONE_BROKERS = option("--broker-id N", "A broker that does not come back. May be repeated.", min=0)
GONE_FOR_GOOD = option("--gone-for-good", "Required: its disks do not come back either.")
BATCH_SIZE = option("--batch-size N", "Partitions that are moved at the same time.", 100, min=1)

THROTTLE = option(
    "--throttle BYTES",
    "Bytes a second that each broker sends at most, and that each takes at most, for the new replicas,"
    " such as 50MB or 8MiB; none: as fast as they can. It has to be more than what producers write to these"
    " partitions, or a copy never ends.",
    "50MB",
)
DRY_RUN = option("--dry-run", "Show what would be done, and send nothing.")


def show(
    run: Run,
    *,
    plan: Path | None = PLAN,
    broker_id: list[int] | None = GONE_BROKERS,
    gone_for_good: bool = GONE_FOR_GOOD,
    export: Path | None = option(
        "--export FILE",
        "Write the plan for kafka-reassign-partitions: with more than one batch, FILE-1, FILE-2 …, to be"
        " carried out one after the other. Never overwritten.",
    ),
    batch_size: int = BATCH_SIZE,
    rows: int = declared.ROWS,
) -> int:
    """Shows which new replicas the partitions of a broker that does not come back would get, and how much has to
    be copied. The partitions with the fewest replicas in sync come first. Nothing is sent.

    Not planned, and named: partitions without a leader, those that are being reassigned, and those for which
    no broker has room. Where Cruise Control runs, it is said what to give it.

    \b
    Examples:
      ktriage heal recovery.json --gone-for-good --bootstrap-server kafka-1:9092
      ktriage heal show --cluster production --broker-id 3 --gone-for-good --export heal.json
    """
    from console.jobs.heal.heal_view import show_heal  # noqa: PLC0415  # not for --help

    selection = _selection(plan, broker_id, gone_for_good)
    return show_heal(run, selection, plan, export, batch=batch_size, rows=rows)


def _selection(plan: Path | None, broker_id: list[int] | None, gone_for_good: bool) -> HealSelection:
    """Raises InputError."""
    from console.jobs.heal.heal_survey import HealSelection  # noqa: PLC0415
    from console.plan_files import read  # noqa: PLC0415

    if plan is None and not broker_id:
        raise InputError("give a plan file, or --broker-id")
    return HealSelection(frozenset(broker_id or ()), None if plan is None else read(plan), gone_for_good)


def apply(
    run: Run,
    *,
    plan: Path | None = PLAN,
    broker_id: list[int] | None = GONE_BROKERS,
    gone_for_good: bool = GONE_FOR_GOOD,
    throttle: str = THROTTLE,
    batch_size: int = BATCH_SIZE,
    dry_run: bool = DRY_RUN,
    yes: bool = declared.YES,
    reason: str | None = declared.REASON,
    rows: int = declared.ROWS,
) -> int:
    """Gives the partitions new replicas, in batches, and waits until each has copied its log and is in sync. Every
    partition is judged again right before its batch is sent. The throttle is set first, for the new replicas
    only, and removed at the end; if this run is killed, ktriage resume waits for the copies and removes it.

    Ctrl-C cancels the batch that is being copied, removes the throttle, and leaves what was moved before.

    Needs ALTER on the cluster, and for the throttle ALTER_CONFIGS and DESCRIBE_CONFIGS on the cluster and on the
    topics.

    \b
    Examples:
      ktriage heal apply recovery.json --gone-for-good --bootstrap-server kafka-1:9092
      ktriage heal apply --cluster production --broker-id 3 --gone-for-good --throttle 20MB --batch-size 10
    """
    why = stated(reason, asked=not yes or dry_run)
    from console.jobs.heal.heal_replicas import HealReplicas  # noqa: PLC0415
    from console.jobs.heal.heal_view import apply_heal  # noqa: PLC0415  # not for --help

    selection = _selection(plan, broker_id, gone_for_good)
    limits = _limits(throttle, batch_size)
    change = HealReplicas(selection, run.target.title, why, limits, dry_run=dry_run)
    return apply_heal(run, change, plan, ask=not yes, rows=rows)


def begin_empty(
    run: Run,
    *,
    broker_id: list[int] | None = GONE_BROKERS,
    gone_for_good: bool = GONE_FOR_GOOD,
    dry_run: bool = DRY_RUN,
    yes: bool = declared.YES,
    reason: str | None = declared.REASON,
    rows: int = declared.ROWS,
) -> int:
    """Gives partitions new replicas that have none left, because all of theirs were on brokers that do not come
    back, and lets one of the new ones lead with an empty log: EVERY RECORD of them is lost, and offsets begin at 0.
    There is no undo. All of those brokers have to be named. First try to bring one of them back, or its disk:
    ktriage disk scan tells what is on a disk, ktriage rescue read saves it, and ktriage restore writes it back
    afterwards. If this run is killed, ktriage resume sends the election that is left. Needs ALTER on the cluster.

    \b
    Examples:
      ktriage heal begin-empty --cluster production --broker-id 3 --broker-id 4 --gone-for-good --dry-run
    """
    why = stated(reason, asked=not yes or dry_run)
    from console.jobs.heal.heal_replicas import HealLimits, HealReplicas  # noqa: PLC0415
    from console.jobs.heal.heal_view import apply_heal  # noqa: PLC0415  # not for --help

    selection = _selection(None, broker_id, gone_for_good)
    limits = HealLimits(None, 1)
    change = HealReplicas(selection, run.target.title, why, limits, empty=True, dry_run=dry_run)
    return apply_heal(run, change, None, ask=not yes, rows=rows)


def undo(
    run: Run,
    *,
    throttle: str = THROTTLE,
    batch_size: int = BATCH_SIZE,
    dry_run: bool = DRY_RUN,
    yes: bool = declared.YES,
    reason: str | None = declared.REASON,
    rows: int = declared.ROWS,
) -> int:
    """Takes back what the newest ktriage heal apply from this host did, as its journal has it: copies in progress
    are cancelled, and replicas that were moved go back to their broker, if that is up after all. Partitions that
    somebody else has changed since are left, and named.

    \b
    Examples:
      ktriage heal undo --cluster production --dry-run
    """
    why = stated(reason, asked=not yes or dry_run)
    from console.jobs.heal.heal_replicas import HealReplicas  # noqa: PLC0415
    from console.jobs.heal.heal_survey import HealSelection  # noqa: PLC0415
    from console.jobs.heal.heal_view import apply_heal  # noqa: PLC0415  # not for --help

    limits = _limits(throttle, batch_size)
    change = HealReplicas(HealSelection(), run.target.title, why, limits, undo=True, dry_run=dry_run)
    return apply_heal(run, change, None, ask=not yes, rows=rows)


def assign_again(
    run: Run,
    *,
    unread: bool = option("--unread", "Also where the log that was kept was not read: the journal says so."),
    throttle: str = THROTTLE,
    batch_size: int = BATCH_SIZE,
    dry_run: bool = DRY_RUN,
    yes: bool = declared.YES,
    reason: str | None = declared.REASON,
    rows: int = declared.ROWS,
) -> int:
    """Assigns the replicas again that ktriage apply --keep-log-of took away, as this host's journal has it: the
    last step. The broker has to be up, and copies the whole log from the leader. Left out where the log that was
    kept has not been read: once its replica is assigned again, Kafka deletes that log at a start of the broker if
    the new log begins behind its end. Partitions that somebody else has changed since are left, and named.

    \b
    Examples:
      ktriage heal assign-again --cluster production --dry-run
      ktriage heal assign-again --cluster production --throttle 20MB
    """
    why = stated(reason, asked=not yes or dry_run)
    from console.jobs.heal.heal_replicas import HealReplicas  # noqa: PLC0415
    from console.jobs.heal.heal_survey import HealSelection  # noqa: PLC0415
    from console.jobs.heal.heal_view import apply_heal  # noqa: PLC0415  # not for --help

    limits = _limits(throttle, batch_size)
    change = HealReplicas(
        HealSelection(), run.target.title, why, limits, again=True, unread=unread, dry_run=dry_run
    )
    return apply_heal(run, change, None, ask=not yes, rows=rows)


def unregister(
    run: Run,
    *,
    broker_id: int = option("--broker-id N", "The broker that does not come back.", REQUIRED, min=0),
    gone_for_good: bool = GONE_FOR_GOOD,
    dry_run: bool = DRY_RUN,
    yes: bool = declared.YES,
    reason: str | None = declared.REASON,
) -> int:
    """Removes the registration of a broker that does not come back: the last step. Refused while the broker is up,
    has a replica of any partition or is a voter of the metadata quorum, and where one of these is not known. It
    needs DESCRIBE on every topic and on the cluster, and ALTER on the cluster.

    \b
    Examples:
      ktriage heal unregister --cluster production --broker-id 3 --gone-for-good
    """
    if not gone_for_good:
        raise InputError("give --gone-for-good if the broker does not come back")
    why = stated(reason, asked=not yes or dry_run)
    from console.jobs.heal.heal_view import unregister_broker  # noqa: PLC0415  # not for --help
    from console.jobs.heal.unregister_broker import UnregisterBroker  # noqa: PLC0415

    change = UnregisterBroker(broker_id, run.target.title, why, run.target.command, dry_run)
    return unregister_broker(run, change, ask=not yes)


def _limits(throttle: str, batch_size: int) -> HealLimits:
    """Raises InputError."""
    from console.jobs.heal.heal_replicas import HealLimits  # noqa: PLC0415

    rate = None if throttle.strip().lower() == "none" else bytes_per_second(throttle, "--throttle")
    return HealLimits(rate, batch_size)


DEFAULT_VERB = "show"
VERBS = (
    Verb("show", "Which new replicas there would be, and where.", connected(show)),
    Verb("apply", "Move the replicas, throttled and in batches.", connected(apply)),
    Verb("begin-empty", "Let partitions without any replica begin empty.", connected(begin_empty)),
    Verb("undo", "Cancel what is being copied, or move replicas back.", connected(undo)),
    Verb("assign-again", "Assign replicas again whose logs were kept, and read.", connected(assign_again)),
    Verb("unregister", "Remove the dead broker's registration, as the last step.", connected(unregister)),
)
