"""``ktriage gameday``: its verbs and their options."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from console.cli.base import declared
from console.cli.base.declaration import argument, option
from console.cli.base.options import connected, without_cluster
from console.cli.base.run import PageOutput, Run
from console.cli.base.verbs import Verb

HELP = """\
Plays an incident that a cluster could really have, on a copy of it in the simulator, and compares what a team did
with what could have been done. Nothing is changed in the cluster.

\b
Examples:
  ktriage gameday prepare friday.yaml --cluster production
  ktriage --simulate friday.yaml
  ktriage gameday score friday.yaml
"""


class Fails(StrEnum):
    """What is to fail."""

    WORST = "worst"
    RACK = "rack"
    DISK = "disk"
    CONTROLLER = "controller"


SEED = option("--seed N", "The seed: the only source of randomness.", 1, min=0)


def prepare(
    run: Run,
    *,
    to: Path = argument("FILE", "The new scenario file, such as friday.yaml."),
    fails: Fails = option("--fails", "What is to fail: the worst of all, or of one kind.", Fails.WORST),
    tell: bool = option("--tell", "Say what fails; whoever plays must not read it."),
    recovery_duration_ms: int = declared.RECOVERY_DURATION_MS,
) -> int:
    """Reads the cluster, copies it into the simulator, tries there the failure of each rack, disk and of a
    controller, and writes the worst as a scenario: that after which the most partitions have no leader. Before the
    failure the other brokers lose their network, so that those which fail are alone in the ISRs, while clients
    write with acks=all.

    \b
    Examples:
      ktriage gameday prepare friday.yaml --cluster production
      ktriage gameday prepare friday.yaml --bundle incident.ktriage --fails disk --tell
    """
    from console.jobs.gameday.gameday_view import prepare_game_day  # noqa: PLC0415  # not for --help

    return prepare_game_day(run, to, fails.value, recovery_duration_ms / 1000, tell=tell)


def score(
    run: Run,
    *,
    scenario: str = argument("FILE", "The scenario file that was played."),
    seed: int = SEED,
    state: Path | None = option(
        "--state FILE", "The state file, if it was played with --state. Default: its default file."
    ),
    output: PageOutput = declared.PAGE_OUTPUT,
) -> int:
    """Says what came of the game day: how long partitions had no leader, how many acknowledged records are lost for
    good (what was rescued and written back is not), and what electing at once, electing only where nothing is lost,
    and waiting would have come to in the same time.

    \b
    Examples:
      ktriage gameday score friday.yaml
      ktriage gameday score friday.yaml --output html > friday.html
    """
    from console.jobs.gameday.gameday_view import score_game_day  # noqa: PLC0415  # not for --help

    return score_game_day(run, scenario, seed, state, output)


VERBS = (
    Verb("prepare", "Write the worst incident of a cluster as a scenario.", connected(prepare)),
    Verb(
        "score",
        "Compare what a team did with what could have been done.",
        without_cluster(score, output=False),
    ),
)
