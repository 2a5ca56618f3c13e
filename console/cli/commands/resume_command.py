"""``ktriage resume``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from console.cli.base.run import Run
from console.cli.commands.options import Reason, connected, stated
from console.exit_status import STATUS_HELP

HELP = f"""\
Finishes what an earlier run left half done, because it was killed or lost its network: assignments that still
stand in the order that an election needed are put back in their own. An assignment is written only where it is
exactly the one that the run wrote; whatever somebody else has changed since is left alone and told. The journal
of this host says what is open; with --plan that of another host is made up for by the plan it was applying.

A controller replacement that is half done is gone on with after that, from where the cluster is. Voters are changed
once a person has said so, or without a terminal by --yes and --reason; orders are put back unasked. Steps that the
cluster cannot show are said to be done by --confirmed, and kept. --give-up forgets the replacement: nothing is
sent, the voters stay as they are. Through --bootstrap-controller changes of the voters are finished, through
brokers the rest too.

\b
Examples:
  ktriage resume --bootstrap-server kafka-1:9092
  ktriage resume --bootstrap-server kafka-1:9092 --plan recovery.json
  ktriage resume --bootstrap-controller kafka-101:9093 --confirmed 4
  ktriage resume --bootstrap-controller kafka-101:9093 --yes --reason "incident 4711"
  ktriage resume --bootstrap-controller kafka-101:9093 --give-up

{STATUS_HELP}"""


def resume(
    run: Run,
    *,
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan", metavar="FILE", help="The plan that was being applied, from another host, say."
        ),
    ] = None,
    confirmed: Annotated[
        list[int] | None,
        typer.Option(
            "--confirmed",
            metavar="STEP",
            help="That step of a controller replacement is done on the hosts. May be repeated.",
        ),
    ] = None,
    give_up: Annotated[
        bool, typer.Option("--give-up", help="Forget a controller replacement that is half done.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Change voters without asking; needs --reason.")] = False,
    reason: Reason = None,
) -> int:
    from console.cli.recovery.resume import Wanted, finish  # noqa: PLC0415  # not for --help

    why = stated(reason, asked=not yes)
    return finish(run, plan, Wanted(frozenset(confirmed or ()), give_up, not yes, why))


resume.__doc__ = HELP
command = connected(resume, controllers=True)
