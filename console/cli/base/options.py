"""A command on a cluster: which one, how long it waits, and in which form it answers; what options' texts mean."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import typer

from console.change.registry import COMMANDS
from console.cli.base.declaration import with_options
from console.cli.base.declared import ClusterOptions, ControllerOptions, DurationLimit, OutputForm
from console.cli.base.run import Output, Run
from console.errors import InputError
from console.target import Target
from recovery.strategy import Strategy

_DURATION_MS = "recovery_duration_ms"


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
    group = ControllerOptions if controllers else ClusterOptions
    own = inspect.signature(function).parameters
    own_output, lasts = "output" in own, _DURATION_MS in own and not of_kafka

    def run_on(ctx: typer.Context, values: dict[Any, Any]) -> int:
        connection: ClusterOptions = values.pop(group)
        every = all_profiles and values["every_profile"]
        if every and (connection.named or any(values.get(name) for name in ("metadata_dir", "evidence"))):
            raise InputError("--all is for the clusters of all profiles: name none, and give no disk")
        json = (values["output"] if own_output else values.pop(OutputForm).output) == Output.JSON
        target = None
        if (needed and not every) or connection.named:
            alone = values["metadata_dir"] if from_disks else None
            target = connection.target(controllers=controllers, metadata_dir=alone)
            if target.metadata_dir is not None:
                values["metadata_dir"] = None  # it is the cluster itself, and no copy beside it
        connection.use_state_dir(target)
        if lasts:
            duration = values.pop(DurationLimit).duration
            values[_DURATION_MS] = _duration_ms(ctx, duration, values[_DURATION_MS], target)
        return function(Run(ctx.obj, target, json, may_change(ctx)), **values)

    last = (*((DurationLimit,) if lasts else ()), *(() if own_output else (OutputForm,)))
    return with_options(function, (group,), last, run_on)


def without_cluster(function: Callable[..., int], *, output: bool = True) -> Callable[..., int]:
    """A typer command that asks no cluster, with --output unless it prints nothing that is a result."""

    def call(ctx: typer.Context, values: dict[Any, Any]) -> int:
        json = output and values.pop(OutputForm).output == Output.JSON
        return function(Run(ctx.obj, None, json), **values)

    return with_options(function, (), (OutputForm,) if output else (), call)


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
    context: typer.Context | None = ctx
    while context is not None:
        action = COMMANDS.get(context.command.name or "") or COMMANDS.get(context.info_name or "")
        if action is not None:
            return action.changes
        context = context.parent  # type: ignore[assignment]  # typer's contexts all the way up
    return False


def accepted(reason: str | None, strategy: Strategy, *, accept_unchecked: bool) -> str:
    """Why what was not checked is accepted, "" where it is not. Raises InputError."""
    if not accept_unchecked:
        return ""
    if strategy is not Strategy.BALANCED:
        raise InputError(f"--accept-unchecked is for --strategy balanced; {strategy} does not go by verdicts")
    why = " ".join((reason or "").split())
    if not why:
        raise InputError("--accept-unchecked needs --reason TEXT: the plan and the journal keep it")
    return why


def stated(reason: str | None, *, asked: bool) -> str:
    """The reason for the journal, "" if there is none. Raises InputError if --yes comes without a reason."""
    why = (reason or "").strip()
    if not asked and not why:
        raise InputError("--yes needs --reason TEXT: the journal records why nobody was asked")
    return why


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
    number = _BYTES.fullmatch(text)
    unit = _BYTE_UNITS.get(number[2] or "b") if number else None
    count = int(float(number[1]) * unit) if number and unit else 0
    if count < 1:
        raise InputError(f"{option} {given!r}: give bytes{per}, such as 50MB or 8MiB")
    return count
