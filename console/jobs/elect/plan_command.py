"""``ktriage plan``."""

from __future__ import annotations

from pathlib import Path

from backends.base.answers import PICTURE_WAIT
from console.cli.base import declared
from console.cli.base.declaration import REQUIRED, argument, option
from console.cli.base.options import accepted, connected, without_cluster
from console.cli.base.partition_options import selection, words
from console.cli.base.run import Run
from console.errors import InputError
from console.jobs.pipeline.job_options import interruptible
from recovery.ranking import Ranking
from recovery.strategy import Strategy

NEW_PLAN_FILE = argument("PLAN", "The new plan file.")


def plan(
    run: Run,
    *,
    file: Path = NEW_PLAN_FILE,
    all_offline_partitions: bool = declared.ALL_OFFLINE,
    topic: list[str] | None = declared.TOPICS,
    partition: list[int] | None = declared.PARTITIONS,
    path_to_json_file: Path | None = declared.PATH_TO_JSON_FILE,
    recovery_duration_ms: int = declared.RECOVERY_DURATION_MS,
    ranking: Ranking = declared.RANKING,
    strategy: Strategy = declared.STRATEGY,
    accept_unchecked: bool = declared.ACCEPT_UNCHECKED,
    reason: str | None = declared.REASON,
    evidence: list[Path] | None = declared.EVIDENCE_FILES,
    metadata_dir: Path | None = declared.METADATA_DIR,
    rows: int = declared.ROWS,
) -> int:
    """Reads the log of every replica that its broker can still show, chooses a leader for each offline
    partition, and writes the choices to a new file, together with the preconditions that are checked when the
    plan is applied. Nothing is changed. If a member of ISR or ELR may come back, waiting may cost nothing:
    then no leader is chosen, and the plan names the brokers to wait for.

    --from RESULT writes the plan file of a plan that ktriage pipeline plan made from a snapshot. It has its
    own options: ktriage plan --from RESULT --help.

    --evidence FILE counts the disk of a broker that is down, read by ktriage disk scan, as that broker's answer.
    --metadata-dir DIR is a copied metadata log, for when the active controller cannot be reached.

    \b
    Examples:
      ktriage plan --bootstrap-server kafka-1:9092 recovery.json
      ktriage plan --cluster production --topic orders --strategy aggressive orders.json
      ktriage plan --bootstrap-server kafka-1:9092 --evidence broker-3.json recovery.json
      ktriage plan --from results --cluster 4L6g3nShT-eMCtK--X86sw recovery.json
    """
    if strategy is Strategy.NONE:
        raise InputError(
            "--strategy none chooses no leader, so there is no plan to write; ktriage replicas shows the logs"
        )
    named = bool(topic or partition or path_to_json_file)
    if named and all_offline_partitions:
        raise InputError("--all-offline-partitions excludes --topic and --path-to-json-file")
    # Without a selection: all offline partitions. With --topic alone: the offline partitions of that topic.
    chosen = selection(topic, partition, path_to_json_file, offline=not (partition or path_to_json_file))
    from console.cli.base.partition_options import read_evidence  # noqa: PLC0415  # not for --help
    from console.jobs.elect.recover_partitions import ChoiceOptions  # noqa: PLC0415
    from console.jobs.elect.recover_view import Report, choose_leaders  # noqa: PLC0415  # not for --help
    from console.reading.copied_log import read_metadata_dir  # noqa: PLC0415

    chosen_by = words(topic, partition, path_to_json_file)
    disks, copy = read_evidence(evidence, ranking), read_metadata_dir(metadata_dir)
    options = ChoiceOptions(
        chosen,
        ranking,
        strategy,
        recovery_duration_ms / 1000,
        chosen_by,
        disks,
        run.target.importance,
        copy,
        accepted(reason, strategy, accept_unchecked=accept_unchecked),
    )
    report = Report("plan", rows=rows)
    return choose_leaders(run, options, report, file=file, picture_wait=PICTURE_WAIT)


def plan_from_result(
    run: Run,
    *,
    file: Path = NEW_PLAN_FILE,
    source: str = option(
        "--from RESULT",
        "The result directory of ktriage pipeline plan, or a directory above it (then the newest"
        " result is taken).",
        REQUIRED,
    ),
    cluster: str | None = option(
        "--cluster CLUSTER_ID", "The cluster's id. Default: the only cluster of the result."
    ),
    rows: int = declared.ROWS,
) -> int:
    """Writes a plan that ktriage pipeline plan made for one cluster to a new file. No cluster is contacted:
    the plan is as old as its snapshot, and ktriage apply checks every precondition.

    \b
    Examples:
      ktriage plan --from results --cluster 4L6g3nShT-eMCtK--X86sw recovery.json
    """
    with interruptible():
        from console.jobs.elect.plan_from_result import write_plan_file  # noqa: PLC0415  # not for --help

        return write_plan_file(run.program, source, cluster, file, rows)


command = connected(plan, from_disks=True)
FORMS = {"--from": without_cluster(plan_from_result, output=False)}
"""With this option, the command is this other one."""
