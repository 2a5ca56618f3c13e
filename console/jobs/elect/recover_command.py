"""``ktriage recover`` and ``kafka-unclean-recovery``."""

from __future__ import annotations

from pathlib import Path

from backends.base.answers import PICTURE_WAIT
from console.cli.base import declared
from console.cli.base.declaration import option
from console.cli.base.options import accepted, connected
from console.cli.base.partition_options import selection
from console.cli.base.run import Run
from console.errors import InputError
from console.jobs.rescue.rescue_options import ELECT_UNRESCUED, NO_RESCUE, RESCUE_INTO, rescue_choice
from recovery.ranking import Ranking
from recovery.strategy import Strategy

STRATEGY = declared.STRATEGY.by_default(Strategy.AGGRESSIVE)


def recover(
    run: Run,
    *,
    path_to_json_file: Path | None = declared.PATH_TO_JSON_FILE,
    all_offline_partitions: bool = declared.ALL_OFFLINE,
    show_replica_info: bool = option("--show-replica-info", "Show the log of every replica as a table."),
    manual_recovery_output_file: Path | None = option(
        "--manual-recovery-output-file FILE",
        "Write the chosen leaders to a new file, for ktriage review and apply, or for"
        " kafka-elect-leaders. Excludes --automated-recovery.",
    ),
    automated_recovery: bool = option(
        "--automated-recovery", "Elect the chosen leaders. The plan is saved to the state directory first."
    ),
    dry_run: bool = option(
        "--dry-run", "Send nothing: write the file, if you name one, and print the summary."
    ),
    rescue: Path | None = RESCUE_INTO,
    no_rescue: bool = NO_RESCUE,
    rate: str | None = declared.RATE,
    elect_unrescued: bool = ELECT_UNRESCUED,
    reason: str | None = declared.REASON,
    recovery_duration_ms: int = declared.RECOVERY_DURATION_MS,
    recovery_election_attempts: int = declared.RECOVERY_ATTEMPTS,
    ranking: Ranking = declared.RANKING,
    strategy: Strategy = STRATEGY,
    accept_unchecked: bool = declared.ACCEPT_UNCHECKED,
    evidence: list[Path] | None = declared.EVIDENCE_FILES,
    metadata_dir: Path | None = declared.METADATA_DIR,
    keep_log_of: str | None = declared.KEEP_LOG_OF,
    rows: int = declared.ROWS,
) -> int:
    """Recovers offline partitions whose ISR and ELR are gone: reads the log of every replica that its broker
    can still show, chooses a leader for each partition, and then shows the logs, writes the choices to a
    file, or elects. Brokers that do not answer are asked again until --recovery-duration-ms is over, as long as
    their answer can change a choice. A partition that gets a leader meanwhile counts as recovered; one that does
    not exist, or cannot be recovered, keeps no other offline (exit status 1). After an election the other
    replicas truncate to the new leader's log: what that destroys is counted first, and --automated-recovery reads
    it first into a directory that is named before; --no-rescue declines that.

    At least one of --show-replica-info, --manual-recovery-output-file, --automated-recovery and --dry-run is
    required, and one of --path-to-json-file and --all-offline-partitions.

    \b
    Examples:
      kafka-unclean-recovery --bootstrap-server kafka-1:9092 --all-offline-partitions --show-replica-info
      kafka-unclean-recovery --bootstrap-server kafka-1:9092 --path-to-json-file lost.json \\
          --manual-recovery-output-file leaders.json
      kafka-unclean-recovery --bootstrap-server kafka-1:9092 --all-offline-partitions --automated-recovery
    """
    _refuse_wrong_mix(
        (show_replica_info, dry_run), manual_recovery_output_file is not None, automated_recovery, strategy
    )
    if (path_to_json_file is None) == (not all_offline_partitions):
        problem = "not both" if all_offline_partitions else "one of them"
        raise InputError(f"give --path-to-json-file or --all-offline-partitions, {problem}")
    if keep_log_of is not None and not automated_recovery:
        raise InputError("--keep-log-of is for --automated-recovery; ktriage apply has it for a plan")
    choice = rescue_choice(
        rescue, declined=no_rescue, rate=rate, elect_anyway=elect_unrescued, reason=reason or ""
    )
    chosen = selection(path=path_to_json_file, offline=all_offline_partitions)
    words = (
        ("--path-to-json-file", str(path_to_json_file))
        if path_to_json_file
        else ("--all-offline-partitions",)
    )
    from console.cli.base.partition_options import read_evidence  # noqa: PLC0415  # not for --help
    from console.jobs.elect import recover_view as recover_partitions  # noqa: PLC0415
    from console.jobs.elect.preserved_logs import brokers_to_keep  # noqa: PLC0415
    from console.jobs.elect.recover_partitions import ChoiceOptions, RecoverPartitions  # noqa: PLC0415
    from console.reading.copied_log import read_metadata_dir  # noqa: PLC0415

    disks, copy = read_evidence(evidence, ranking), read_metadata_dir(metadata_dir)
    options = ChoiceOptions(
        chosen,
        ranking,
        strategy,
        recovery_duration_ms / 1000,
        words,
        disks,
        run.target.importance,
        copy,
        accepted(reason, strategy, accept_unchecked=accept_unchecked),
    )
    report = recover_partitions.Report("recover", show_replica_info, rows)
    if automated_recovery and not dry_run:
        keep = None if keep_log_of is None else brokers_to_keep(keep_log_of)
        change = RecoverPartitions(
            options,
            (reason or "").strip(),
            run.target.title,
            recovery_election_attempts,
            keep_logs_of=keep,
            rescue=choice,
        )
        return recover_partitions.recover(run, change, report, ask=False)
    looks_only = manual_recovery_output_file is None and not dry_run
    return recover_partitions.choose_leaders(
        run,
        options,
        report,
        file=manual_recovery_output_file,
        dry_run=dry_run,
        picture_wait=PICTURE_WAIT if looks_only else None,
    )


def _refuse_wrong_mix(looks: tuple[bool, ...], writes: bool, elects: bool, strategy: Strategy) -> None:
    if not (any(looks) or writes or elects):
        raise InputError(
            "nothing to do: give at least one of --show-replica-info, --manual-recovery-output-file,"
            " --automated-recovery and --dry-run"
        )
    if elects and writes:
        raise InputError("--manual-recovery-output-file and --automated-recovery exclude each other")
    if strategy is Strategy.NONE and (elects or writes):
        raise InputError(
            "--strategy none chooses no leader: use it only with --show-replica-info or --dry-run"
        )


command = connected(recover, of_kafka=True)
