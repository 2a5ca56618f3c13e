"""``ktriage elect`` and ``kafka-elect-leaders``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from console.cli.base.run import Run
from console.cli.commands.options import (
    Attempts,
    DurationMs,
    PathToJsonFile,
    RankingOption,
    Reason,
    Rows,
    connected,
)
from console.errors import InputError
from recovery.model import TopicPartition
from recovery.ranking import Ranking
from recovery.strategy import Strategy


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


ElectionTypeOption = Annotated[
    ElectionType, typer.Option("--election-type", help="The type of election; see above.")
]
Topic = Annotated[str | None, typer.Option("--topic", metavar="TOPIC", help="The topic of --partition.")]
Partition = Annotated[
    int | None, typer.Option("--partition", metavar="N", min=0, help="The partition of --topic.")
]
AllTopicPartitions = Annotated[
    bool, typer.Option("--all-topic-partitions", help="All partitions of the cluster.")
]
ElectionStrategyOption = Annotated[
    ElectionStrategy | None,
    typer.Option(
        "--strategy",
        help="For longest-log: when to elect. aggressive: at once, the best of those that answered. balanced: not"
        " while a member of ISR or ELR may come back, and only when all of LastKnownELR answered. Default:"
        " balanced.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before an unclean election of all partitions.")]


def elect(
    run: Run,
    *,
    election_type: ElectionTypeOption,
    path_to_json_file: PathToJsonFile = None,
    topic: Topic = None,
    partition: Partition = None,
    all_topic_partitions: AllTopicPartitions = False,
    strategy: ElectionStrategyOption = None,
    ranking: RankingOption = Ranking.LAST_RECORD,
    yes: Yes = False,
    reason: Reason = None,
    recovery_duration_ms: DurationMs = 30_000,
    recovery_election_attempts: Attempts = 3,
    rows: Rows = 20,
) -> int:
    """Holds leader elections, of the type that --election-type names:

    \b
      preferred    the first replica of the assignment, where it does not lead
      unclean      any live replica, where there is no leader
      designated   the replica that the file names ("designatedLeader"), where there is no leader
      longest-log  the replica whose log is best, as ktriage recover chooses it, where there is no leader

    One of --path-to-json-file, --topic with --partition, and --all-topic-partitions is required; designated
    takes its leaders from the file. A file from ktriage plan is checked against the cluster row by row before
    anything is sent. A file that names designated leaders is refused for every other type.

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
        raise InputError("--topic and --partition need each other")
    if strategy is not None and election_type is not ElectionType.LONGEST_LOG:
        raise InputError("--strategy is for --election-type longest-log only")
    if election_type is ElectionType.DESIGNATED and path_to_json_file is None:
        raise InputError("--election-type designated takes its leaders from --path-to-json-file")
    from console.cli.recovery.elections import Request, elect_as_asked  # noqa: PLC0415  # not for --help

    unclean = election_type in (ElectionType.UNCLEAN, ElectionType.LONGEST_LOG)
    request = Request(
        path=path_to_json_file,
        partition=TopicPartition(topic, partition) if topic is not None and partition is not None else None,
        every=all_topic_partitions,
        strategy=Strategy(strategy or ElectionStrategy.BALANCED),
        ranking=ranking,
        ask=unclean and all_topic_partitions and not yes,
        reason=reason or "",
        seconds=recovery_duration_ms / 1000,
        attempts=recovery_election_attempts,
        rows=rows,
    )
    return elect_as_asked(run, election_type.value, request)


command = connected(elect)
