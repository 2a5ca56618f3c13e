"""``ktriage elect`` and ``kafka-elect-leaders``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from console.cli.base import declared
from console.cli.base.declaration import REQUIRED, option
from console.cli.base.declared import ATTEMPTS, DURATION_MS
from console.cli.base.options import connected
from console.cli.base.partition_options import selection, words
from console.cli.base.run import Run
from console.errors import InputError
from console.jobs.rescue.rescue_options import ELECT_UNRESCUED, NO_RESCUE, RESCUE_INTO, rescue_choice
from recovery.ranking import Ranking
from recovery.strategy import Strategy

if TYPE_CHECKING:
    from console.jobs.rescue.rescue_outlook import RescueChoice


class ElectionType(StrEnum):
    """Kafka's election types (unclean-recovery-tool), and KIP-966's election of the longest log."""

    PREFERRED = "preferred"
    UNCLEAN = "unclean"
    DESIGNATED = "designated"
    LONGEST_LOG = "longest-log"


class ElectionStrategy(StrEnum):
    """The strategies that KIP-966 has for the election tool."""

    AGGRESSIVE = "aggressive"
    BALANCED = "balanced"


TOPIC = option("--topic TOPIC", "The topic of --partition.")


def elect(
    run: Run,
    *,
    election_type: ElectionType = option("--election-type", "The election type; see above.", REQUIRED),
    path_to_json_file: Path | None = declared.PATH_TO_JSON_FILE,
    topic: str | None = TOPIC,
    partition: int | None = option("--partition N", "The partition of --topic.", min=0),
    all_topic_partitions: bool = option("--all-topic-partitions", "All partitions of the cluster."),
    strategy: ElectionStrategy | None = option(
        "--strategy",
        "For longest-log: when to elect. aggressive: at once, the best of the replicas that answered."
        " balanced: where the best of them is proved to hold every record that was acknowledged with acks=all, or"
        " nothing can prove it any more. Default: balanced.",
    ),
    ranking: Ranking | None = option(
        "--ranking",
        "For longest-log and designated: which log is the best, as ktriage recover has it. Default: last-record.",
    ),
    rescue: Path | None = RESCUE_INTO,
    no_rescue: bool = NO_RESCUE,
    rate: str | None = declared.RATE,
    elect_unrescued: bool = ELECT_UNRESCUED,
    yes: bool = option("--yes", "Do not ask before an unclean election of all partitions."),
    reason: str | None = declared.REASON,
    recovery_duration_ms: int = declared.RECOVERY_DURATION_MS,
    recovery_election_attempts: int = declared.RECOVERY_ATTEMPTS,
    rows: int = declared.ROWS,
) -> int:
    """Runs leader elections of the given --election-type:

    \b
      preferred    the first replica of the assignment, where it does not lead
      unclean      any live replica, where there is no leader
      designated   the replica that the file names ("designatedLeader"), where there is no leader
      longest-log  the replica whose log is best, as ktriage recover chooses it, where there is no leader

    What an election of another type than preferred cuts off is read first into a directory that is named before;
    --no-rescue declines that.

    One of --path-to-json-file, --topic with --partition, and --all-topic-partitions is required; designated
    needs the file, because it names the leaders. A file from ktriage plan is checked against the cluster row
    by row before anything is sent. The other types refuse a file that names designated leaders.

    \b
    A file for designated:
      {"partitions": [{"topic": "foo", "partition": 1, "designatedLeader": 0}]}

    \b
    Examples:
      kafka-elect-leaders --bootstrap-server kafka-1:9092 --election-type preferred --all-topic-partitions
      kafka-elect-leaders --bootstrap-server kafka-1:9092 --election-type designated \\
          --path-to-json-file leaders.json
      kafka-elect-leaders --bootstrap-server kafka-1:9092 --election-type longest-log --strategy balanced \\
          --topic orders --partition 3
    """
    ways = (path_to_json_file is not None, topic is not None or partition is not None, all_topic_partitions)
    if sum(ways) != 1:
        raise InputError(
            "give exactly one of --path-to-json-file, --topic with --partition, and --all-topic-partitions"
        )
    if (topic is None) != (partition is None):
        raise InputError("give --topic and --partition together")
    _refuse_ignored(election_type, strategy, ranking, (recovery_duration_ms, recovery_election_attempts))
    if election_type is ElectionType.PREFERRED and (
        rescue is not None or no_rescue or rate is not None or elect_unrescued
    ):
        raise InputError(
            "a preferred election cuts nothing off: the options of a rescue are for the other types"
        )
    choice = rescue_choice(
        rescue, declined=no_rescue, rate=rate, elect_anyway=elect_unrescued, reason=reason or ""
    )
    if election_type is ElectionType.DESIGNATED and path_to_json_file is None:
        raise InputError("--election-type designated takes its leaders from --path-to-json-file")
    why, seconds = reason or "", recovery_duration_ms / 1000
    unclean = election_type in (ElectionType.UNCLEAN, ElectionType.LONGEST_LOG)
    ask = unclean and all_topic_partitions and not yes
    if election_type is ElectionType.DESIGNATED:
        assert path_to_json_file is not None
        return _designated(
            run,
            path_to_json_file,
            reason=why,
            seconds=seconds,
            attempts=recovery_election_attempts,
            ranking=ranking or Ranking.LAST_RECORD,
            rescue=choice,
            rows=rows,
        )
    topics = [] if topic is None else [topic]
    partitions = [] if partition is None else [partition]
    # Raises InputError for a file that designates leaders: these elections would not elect them.
    chosen = selection(
        topics,
        partitions,
        path_to_json_file,
        offline=unclean and all_topic_partitions,
        leaders_refused=True,
    )
    if election_type is ElectionType.LONGEST_LOG:
        from console.jobs.elect.recover_partitions import ChoiceOptions, RecoverPartitions  # noqa: PLC0415
        from console.jobs.elect.recover_view import Report, recover  # noqa: PLC0415  # not for --help

        how = Strategy(strategy or ElectionStrategy.BALANCED)
        chosen_by = words(topics, partitions, path_to_json_file)
        options = ChoiceOptions(
            chosen, ranking or Ranking.LAST_RECORD, how, seconds, chosen_by, importance=run.target.importance
        )
        change = RecoverPartitions(options, why, run.target.title, recovery_election_attempts, rescue=choice)
        return recover(run, change, Report("elect", rows=rows), ask=ask)
    from console.jobs.elect.kafka_elections import KafkaElection  # noqa: PLC0415
    from console.jobs.elect.recover_view import run_elections  # noqa: PLC0415

    preferred = election_type is ElectionType.PREFERRED
    election = KafkaElection(chosen, preferred, every=all_topic_partitions, reason=why, rescue=choice)
    return run_elections(run, election, ask=ask, rows=rows)


def _refuse_ignored(
    election_type: ElectionType,
    strategy: ElectionStrategy | None,
    ranking: Ranking | None,
    recovery: tuple[int, int],
) -> None:
    """Raises InputError for an option that elections of this type do not use."""
    if strategy is not None and election_type is not ElectionType.LONGEST_LOG:
        raise InputError("--strategy is for --election-type longest-log only")
    if election_type not in (ElectionType.PREFERRED, ElectionType.UNCLEAN):
        return
    if ranking is not None:
        raise InputError(
            f"--ranking is for --election-type longest-log and designated: in {election_type.value} elections Kafka"
            " chooses, and reads no log"
        )
    if recovery != (DURATION_MS, ATTEMPTS):
        raise InputError(
            "--recovery-duration-ms and --recovery-election-attempts are for --election-type longest-log and"
            f" designated: {election_type.value} elections read no log, and are sent once"
        )


def _designated(
    run: Run,
    file: Path,
    *,
    reason: str,
    seconds: float,
    attempts: int,
    ranking: Ranking,
    rescue: RescueChoice | None,
    rows: int,
) -> int:
    from console.jobs.elect.apply_plan import ApplyPlan  # noqa: PLC0415
    from console.jobs.elect.plan_views import apply_file  # noqa: PLC0415  # not for --help
    from console.plan_file_checks import read_part  # noqa: PLC0415

    change = ApplyPlan(
        read_part(file),
        reason,
        run.target.title,
        file,
        attempts=attempts,
        seconds=seconds,
        ranking=ranking,
        rescue=rescue,
    )
    return apply_file(run, change, command="elect", ask=False, rows=rows)


command = connected(elect, of_kafka=True)
