"""Options that several commands share: one spelling, one help text."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from console.change.registry import COMMANDS
from console.cli.base.run import Output, Run
from console.errors import InputError
from console.paths import use_state_dir
from console.target import Target, resolve
from recovery.ranking import Ranking
from recovery.strategy import Strategy


def _profiles(incomplete: str) -> list[str]:
    """Completes --cluster from the profiles' file, without contacting a cluster."""
    from console.settings import named_profiles  # noqa: PLC0415

    try:
        names = [one.name for one in named_profiles()]
    except InputError:
        return []
    return [name for name in names if name.startswith(incomplete)]


BootstrapServer = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        metavar="HOST:PORT[,…]",
        help="Brokers to contact first. The other brokers are found through them.",
    ),
]
BootstrapController = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-controller",
        metavar="HOST:PORT[,…]",
        help="Controllers to contact instead of brokers, if the brokers are down.",
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="PROFILE",
        help="A profile of ~/.config/ktriage/clusters.yaml or /etc/ktriage/clusters.yaml, instead of"
        " --bootstrap-server.",
        autocompletion=_profiles,
    ),
]
Simulate = Annotated[
    str | None,
    typer.Option(
        "--simulate",
        metavar="SCENARIO",
        help="A simulated cluster instead of a real one (ktriage simulate list).",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", metavar="N", min=0, help="With --simulate: the seed of the run. Default: 1."),
]
State = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="FILE",
        help="With --simulate: the file that saves the simulation between commands. Default: a file for"
        " each scenario and seed in the state directory.",
    ),
]
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        metavar="FILE",
        help="A client.properties file with security.protocol, sasl.* and ssl.*, as Kafka's own tools read"
        " it.",
    ),
]
BrokerAddress = Annotated[
    list[str] | None,
    typer.Option(
        "--broker",
        metavar="ID=HOST:PORT",
        help="Use this address for the broker, not its advertised one. May be repeated.",
    ),
]
ControllerAddress = Annotated[
    list[str] | None,
    typer.Option(
        "--controller",
        metavar="ID=HOST:PORT",
        help="Use this address for the controller, not the one that the quorum lists. May be repeated.",
    ),
]
StateDir = Annotated[
    Path | None,
    typer.Option(
        "--state-dir",
        metavar="DIR",
        help="The directory of the journal and the lock. Operators of this host can share it, and other"
        " hosts on a shared mount (docs/files.md). Also set by KTRIAGE_STATE_DIR, or by state-dir in the"
        " profile.",
    ),
]
OutputFormat = Annotated[
    Output,
    typer.Option("--output", help="table for people; json for programs, as docs/output.md describes it."),
]
EvidenceFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--evidence",
        metavar="FILE",
        help="What ktriage disk scan --output json read from the disk of a broker that is down: it counts as that"
        " broker's answer, and it cannot be chosen. May be repeated.",
    ),
]
MetadataDir = Annotated[
    Path | None,
    typer.Option(
        "--metadata-dir",
        metavar="DIR",
        help="A copy of __cluster_metadata-0 from any controller or broker, or the log dir that contains it. It"
        " tells who was in sync when the active controller cannot be reached.",
    ),
]
RankingOption = Annotated[
    Ranking,
    typer.Option(
        "--ranking",
        help="Which log is the best. last-record: the log whose last record has the highest epoch, then"
        " the longest log. specification: the log whose broker knows the highest leader epoch, then the"
        " longest log.",
    ),
]
StrategyOption = Annotated[
    Strategy,
    typer.Option(
        "--strategy",
        help="When to elect. aggressive: at once, the best of the replicas that answered. balanced: where the"
        " best of them is proved to hold every record that was acknowledged with acks=all, or nothing can prove it"
        " any more; it refuses where a high watermark contradicts the ranking, and waits otherwise. complete: only"
        " when every replica answered. none: never, report only.",
    ),
]
AcceptUnchecked = Annotated[
    bool,
    typer.Option(
        "--accept-unchecked",
        help="With strategy balanced: elect also where no acknowledged record is lost only if conditions hold that"
        ' were not checked, or that there are signs against ("none, unchecked", "none, in doubt"), and where a'
        " broker could be brought back first. Needs --reason, which the plan and the journal keep.",
    ),
]
PathToJsonFile = Annotated[
    Path | None,
    typer.Option(
        "--path-to-json-file",
        metavar="FILE",
        help='A file with the partitions: {"partitions": [{"topic": "foo", "partitions": [0, 3]}]}.',
    ),
]
AllOffline = Annotated[
    bool, typer.Option("--all-offline-partitions", help="All partitions without a leader.")
]
DURATION_MS = 30_000
ATTEMPTS = 3
DurationMs = Annotated[
    int,
    typer.Option(
        "--recovery-duration-ms",
        min=1,
        metavar="MS",
        help="The time limit for brokers to answer, in milliseconds. Later answers are ignored. The"
        " command continues as soon as all have answered.",
    ),
]
_DURATION_MS = "recovery_duration_ms"
Duration = Annotated[
    str | None,
    typer.Option(
        "--duration",
        metavar="TIME",
        help="How long brokers that do not answer are asked, such as 5s or 2m: --recovery-duration-ms with a unit."
        " Default: what default.api.timeout.ms says in client.properties, or 30s.",
    ),
]
Attempts = Annotated[
    int,
    typer.Option(
        "--recovery-election-attempts",
        min=0,
        metavar="N",
        help="How often an election is retried after a temporary failure.",
    ),
]
Topics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        metavar="TOPIC",
        help="This topic. May be repeated. With --partition: only those of its partitions.",
    ),
]
Partitions = Annotated[
    list[int] | None,
    typer.Option("--partition", metavar="N", min=0, help="A partition of the one --topic. May be repeated."),
]
Rows = Annotated[
    int,
    typer.Option(
        "--rows", metavar="N", min=0, help="How many partitions the table shows, the worst first; 0: all."
    ),
]
RowsIfMany = Annotated[
    int | None,
    typer.Option(
        "--rows",
        metavar="N",
        min=0,
        help="How many partitions the table shows, the worst first; 0: all. Default: all partitions that"
        " are named, else 20.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation. Needs --reason.")]


def own_words(reason: str | None) -> str | None:
    """What stands for the reason in a printed command is no reason. Raises BadParameter."""
    if reason is not None and reason.strip() == "WHY":
        raise typer.BadParameter("say why in your own words: WHY only stands for the reason")
    return reason


Reason = Annotated[
    str | None,
    typer.Option("--reason", metavar="TEXT", help="The reason, for the journal.", callback=own_words),
]
ReviewedBy = Annotated[
    str | None,
    typer.Option("--reviewed-by", metavar="NAME", help="The person who reviewed the plan. Needs --digest."),
]
Digest = Annotated[
    str | None,
    typer.Option(
        "--digest",
        metavar="SHA256",
        help="The digest of the reviewed plan, as ktriage review prints it. A file with another digest is"
        " refused.",
    ),
]
KeepLogOf = Annotated[
    str | None,
    typer.Option(
        "--keep-log-of",
        metavar="BROKERS",
        help="Brokers that are down, such as 3 or 2,3, or silent for each that is down and unread: take them out of"
        " the replica sets right after the elections, so that they set their logs aside when they start, and cut"
        " nothing off. Partitions where that is not possible are not elected.",
        show_default=False,
    ),
]
RateOption = Annotated[
    str | None,
    typer.Option(
        "--rate",
        metavar="BYTES",
        help="At most so many bytes a second from each broker, such as 50MB or 8MiB. Default: no limit.",
    ),
]
RescueDirectory = Annotated[
    Path, typer.Argument(metavar="DIR", help="The rescue directory.", show_default=False)
]
RescuedMarkers = Annotated[
    Path | None,
    typer.Option(
        "--rescue",
        metavar="DIR",
        help="A rescue of what the elections cut off: a transaction whose marker is in it is known to be committed"
        " or aborted.",
    ),
]
PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="The plan file.", show_default=False)]

Option = tuple[str, Any, Any]
"""A parameter of a typer command: its name, its annotation and its default."""

REQUIRED = inspect.Parameter.empty
"""The default of an option that must be given."""

_OUTPUT: Option = ("output", OutputFormat, Output.TABLE)
_CONNECTION: tuple[Option, ...] = (
    ("bootstrap_server", BootstrapServer, None),
    ("cluster", Cluster, None),
    ("simulate", Simulate, None),
    ("seed", Seed, None),
    ("state", State, None),
    ("command_config", CommandConfig, None),
    ("broker", BrokerAddress, None),
    ("controller", ControllerAddress, None),
    ("state_dir", StateDir, None),
)
_CONTROLLERS: tuple[Option, ...] = (("bootstrap_controller", BootstrapController, None),)


def connected(
    function: Callable[..., int],
    *,
    needed: bool = True,
    controllers: bool = False,
    from_disks: bool = False,
    all_profiles: bool = False,
    of_kafka: bool = False,
) -> Callable[..., int]:
    """A typer command that takes the connection's options and --output, then the function's own options.

    ``controllers``: the command works through the controllers alone, and takes --bootstrap-controller.
    ``from_disks``: it only reads, and its own --metadata-dir alone is a cluster of which nothing runs.
    ``all_profiles``: its own --all takes the place of a cluster. ``of_kafka``: its options are those that a KIP
    gives Kafka's own tool, and there is no --duration beside --recovery-duration-ms.

    The function gets a :class:`console.cli.base.run.Run`. If no cluster is ``needed``, its target is None unless
    the user names one.
    """
    options = (*_CONNECTION, *(_CONTROLLERS if controllers else ()))
    own = inspect.signature(function).parameters
    own_output, lasts = "output" in own, _DURATION_MS in own and not of_kafka

    def run_on(ctx: typer.Context, values: dict[str, Any]) -> int:
        connection = {name: values.pop(name) for name, _, _ in options}
        connection["broker"] = connection["broker"] or ()
        connection["controller"] = connection["controller"] or ()
        given = [name for name, value in connection.items() if value and name != "state_dir"]
        every = all_profiles and values["every_profile"]
        if every and (given or any(values.get(name) for name in ("metadata_dir", "evidence"))):
            raise InputError("--all is for the clusters of all profiles: name none, and give no disk")
        named = (needed and not every) or bool(given)
        json = (values["output"] if own_output else values.pop("output")) == Output.JSON
        alone = values["metadata_dir"] if from_disks else None
        target = resolve(**connection, controllers=controllers, metadata_dir=alone) if named else None
        if target is not None and target.metadata_dir is not None:
            values["metadata_dir"] = None  # it is the cluster itself, and no copy beside it
        if target is None:
            use_state_dir(connection["state_dir"])
        else:
            use_state_dir(target.state_dir, target.state)
        if lasts:
            values[_DURATION_MS] = _duration_ms(ctx, values.pop("duration"), values[_DURATION_MS], target)
        return function(Run(ctx.obj, target, json, may_change(ctx)), **values)

    last = (*((("duration", Duration, None),) if lasts else ()), *(() if own_output else (_OUTPUT,)))
    return with_options(function, options, last, run_on)


def _duration_ms(ctx: typer.Context, duration: str | None, milliseconds: int, target: Target | None) -> int:
    """What was given, else what the client.properties file of the target says. Raises InputError."""
    source = ctx.get_parameter_source(_DURATION_MS)
    in_milliseconds = source is not None and source.name == "COMMANDLINE"
    if duration is not None and in_milliseconds:
        raise InputError("give --duration or --recovery-duration-ms, not both")
    if duration is not None:
        return milliseconds_of(duration, "--duration")
    if in_milliseconds or target is None or target.command_config is None:
        return milliseconds
    from console.backends import api_timeout_ms  # noqa: PLC0415  # only a target with a file pays for it

    return api_timeout_ms(target.command_config) or milliseconds


def may_change(ctx: typer.Context) -> bool:
    """Whether the registry says that the command (or the command that has it as a verb) can change a cluster."""
    found: typer.Context | None = ctx
    while found is not None:
        action = COMMANDS.get(found.command.name or "") or COMMANDS.get(found.info_name or "")
        if action is not None:
            return action.changes
        found = found.parent  # type: ignore[assignment]  # typer's contexts all the way up
    return False


def with_options(
    function: Callable[..., int],
    first: Sequence[Option],
    last: Sequence[Option],
    call: Callable[[typer.Context, dict[str, Any]], int],
) -> Callable[..., int]:
    """A typer command with the options ``first``, those of the function except its first parameter, and
    ``last``.

    ``call`` gets all values by name. It makes the function's first argument of ``first`` and ``last``, and
    calls it.
    """
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]

    def command(ctx: typer.Context, **values: Any) -> int:
        return call(ctx, values)

    parameters = [
        ("ctx", typer.Context, REQUIRED),
        *first,
        *((parameter.name, parameter.annotation, parameter.default) for parameter in own),
        *last,
    ]
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # read by typer
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, annotation, default in parameters
        ]
    )
    command.__doc__ = function.__doc__
    return command


def accepted(reason: str | None, strategy: Strategy, *, accept_unchecked: bool) -> str:
    """Why what was not checked is accepted, "" where it is not. Raises InputError."""
    if not accept_unchecked:
        return ""
    if strategy is not Strategy.BALANCED:
        raise InputError(f"--accept-unchecked is for --strategy balanced; {strategy} does not go by verdicts")
    found = " ".join((reason or "").split())
    if not found:
        raise InputError("--accept-unchecked needs --reason TEXT: the plan and the journal keep it")
    return found


def stated(reason: str | None, *, asked: bool) -> str:
    """The reason for the journal, "" if there is none. Raises InputError if --yes comes without a reason."""
    found = (reason or "").strip()
    if not asked and not found:
        raise InputError("--yes needs --reason TEXT: the journal records why nobody was asked")
    return found


_BYTE_UNITS = {
    **{"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12},
    **{"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40},
}
_BYTES = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")


_TIME_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)")


def milliseconds_of(text: str, option: str) -> int:
    """The value of ``option``. Raises InputError."""
    given = _TIME.fullmatch(text.strip().lower())
    milliseconds = int(float(given[1]) * _TIME_UNITS[given[2]]) if given else 0
    if milliseconds < 1:
        raise InputError(f"{option} {text!r}: give a time with its unit, such as 5s, 2m or 500ms")
    return milliseconds


def bytes_per_second(rate: str | None, option: str = "--rate") -> int | None:
    """The value of ``option``. Raises InputError."""
    return (
        None if rate is None else _bytes(rate.strip().lower().removesuffix("/s"), option, rate, " per second")
    )


def byte_count(text: str | None, option: str) -> int | None:
    """The value of ``option``. Raises InputError."""
    return None if text is None else _bytes(text.strip().lower(), option, text, "")


def _bytes(text: str, option: str, given: str, per: str) -> int:
    found = _BYTES.fullmatch(text)
    unit = _BYTE_UNITS.get(found[2] or "b") if found else None
    count = int(float(found[1]) * unit) if found and unit else 0
    if count < 1:
        raise InputError(f"{option} {given!r}: give bytes{per}, such as 50MB or 8MiB")
    return count
