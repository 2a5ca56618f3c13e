"""``ktriage plan``."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any

import typer

from console.cli.base.partition_options import selection, words
from console.cli.base.run import Output, Run
from console.cli.commands.options import (
    AllOffline,
    DurationMs,
    Partitions,
    PathToJsonFile,
    RankingOption,
    Rows,
    StrategyOption,
    Topics,
    connected,
)
from console.cli.commands.unused import refuse_unused
from console.errors import InputError
from console.exit_status import STATUS_HELP
from recovery.ranking import Ranking
from recovery.strategy import Strategy

HELP = f"""\
Asks every surviving replica of the offline partitions how far its log goes, chooses a leader for each and writes
the choice to a new file, with everything that must still be true when it is applied. Nothing is changed. Where
waiting may cost nothing (a member of ISR or ELR may come back), nobody is chosen, and it is said whom to wait for.

\b
Examples:
  ktriage plan --bootstrap-server kafka-1:9092 recovery.json
  ktriage plan --cluster production --topic orders --strategy aggressive orders.json
  ktriage plan --from results --cluster 4L6g3nShT-eMCtK--X86sw recovery.json

{STATUS_HELP}"""


def plan(
    run: Run,
    *,
    file: Annotated[Path, typer.Argument(metavar="PLAN", help="The new plan file.", show_default=False)],
    all_offline_partitions: AllOffline = False,
    topic: Topics = None,
    partition: Partitions = None,
    path_to_json_file: PathToJsonFile = None,
    recovery_duration_ms: DurationMs = 30_000,
    ranking: RankingOption = Ranking.LAST_RECORD,
    strategy: StrategyOption = Strategy.BALANCED,
    rows: Rows = 20,
) -> int:
    if strategy is Strategy.NONE:
        raise InputError("--strategy none chooses nobody: look with ktriage replicas instead")
    named = bool(topic or partition or path_to_json_file)
    if named and all_offline_partitions:
        raise InputError("--all-offline-partitions excludes --topic and --path-to-json-file")
    # Without a choice every offline partition is meant; a topic alone means its offline ones.
    chosen = selection(topic, partition, path_to_json_file, offline=not (partition or path_to_json_file))
    from console.cli.recovery.recover_partitions import Request, recover  # noqa: PLC0415  # not for --help

    return recover(
        run,
        Request(
            "plan",
            chosen,
            ranking,
            strategy,
            seconds=recovery_duration_ms / 1000,
            file=file,
            rows=rows,
            words=words(topic, partition, path_to_json_file),
        ),
    )


plan.__doc__ = HELP
_asking = connected(plan)

From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="RESULT",
        help="The plan of ktriage pipeline plan for --cluster CLUSTER_ID instead; no cluster is contacted.",
    ),
]


_WITH_RESULT = ("source", "cluster", "file", "rows", "output")


def command(ctx: typer.Context, source: From = None, **values: Any) -> int:
    """With --from nothing is asked: --cluster is then a cluster's id."""
    if source is None:
        return _asking(ctx=ctx, **values)
    refuse_unused(ctx, "plan --from: the result was planned already, and", _WITH_RESULT)
    from console.cli.pipeline.run_plan import from_result  # noqa: PLC0415  # for --from only

    run = Run(ctx.obj, None, values["output"] == Output.JSON)
    return from_result(run, source, values["cluster"], values["file"], values["rows"])


_parameters = inspect.signature(_asking).parameters.values()
_from = inspect.Parameter("source", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=From)
command.__signature__ = inspect.Signature([*_parameters, _from])  # type: ignore[attr-defined]  # read by typer
command.__doc__ = HELP
