"""``ktriage quorum``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from console.cli.base.run import Run
from console.cli.commands.options import Reason, Yes, connected, stated
from console.errors import InputError
from console.exit_status import STATUS_HELP
from recovery.membership.replacement import ReplacementKind

HELP = f"""\
The metadata quorum and its voters (KIP-853): seen, judged and changed. Every verb takes --bootstrap-server or
--bootstrap-controller: brokers may be the ones that are down.

\b
  status           leader, voters, what it stands, ghosts, duplicates, and whether it commits
  replication      every replica of the metadata, brokers too
  upgrade          kraft.version 0 to 1, after every voter and broker was asked
  add NODE         make a running controller a voter
  remove NODE      take a voter out
  update-endpoint NODE  wait for a voter to tell its new address, after its host was changed
  replace NODE     a controller replaced step by step: a plan is made, shown, saved, and gone through

A change is sent only after its preflight: the leader's own checks, every endpoint contacted, and the majority of
the new set alive and caught up. One that would leave a set that cannot commit is refused, and nothing forces it.
Directory ids are taken as Kafka prints them (base64) and as UUIDs.

\b
Examples:
  ktriage quorum status --bootstrap-controller kafka-101:9093
  ktriage quorum add 103 --bootstrap-server kafka-1:9092
  ktriage quorum remove 101 --directory-id pKx3… --bootstrap-server kafka-1:9092
  ktriage quorum replace 102 --why disk --bootstrap-server kafka-1:9092
  ktriage quorum replace --why grow --with 103 --with 104 --bootstrap-server kafka-1:9092
  ktriage quorum replace --plan replace-102.json --bootstrap-server kafka-1:9092

{STATUS_HELP}"""


class Verb(StrEnum):
    """What to do."""

    STATUS = "status"
    REPLICATION = "replication"
    UPGRADE = "upgrade"
    ADD = "add"
    REMOVE = "remove"
    UPDATE_ENDPOINT = "update-endpoint"
    REPLACE = "replace"


VerbArgument = Annotated[Verb, typer.Argument(metavar="VERB", show_default=False)]
NodeArgument = Annotated[
    int | None, typer.Argument(metavar="[NODE]", help="The controller's node id.", show_default=False)
]
DirectoryId = Annotated[
    str | None, typer.Option("--directory-id", metavar="ID", help="add, remove: of the metadata log dir.")
]
EndpointOption = Annotated[
    list[str] | None,
    typer.Option(
        "--endpoint",
        metavar="LISTENER://HOST:PORT",
        help="Where the controller listens, if the controllers do not list it. May be repeated.",
    ),
]
Why = Annotated[
    ReplacementKind | None,
    typer.Option("--why", help="replace: what the replacement is for.", show_default=False),
]
With = Annotated[
    list[int] | None,
    typer.Option("--with", metavar="NODE", help="replace: a new controller's node id. May be repeated."),
]
PlanOption = Annotated[
    Path | None,
    typer.Option("--plan", metavar="FILE", help="replace: go through this plan, or make it here."),
]
Confirmed = Annotated[
    list[int] | None,
    typer.Option(
        "--confirmed",
        metavar="STEP",
        help="replace: that step is done on the hosts, though the cluster cannot show it. May be repeated.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Preflight, or the plan, and nothing sent.")]


def quorum(
    run: Run,
    *,
    verb: VerbArgument,
    node: NodeArgument = None,
    directory_id: DirectoryId = None,
    endpoint: EndpointOption = None,
    why: Why = None,
    with_: With = None,
    plan: PlanOption = None,
    confirmed: Confirmed = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    reason: Reason = None,
) -> int:
    stated_reason = stated(reason, asked=not yes)
    if verb in (Verb.STATUS, Verb.REPLICATION):
        if node is not None:
            raise InputError(f"quorum {verb} shows the whole quorum and takes no node ({node})")
        from console.cli.quorum.quorum_views import show  # noqa: PLC0415  # not for --help

        return show(run, everything=verb is Verb.REPLICATION)
    from console.cli.quorum.voter_change import Request, change  # noqa: PLC0415

    asked = Request(
        str(verb),
        node,
        directory_id,
        tuple(endpoint or ()),
        dry_run=dry_run,
        ask=not yes,
        reason=stated_reason,
        confirmed=frozenset(confirmed or ()),
    )
    if verb is not Verb.REPLACE:
        if why is not None or with_ or plan is not None or confirmed:
            raise InputError("--why, --with, --plan and --confirmed are for quorum replace")
        return change(run, asked)
    from console.cli.quorum.replacement import replace  # noqa: PLC0415

    return replace(run, asked, why, tuple(with_ or ()), plan)


quorum.__doc__ = HELP
command = connected(quorum, controllers=True)
