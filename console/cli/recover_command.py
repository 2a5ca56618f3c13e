"""``ktriage recover`` and ``kafka-unclean-recovery``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from console.cli.options import (
    AllOffline,
    Attempts,
    DurationMs,
    PathToJsonFile,
    RankingOption,
    Rows,
    StrategyOption,
    connected,
)
from console.cli.run import Run
from console.cli.selecting import selection
from console.cli.status import STATUS_HELP
from console.errors import InputError
from recovery.ranking import Ranking
from recovery.strategy import Strategy

HELP = f"""\
Recovers offline partitions whose ISR and ELR are gone: asks every surviving replica's broker how far its log
goes, chooses a leader for each partition, and shows the logs, writes the choice to a file, or elects. A
partition that came back by itself meanwhile counts as recovered. Whoever is elected, the other replicas
truncate to its log: what that destroys is counted first.

At least one of --show-replica-info, --manual-recovery-output-file, --automated-recovery and --dry-run is
required, and one of --path-to-json-file and --all-offline-partitions.

\b
Examples:
  kafka-unclean-recovery --bootstrap-server kafka-1:9092 --all-offline-partitions --show-replica-info
  kafka-unclean-recovery --bootstrap-server kafka-1:9092 --path-to-json-file lost.json \\
      --manual-recovery-output-file leaders.json
  kafka-unclean-recovery --bootstrap-server kafka-1:9092 --all-offline-partitions --automated-recovery

{STATUS_HELP}"""


def recover(
    run: Run,
    *,
    path_to_json_file: PathToJsonFile = None,
    all_offline_partitions: AllOffline = False,
    show_replica_info: Annotated[
        bool, typer.Option("--show-replica-info", help="Print a table of every replica's log.")
    ] = False,
    manual_recovery_output_file: Annotated[
        Path | None,
        typer.Option(
            "--manual-recovery-output-file",
            metavar="FILE",
            help="Write the chosen leaders to a new file, for ktriage review and apply, or kafka-elect-leaders."
            " Not together with --automated-recovery.",
        ),
    ] = None,
    automated_recovery: Annotated[
        bool,
        typer.Option("--automated-recovery", help="Elect the chosen leaders. The plan is saved first."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Send nothing: write the file, and print the summary.")
    ] = False,
    recovery_duration_ms: DurationMs = 30_000,
    recovery_election_attempts: Attempts = 3,
    ranking: RankingOption = Ranking.LAST_RECORD,
    strategy: StrategyOption = Strategy.AGGRESSIVE,
    rows: Rows = 20,
) -> int:
    wants = (show_replica_info, manual_recovery_output_file is not None, automated_recovery, dry_run)
    if not any(wants):
        raise InputError(
            "nothing to do: give at least one of --show-replica-info, --manual-recovery-output-file,"
            " --automated-recovery and --dry-run"
        )
    if automated_recovery and manual_recovery_output_file is not None:
        raise InputError("--manual-recovery-output-file and --automated-recovery exclude each other")
    if (path_to_json_file is None) == (not all_offline_partitions):
        problem = "exclude each other" if all_offline_partitions else "are missing"
        raise InputError(f"--path-to-json-file and --all-offline-partitions {problem}: give one of them")
    if strategy is Strategy.NONE and (automated_recovery or manual_recovery_output_file is not None):
        raise InputError("--strategy none chooses nobody: use it with --show-replica-info or --dry-run only")
    chosen = selection(path=path_to_json_file, offline=all_offline_partitions)
    from console.cli.recovering import Request  # noqa: PLC0415  # not for --help
    from console.cli.recovering import recover as carry_on  # noqa: PLC0415

    return carry_on(
        run,
        Request(
            "recover",
            chosen,
            ranking,
            strategy,
            seconds=recovery_duration_ms / 1000,
            attempts=recovery_election_attempts,
            show=show_replica_info,
            file=manual_recovery_output_file,
            send=automated_recovery and not dry_run,
            dry_run=dry_run,
            rows=rows,
        ),
    )


recover.__doc__ = HELP
command = connected(recover)
