"""``ktriage groups``: its verbs and their options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from console.cli.base import declared
from console.cli.base.declaration import argument, option
from console.cli.base.options import connected, stated
from console.cli.base.run import Run
from console.cli.base.verbs import Verb
from console.errors import InputError

if TYPE_CHECKING:
    from console.jobs.consumers.group_offsets import GroupSelection

HELP = """\
Shows which consumer groups an election affects, and puts their committed offsets right.

An election that cuts off a part of a log leaves groups behind that have read that part. Their committed offset
points behind records of the kept log that they have never seen, and they skip those without an error once the log
has grown past it. The place to go back to is where the two logs part.

\b
Examples:
  ktriage groups --bootstrap-server kafka-1:9092
  ktriage groups show --bootstrap-server kafka-1:9092 recovery.json
  ktriage groups fix --bootstrap-server kafka-1:9092 recovery.json
"""

PLAN = argument("[PLAN]", "The plan file, before or after it is applied.", None)
GROUPS = option("--group GROUP", "Only this group. May be repeated.")


def show(
    run: Run,
    *,
    plan: Path | None = PLAN,
    group: list[str] | None = GROUPS,
    topic: list[str] | None = declared.TOPICS,
    every: bool = option("--all", "Also the offsets of groups that read on where they should."),
    recovery_duration_ms: int = declared.RECOVERY_DURATION_MS,
    rows: int = declared.ROWS,
) -> int:
    """Shows, for each committed offset, where the last record that the group has read is: in the common prefix of
    the logs, on the branch that is kept, on the branch that is cut off, or beyond the end of the log. With a
    plan, before or after it is applied: on the plan's partitions, against the log that the plan chooses. Without
    a plan the leaders' logs are compared with the committed epochs and offsets.

    Where __consumer_offsets is offline, or a coordinator does not answer, this is said: groups may then be
    missing. Needs DESCRIBE on the cluster (or on the groups), and on the topics. Nothing is changed. The exit
    status is 1 if a group is not known to read on where it should.

    \b
    Examples:
      ktriage groups show --bootstrap-server kafka-1:9092 recovery.json
      ktriage groups show --cluster production --group billing --all
    """
    from console.jobs.consumers.consumer_views import show_groups  # noqa: PLC0415  # not for --help

    return show_groups(
        run, _selection(plan, group, topic), plan, recovery_duration_ms / 1000, rows, every=every
    )


def fix(
    run: Run,
    *,
    plan: Path | None = PLAN,
    undo: bool = option(
        "--undo",
        "Put back what the last fix from this host replaced (journal); with --group, the last of each.",
    ),
    group: list[str] | None = GROUPS,
    topic: list[str] | None = declared.TOPICS,
    uncertain: bool = option(
        "--uncertain",
        "Also groups of which it is not certain which branch they have read: they read records again.",
    ),
    export: Path | None = option(
        "--export FILE", "Send nothing; write a file for kafka-consumer-groups --reset-offsets --from-file."
    ),
    dry_run: bool = option("--dry-run", "Show what would be committed, and send nothing."),
    yes: bool = declared.YES,
    reason: str | None = declared.REASON,
    recovery_duration_ms: int = declared.RECOVERY_DURATION_MS,
    rows: int = declared.ROWS,
) -> int:
    """Commits, for the groups on the branch that was cut off, the offset where the two logs part. Only for groups
    without members: Kafka refuses it for others, and they are shown with their members. The old offsets are in the
    journal before anything is sent, and --undo puts them back where the group has not committed since.

    Needs READ on the groups and on the topics, beside what ktriage groups show needs.

    \b
    Examples:
      ktriage groups fix --bootstrap-server kafka-1:9092 recovery.json --dry-run
      ktriage groups fix --cluster production recovery.json --export offsets.csv
      ktriage groups fix --cluster production --undo
    """
    if undo == (plan is not None):
        raise InputError("give either a plan file or --undo")
    if undo and (uncertain or export is not None or topic):
        raise InputError("--undo does not go with --topic, --uncertain or --export")
    quiet = dry_run or export is not None
    why = stated(reason, asked=not yes or quiet)
    from console.jobs.consumers.consumer_views import fix_groups  # noqa: PLC0415  # not for --help
    from console.jobs.consumers.fix_groups import FixGroups  # noqa: PLC0415

    change = FixGroups(
        _selection(plan, group, topic),
        run.target.title,
        why,
        recovery_duration_ms / 1000,
        uncertain=uncertain,
        undo=undo,
        dry_run=quiet,
        export=export,
    )
    return fix_groups(run, change, plan, ask=not yes, rows=rows)


def _selection(plan: Path | None, groups: list[str] | None, topics: list[str] | None) -> GroupSelection:
    from console.jobs.consumers.group_offsets import GroupSelection  # noqa: PLC0415
    from console.plan_files import read  # noqa: PLC0415

    return GroupSelection(None if plan is None else read(plan), tuple(groups or ()), tuple(topics or ()))


DEFAULT_VERB = "show"
VERBS = (
    Verb("show", "Where the committed offsets of the groups lie.", connected(show)),
    Verb("fix", "Commit the offsets that groups have to go back to, or undo it.", connected(fix)),
)
