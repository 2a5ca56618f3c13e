"""``ktriage quorum``: its verbs and their options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from console.cli.base import declared
from console.cli.base.declaration import REQUIRED, argument, option
from console.cli.base.options import connected, stated, without_cluster
from console.cli.base.run import Run
from console.cli.base.verbs import Verb
from console.errors import InputError
from recovery.membership.replacement import ReplacementKind

if TYPE_CHECKING:
    from console.jobs.quorum.prepared_change import RequestedVoter, VoterChange

HELP = """\
Shows, checks and changes the metadata quorum and its voters (KIP-853). Every verb takes
--bootstrap-server or --bootstrap-controller, because the brokers may be down; evidence and rebuild read directories
instead.

A change is sent only after a preflight: the checks that the leader itself makes, a connection to every
endpoint, and a majority of the new voters alive and caught up. A change after which the voters could not
commit is refused, and no option overrides this. Directory ids are accepted as Kafka prints them (base64), and
as UUIDs.

\b
Examples:
  ktriage quorum status --bootstrap-controller kafka-101:9093
  ktriage quorum add 103 --bootstrap-server kafka-1:9092
  ktriage quorum remove 101 --directory-id pKx3… --bootstrap-server kafka-1:9092
  ktriage quorum replace 102 --why disk --bootstrap-server kafka-1:9092
  ktriage quorum replace --why grow --with 103 --with 104 --bootstrap-server kafka-1:9092
  ktriage quorum replace --plan replace-102.json --bootstrap-server kafka-1:9092
  ktriage quorum evidence /var/lib/kafka/metadata /mnt/broker-1/data
"""

NODE = argument("NODE", "The controller's node id.")
DIRECTORY_ID = option(
    "--directory-id ID",
    "The id of its metadata log dir, if two controllers have the same node id. Default: the only one.",
)
ENDPOINT = option(
    "--endpoint LISTENER://HOST:PORT",
    "The endpoint of the new controller. May be repeated. Default: as the controllers list it.",
)
DRY_RUN = option("--dry-run", "Show the preflight or the plan, and send nothing.")


def status(run: Run) -> int:
    """Shows the quorum: its leader and voters, how many failures it tolerates, voters that do not fetch, duplicate
    node ids, and whether it can commit.

    \b
    Example:
      ktriage quorum status --bootstrap-controller kafka-101:9093
    """

    from console.jobs.quorum.quorum_view import show  # noqa: PLC0415  # not for --help

    return show(run, everything=False)


def replication(run: Run) -> int:
    """Shows every replica of the metadata log, also on brokers: how far each is behind, and when it last
    fetched.

    \b
    Example:
      ktriage quorum replication --bootstrap-server kafka-1:9092
    """

    from console.jobs.quorum.quorum_view import show  # noqa: PLC0415  # not for --help

    return show(run, everything=True)


def upgrade(
    run: Run, *, dry_run: bool = DRY_RUN, yes: bool = declared.YES, reason: str | None = declared.REASON
) -> int:
    """Raises kraft.version from 0 to 1, which makes the voters dynamic. First every voter and broker is asked
    whether it supports version 1. The upgrade cannot be undone.

    \b
    Example:
      ktriage quorum upgrade --bootstrap-server kafka-1:9092 --dry-run
    """
    from console.cli.base.quorum_run import change_or_show  # noqa: PLC0415  # not for --help
    from console.cli.base.terminal_operator import execute_change  # noqa: PLC0415
    from console.jobs.quorum.change_voters import UpgradeKraftVersion, UpgradeResult  # noqa: PLC0415
    from console.jobs.quorum.quorum_change_report import UPGRADED  # noqa: PLC0415

    change = UpgradeKraftVersion(stated(reason, asked=not yes))
    send = change_or_show(run, UpgradeResult, dry_run=dry_run)
    return run.conclude(
        change.conclusion(execute_change(run, change, UPGRADED, send, ask=not yes, dry_run=dry_run))
    )


def add(
    run: Run,
    *,
    node: int = NODE,
    directory_id: str | None = DIRECTORY_ID,
    endpoint: list[str] | None = ENDPOINT,
    dry_run: bool = DRY_RUN,
    yes: bool = declared.YES,
    reason: str | None = declared.REASON,
) -> int:
    """Makes a controller that runs as an observer a voter (AddRaftVoter).

    \b
    Example:
      ktriage quorum add 103 --bootstrap-server kafka-1:9092
    """
    from console.cli.base.quorum_run import given_directory, given_endpoints  # noqa: PLC0415  # not for --help
    from console.jobs.quorum.prepared_change import RequestedVoter, VoterChange  # noqa: PLC0415

    given = RequestedVoter(node, given_directory(directory_id), given_endpoints(tuple(endpoint or ())))
    why = stated(reason, asked=not yes)
    return _change_voters(run, VoterChange.ADD, given, why, dry_run=dry_run, ask=not yes)


def remove(
    run: Run,
    *,
    node: int = NODE,
    directory_id: str | None = DIRECTORY_ID,
    unregister: bool = option(
        "--unregister",
        "Remove its registration too, once it has no vote (Kafka 4.4 and later): it is listed no more.",
    ),
    not_rebuilt: bool = declared.NOT_REBUILT,
    dry_run: bool = DRY_RUN,
    yes: bool = declared.YES,
    reason: str | None = declared.REASON,
) -> int:
    """Removes a voter from the quorum (RemoveRaftVoter). A controller that runs registers again by itself within
    seconds: --unregister is for one that is stopped.

    \b
    Example:
      ktriage quorum remove 101 --directory-id pKx3… --bootstrap-server kafka-1:9092
    """
    from console.cli.base.quorum_run import given_directory  # noqa: PLC0415  # not for --help
    from console.jobs.quorum.prepared_change import RequestedVoter, VoterChange  # noqa: PLC0415

    given, why = RequestedVoter(node, given_directory(directory_id)), stated(reason, asked=not yes)
    return _change_voters(
        run,
        VoterChange.REMOVE,
        given,
        why,
        dry_run=dry_run,
        ask=not yes,
        unregister=unregister,
        not_rebuilt=not_rebuilt,
    )


def _change_voters(
    run: Run,
    kind: VoterChange,
    given: RequestedVoter,
    reason: str,
    *,
    dry_run: bool,
    ask: bool,
    unregister: bool = False,
    not_rebuilt: bool = False,
) -> int:
    from console.cli.base.quorum_run import change_or_show  # noqa: PLC0415  # not for --help
    from console.cli.base.terminal_operator import execute_change  # noqa: PLC0415
    from console.jobs.quorum.change_voters import ChangeVoters  # noqa: PLC0415
    from console.jobs.quorum.quorum_change_report import CHANGED_VOTERS  # noqa: PLC0415
    from console.jobs.quorum.voter_change import VoterChangeResult  # noqa: PLC0415

    change = ChangeVoters(kind, given, reason, run.target.title, unregister, not_rebuilt)
    send = change_or_show(run, VoterChangeResult, dry_run=dry_run)
    return run.conclude(
        change.conclusion(execute_change(run, change, CHANGED_VOTERS, send, ask=ask, dry_run=dry_run))
    )


def update_endpoint(
    run: Run,
    *,
    node: int = NODE,
    endpoint: list[str] = option(
        "--endpoint LISTENER://HOST:PORT",
        "The new endpoint, after the change on its host. May be repeated.",
        REQUIRED,
    ),
    dry_run: bool = option("--dry-run", "Show what to change on the host, without waiting."),
) -> int:
    """Shows what to change on a voter's host to give it another endpoint, and waits until the voter itself
    has registered the new endpoint with the quorum. Nothing is sent.

    \b
    Example:
      ktriage quorum update-endpoint 101 --endpoint CONTROLLER://new-host:9093 --bootstrap-server kafka-1:9092
    """
    from console.jobs.quorum.endpoint_update import update_endpoint as show_and_wait  # noqa: PLC0415  # as above

    return show_and_wait(run, node, tuple(endpoint), dry_run=dry_run)


def replace(
    run: Run,
    *,
    node: int | None = argument(
        "[NODE]",
        "The node id of the controller that leaves or gets a new disk. Not with --why grow, nor"
        " with a --plan that exists.",
        None,
    ),
    why: ReplacementKind | None = option("--why", "Make a plan for this purpose."),
    with_: list[int] | None = option("--with NODE", "The node id of a new controller. May be repeated."),
    plan: Path | None = option(
        "--plan FILE",
        "Carry out this plan; with --why: write the new plan to this file. Default for a new"
        " plan: a file in the state directory.",
    ),
    directory_id: str | None = DIRECTORY_ID,
    endpoint: list[str] | None = ENDPOINT,
    confirmed: list[int] | None = option(
        "--confirmed STEP",
        "Report this step as done on the hosts, because the cluster cannot show it. May be repeated.",
    ),
    not_rebuilt: bool = declared.NOT_REBUILT,
    dry_run: bool = DRY_RUN,
    yes: bool = declared.YES,
    reason: str | None = declared.REASON,
) -> int:
    """Replaces a controller step by step: a plan is made, shown and saved, then carried out. Each step says
    what to run on which host, what is sent, what it waits for, what can go wrong, and how to undo it.

    \b
    Examples:
      ktriage quorum replace 102 --why disk --bootstrap-server kafka-1:9092
      ktriage quorum replace 101 --why host --with 104 --bootstrap-server kafka-1:9092
      ktriage quorum replace --why grow --with 103 --with 104 --bootstrap-server kafka-1:9092
      ktriage quorum replace --plan replace-102.json --bootstrap-server kafka-1:9092
    """
    from console.cli.base.quorum_run import given_directory, given_endpoints  # noqa: PLC0415  # not for --help
    from console.jobs.quorum.replacement import replace as replace_controller  # noqa: PLC0415
    from console.jobs.quorum.replacement_plan import ReplacementChoice  # noqa: PLC0415

    stated_reason = stated(reason, asked=not yes)
    directory, endpoints = given_directory(directory_id), given_endpoints(tuple(endpoint or ()))
    leaving = () if node is None else (node,)
    choice = (
        None
        if why is None
        else ReplacementChoice(why, leaving, tuple(with_ or ()), directory, endpoints, not_rebuilt)
    )
    return replace_controller(
        run,
        choice,
        plan,
        confirmed=frozenset(confirmed or ()),
        dry_run=dry_run,
        ask=not yes,
        reason=stated_reason,
        not_rebuilt=not_rebuilt,
    )


def evidence(
    run: Run,
    *,
    dirs: list[Path] = argument(
        "DIR",
        "A directory __cluster_metadata-0 of a controller or a broker, the log dir that contains"
        " it, or a"
        " copy of either.",
    ),
) -> int:
    """Compares the copies of the metadata log that are left when a majority of the controllers is gone for
    good: every controller has one, and every broker. Whose it is, its voters, where it ends, the last leader
    that its node knew, whether its node runs; then what the best copy lacks of the others, change by change,
    and what was committed for certain.

    The copies are compared by what their batches hold. The best one is that with the newest epoch, then the
    highest end. Files are opened for reading only.

    \b
    Examples:
      ktriage quorum evidence /var/lib/kafka/metadata /mnt/broker-1/data /mnt/broker-2/data
      ktriage quorum evidence --output json /mnt/broker-1/data /mnt/broker-2/data
    """
    from console.jobs.quorum.lost_quorum import show_evidence  # noqa: PLC0415  # not for --help

    return show_evidence(run.program, dirs, json=run.json)


def rebuild(
    run: Run,
    *,
    plan: Path | None = argument("[PLAN]", "Carry out this plan, on the host that has the directory.", None),
    from_: Path | None = option(
        "--from DIR", "Make a plan: the directory of the metadata log that the quorum goes on from."
    ),
    into: Path | None = option(
        "--into DIR",
        "The log dir of a controller that was formatted with --no-initial-controllers and never"
        " started: it"
        " gets a copy of the log, which is then that of a broker or of another node. Default: the"
        " directory"
        " itself is written.",
    ),
    voter: list[str] | None = option(
        "--voter NODE@HOST:PORT", "The controller that becomes the only voter, and its listener."
    ),
    dead: list[int] | None = option(
        "--dead NODE",
        "A voter that never starts again with the metadata log that it had. May be repeated; every other"
        " voter must be named.",
    ),
    compare: list[Path] | None = option(
        "--compare DIR",
        "A further copy of the metadata log: what it has beyond the chosen one is named. May be repeated.",
    ),
    data: list[Path] | None = option(
        "--data DIR",
        "A log dir of a broker, to see whether it knows of leader epochs that the copy lacks. Its"
        " copy of the metadata log is compared too. Or a file of disk scan or its script, from a host where"
        " nothing can be installed. May be repeated.",
    ),
    unscanned: list[int] | None = option(
        "--unscanned BROKER", "Go on without the disks of this broker. May be repeated."
    ),
    accept_loss_of: list[int] | None = option(
        "--accept-loss-of NODE", "Lose what the copy of this node has beyond the chosen one. May be repeated."
    ),
    accept_loss_of_rebuild: list[int] | None = option(
        "--accept-loss-of-rebuild EPOCH",
        "Give up the quorum that a later rebuild made, in this quorum epoch, and which the chosen copy does not"
        " know. May be repeated.",
    ),
    accept_strays: bool = option(
        "--accept-strays", "Go on although brokers' disks hold topics that the copy does not know."
    ),
    keep_strays: bool = option(
        "--keep-strays",
        "Keep topics that only brokers' disks know: they get their ids, the replicas that were"
        " scanned, and the configurations that another copy has, if any does: the plan says what is not known.",
    ),
    backup: Path | None = option(
        "--backup DIR", "The new directory for the back-up and its journal. Default: one beside the log dir."
    ),
    plan_out: Path | None = option("--plan-out FILE", "Write the new plan to this new file."),
    rehearse: bool = option(
        "--rehearse",
        "Try PLAN on a copy in a temporary directory, with a controller on loopback that no broker can"
        " reach, and write the report into PLAN.",
    ),
    kafka_dir: Path | None = option(
        "--kafka-dir DIR",
        "For --rehearse: the Kafka that the controllers run, its installation or the folder of its jars.",
    ),
    within: int = option(
        "--within SECONDS", "For --rehearse: so long the controller has to lead.", 120, min=1
    ),
    as_script: Path | None = option(
        "--as-script FILE",
        "Write PLAN as a Python script to this new file, for a host where nothing can be installed.",
    ),
    remember: bool = option(
        "--remember",
        "PLAN was carried out on another host, as by its script: make it known to ktriage here. With --undo: it was"
        " taken back there.",
    ),
    reviewed_by: str | None = declared.REVIEWED_BY,
    reviewed_digest: str | None = declared.DIGEST,
    undo: bool = option("--undo", "Put back what was there before. Refused once the rebuilt quorum has led."),
    yes: bool = declared.YES,
    reason: str | None = declared.REASON,
) -> int:
    """Makes one controller the only voter of a quorum whose majority is gone for good, from a directory of the
    metadata log that is left. The last way: bring a controller back, or move its disk to another host, where
    that is possible.

    With --from a plan is made and written to --plan-out; nothing else is written. With PLAN the plan is carried
    out, on the host that has the directory, while its node is stopped: everything is backed up, a torn end is cut
    off, and the new voter is appended, in a quorum epoch that no old voter can have been in; whole or not at all.

    Refused: while a voter is not named with --dead, or one that is named accepts a connection; a log that is broken
    before its end; a copy that lacks what another one has; brokers' disks that were not scanned. Partitions of
    which a disk knows a later leader epoch than the copy are written anew, above all epochs that any disk knows.
    With kraft.version 0 nothing needs to be written, and it says what to change.

    Rehearse a plan first: a controller of the same Kafka leads with a copy, and has the topics, topic ids,
    configurations and ACLs that the log implies. A plan whose rehearsal failed is not carried out. A controller's
    memory is 1 GB, or what KAFKA_HEAP_OPTS says. With --as-script the same is written as one script, which needs
    nothing but Python 3.8 on the host that has the directory.

    \b
    Examples:
      ktriage quorum rebuild --from /var/lib/kafka/metadata --voter 100@controller-100:9093 \
          --dead 101 --dead 102 --data /mnt/broker-1/data --data /mnt/broker-2/data --plan-out rebuild.json
      ktriage quorum rebuild rebuild.json --rehearse --kafka-dir /opt/kafka
      ktriage review rebuild.json
      ktriage quorum rebuild rebuild.json --reviewed-by ada --digest 3f1c…
      ktriage quorum rebuild rebuild.json --remember
      ktriage quorum rebuild rebuild.json --undo
    """
    from console.jobs.quorum.lost_quorum import (  # noqa: PLC0415  # not for --help
        Reviewed,
        carry_out,
        plan_rebuild,
        rehearse_plan,
        remember_elsewhere,
        write_script,
    )
    from console.jobs.quorum.quorum_rebuild import RebuildRequest  # noqa: PLC0415
    from recovery.membership.quorum_rebuild import RebuildError, parsed_voter  # noqa: PLC0415

    reviewed = Reviewed.of(reviewed_by, reviewed_digest)
    if reviewed is not None and (from_ is not None or rehearse or undo):
        raise InputError("--reviewed-by goes with a PLAN that is carried out, or written with --as-script")
    if from_ is None:
        making = (
            into,
            voter,
            dead,
            compare,
            data,
            unscanned,
            accept_loss_of,
            accept_loss_of_rebuild,
            accept_strays,
            keep_strays,
            backup,
            plan_out,
        )
        if plan is None or any(making):
            raise InputError(
                "give a PLAN to carry out, or --from DIR to make a plan"
                if plan is None
                else "PLAN is carried out as it is: the options of a new plan go with --from"
            )
        if remember:
            return remember_elsewhere(run.program, plan, undo=undo)
        if rehearse:
            if kafka_dir is None or undo:
                raise InputError("--rehearse needs --kafka-dir DIR, and takes no --undo")
            return rehearse_plan(run.program, plan, kafka_dir, within, json=run.json)
        if as_script is not None:
            if undo:
                raise InputError("--as-script takes no --undo: the script has its own")
            return write_script(run.program, plan, as_script, reviewed)
        why = stated(reason, asked=not yes)
        return carry_out(run.program, plan, why, undo=undo, ask=not yes, json=run.json, reviewed=reviewed)
    if plan is not None or undo or rehearse or remember or as_script is not None:
        raise InputError(
            "--from makes a plan: PLAN, --undo, --rehearse, --remember and --as-script go without it"
        )
    if plan_out is None or not voter:
        raise InputError("--from needs --voter NODE@HOST:PORT and --plan-out FILE")
    try:
        voters = tuple(parsed_voter(text) for text in voter)
    except RebuildError as error:
        raise InputError(str(error)) from None
    request = RebuildRequest(
        from_,
        voters,
        tuple(dead or ()),
        into,
        tuple(compare or ()),
        tuple(data or ()),
        tuple(unscanned or ()),
        tuple(accept_loss_of or ()),
        accept_strays,
        keep_strays,
        backup,
        tuple(accept_loss_of_rebuild or ()),
    )
    return plan_rebuild(run.program, request, plan_out, json=run.json)


def _quorum(function: Callable[..., int]) -> Callable[..., int]:
    return connected(function, controllers=True)


VERBS = (
    Verb("status", "The leader, the voters, and how many failures they tolerate.", _quorum(status)),
    Verb("replication", "Every replica of the metadata log, also on brokers.", _quorum(replication)),
    Verb("upgrade", "Raise kraft.version from 0 to 1.", _quorum(upgrade)),
    Verb("add", "Make a running controller a voter.", _quorum(add)),
    Verb("remove", "Remove a voter.", _quorum(remove)),
    Verb("update-endpoint", "Wait until a voter has registered its new endpoint.", _quorum(update_endpoint)),
    Verb("replace", "Replace a controller step by step.", _quorum(replace)),
    Verb(
        "evidence",
        "Lost for good: compare the copies of the metadata log that are left.",
        without_cluster(evidence),
    ),
    Verb(
        "rebuild",
        "Lost for good: one voter from a surviving copy of the metadata log.",
        without_cluster(rebuild),
    ),
)
