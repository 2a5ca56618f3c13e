"""The tree of commands; each is imported only when it is called."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from console.change.registry import COMMANDS
from console.cli.base.option_values import quicken
from console.cli.base.options import (
    BootstrapServer,
    BrokerAddress,
    Cluster,
    CommandConfig,
    ControllerAddress,
    MetadataDir,
    Seed,
    Simulate,
    State,
    StateDir,
)
from console.cli.base.verbs import Verb, VerbGroup
from console.errors import STATUS_HELP, InputError
from console.logs import LOG_OPTIONS_HELP
from console.paths import use_state_dir
from console.provenance import version as installed
from console.target import resolve

HELP = (
    """\
Triage and recovery for Apache Kafka: what is broken, what each choice loses, and what exactly
will be sent.

\b
Examples:
  ktriage                                          pick a profile or a scenario, and open the console
  ktriage --bootstrap-server kafka-1:9092          the console on that cluster, read-only until it is armed
  ktriage check --bootstrap-server kafka-1:9092
  ktriage replicas --bootstrap-server kafka-1:9092 --all-offline-partitions
  ktriage plan --bootstrap-server kafka-1:9092 recovery.json
  ktriage review recovery.json
  ktriage apply --bootstrap-server kafka-1:9092 recovery.json
  ktriage verify --bootstrap-server kafka-1:9092 recovery.json

"""
    + LOG_OPTIONS_HELP
)


class LazyGroup(TyperGroup):
    """Imports only the module of the command that is called or completed."""

    def get_params(self, ctx: Any) -> list[Any]:
        return quicken(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  # as its protocol or base class has it
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | TyperGroup | None:  # noqa: ARG002  # typer's
        return single(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except TyperException as error:
            # typer looks for similar names among the commands that are loaded: here, none.
            near = get_close_matches(args[0], COMMANDS) if args else ()
            if near:
                error.message = f"{error.message} Did you mean {near[0]!r}?"
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  # typer's
        with formatter.section("Commands"):
            formatter.write_dl([(action.name, action.summary) for action in COMMANDS.values()])


class QuickCommand(TyperCommand):
    """A command that converts its option values without pydantic."""

    def get_params(self, ctx: Any) -> list[Any]:
        return quicken(super().get_params(ctx))


class CommandWithForms(QuickCommand):
    """A command that has another form, with other options, if a certain option is given."""

    forms: Mapping[str, TyperCommand]

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **extra: Any) -> Any:
        for option, form in self.forms.items():
            if any(word == option or word.startswith(f"{option}=") for word in args):
                return form.make_context(info_name, args, *more, **extra)
        return super().make_context(info_name, args, *more, **extra)


def tree() -> TyperGroup:
    """``ktriage`` with all its commands."""
    app = _typer(cls=LazyGroup, help=HELP, add_completion=True, invoke_without_command=True)
    app.callback()(_ktriage)
    command = typer.main.get_command(app)
    assert isinstance(command, TyperGroup)
    return command


def single(name: str) -> TyperCommand | TyperGroup:
    """One command; a group if its module has verbs."""
    action = COMMANDS[name]
    module = importlib.import_module(action.command)
    if hasattr(module, "VERBS"):
        return _group(module.HELP, module.VERBS, getattr(module, "DEFAULT_VERB", ""))
    if not hasattr(module, "FORMS"):
        return _command(Verb(name, action.summary, module.command))
    command = _command(Verb(name, action.summary, module.command), CommandWithForms)
    assert isinstance(command, CommandWithForms)
    command.forms = {
        option: _command(Verb(name, action.summary, form)) for option, form in module.FORMS.items()
    }
    return command


def _group(text: str, verbs: Iterable[Verb], default: str) -> VerbGroup:
    app = _typer(cls=VerbGroup, help=text)
    for verb in verbs:
        _add(app, verb)
    group = typer.main.get_group(app)
    assert isinstance(group, VerbGroup)
    group.default = default
    return group


def _command(verb: Verb, kind: type[QuickCommand] = QuickCommand) -> TyperCommand:
    app = _typer()
    _add(app, verb, kind)
    command = typer.main.get_command(app)
    assert isinstance(command, TyperCommand)
    return command


def _typer(**settings: Any) -> typer.Typer:
    plain = {"rich_markup_mode": None, "pretty_exceptions_enable": False, "add_completion": False}
    return typer.Typer(**(plain | {"context_settings": _SETTINGS} | settings))


def _add(app: typer.Typer, verb: Verb, kind: type[QuickCommand] = QuickCommand) -> None:
    text = f"{inspect.cleandoc(verb.command.__doc__ or '')}\n\n{STATUS_HELP}"
    app.command(verb.name, cls=kind, help=text, short_help=verb.summary, context_settings=_SETTINGS)(
        verb.command
    )


_SETTINGS = {"help_option_names": ["--help", "-h"], "max_content_width": 110}


def _ktriage(
    ctx: typer.Context,
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)
    ] = False,
    bootstrap_server: BootstrapServer = None,
    cluster: Cluster = None,
    simulate: Simulate = None,
    seed: Seed = None,
    state: State = None,
    command_config: CommandConfig = None,
    broker: BrokerAddress = None,
    controller: ControllerAddress = None,
    state_dir: StateDir = None,
    metadata_dir: MetadataDir = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Console: never allow changes; it cannot be armed.")
    ] = False,
    guide: Annotated[bool, typer.Option("--guide", help="Console: show what to press next.")] = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve the console to a browser on loopback; it cannot be armed.")
    ] = False,
    port: Annotated[int, typer.Option("--port", metavar="N", help="With --serve: the port.")] = 8000,
) -> None:
    if version:
        typer.echo(f"ktriage {installed()}")
        raise typer.Exit
    given = (bootstrap_server, cluster, simulate, seed, state, command_config, broker, controller)
    named = any(value is not None for value in given)
    if ctx.invoked_subcommand is not None:
        if named or (state_dir, metadata_dir) != (None, None) or read_only or guide or serve:
            raise InputError(f"cluster options come after the command: ktriage {ctx.invoked_subcommand} …")
        return
    if metadata_dir is not None and not named:
        raise InputError("--metadata-dir is a copy of one cluster's log: name the cluster too")
    # Only the console needs these imports.
    from console.cli.open_console import has_terminal, open_console, served  # noqa: PLC0415
    from console.cli.open_console import serve as begin_to_serve  # noqa: PLC0415

    if not (named or serve or served() or has_terminal()):
        typer.echo(ctx.get_help())
        raise typer.Exit
    target = (
        resolve(
            bootstrap_server,
            cluster,
            simulate,
            command_config,
            broker or (),
            seed=seed,
            state=state,
            state_dir=state_dir,
            controller=controller or (),
        )
        if named
        else None
    )
    if target is None:
        use_state_dir(state_dir)
    else:
        use_state_dir(target.state_dir, target.state)
    if serve:
        raise typer.Exit(begin_to_serve([word for word in ctx.obj.argv[1:] if word != "--serve"], port))
    raise typer.Exit(
        open_console(ctx.obj, target, read_only=read_only, guide=guide, metadata_dir=metadata_dir)
    )
