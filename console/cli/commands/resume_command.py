"""``ktriage resume``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from console.cli.base.run import Run
from console.cli.commands.options import Reason, connected, stated


def resume(
    run: Run,
    *,
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan",
            metavar="FILE",
            help="The plan that the unfinished run was applying, for a run on another host.",
        ),
    ] = None,
    confirmed: Annotated[
        list[int] | None,
        typer.Option(
            "--confirmed",
            metavar="STEP",
            help="This step of a controller replacement is done on the hosts. May be repeated.",
        ),
    ] = None,
    give_up: Annotated[
        bool, typer.Option("--give-up", help="Forget the unfinished controller replacement. Nothing is sent.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Change voters without asking for confirmation. Needs --reason.")
    ] = False,
    reason: Reason = None,
) -> int:
    """Finishes what an earlier run left half done because it was killed or lost its network. First it restores the
    replica order of assignments that an election had reordered, without asking. An assignment is written only
    where its order is exactly the one that the earlier run wrote; what somebody else has changed since is
    reported and left alone. The journal of this host says what is unfinished; for a run on another host, --plan
    names the plan that it was applying. An order stays while nobody leads and an election of that run may still be
    carried out: the command waits, at most 2.5 minutes (with --plan: from when this host first saw the order).
    Ctrl-C ends the waiting; run the command again later.

    Then it continues a controller replacement from where the cluster is now. Voters are changed after a person
    has agreed, or, without a terminal, with --yes and --reason. A step that the cluster cannot show is reported
    as done with --confirmed; the journal remembers that. --give-up forgets the replacement: nothing is sent,
    the voters stay as they are. Through --bootstrap-controller only changes of voters are finished, through
    brokers everything.

    \b
    Examples:
      ktriage resume --bootstrap-server kafka-1:9092
      ktriage resume --bootstrap-server kafka-1:9092 --plan recovery.json
      ktriage resume --bootstrap-controller kafka-101:9093 --confirmed 4
      ktriage resume --bootstrap-controller kafka-101:9093 --yes --reason "incident 4711"
      ktriage resume --bootstrap-controller kafka-101:9093 --give-up
    """
    from console.cli.recovery.resume import ReplacementAnswers, finish  # noqa: PLC0415  # not for --help

    why = stated(reason, asked=not yes)
    return finish(run, plan, ReplacementAnswers(frozenset(confirmed or ()), give_up, not yes, why))


command = connected(resume, controllers=True)
