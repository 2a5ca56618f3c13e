"""The tree of commands; each is imported only when it is called."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from console.change.registry import COMMANDS
from console.cli.base.declaration import option, with_options
from console.cli.base.declared import METADATA_DIR, ClusterOptions
from console.cli.base.option_values import quicken
from console.cli.base.verbs import Verb, VerbGroup
from console.errors import STATUS_HELP, InputError
from console.logs import LOG_OPTIONS_HELP
from console.provenance import version as installed

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
        for name, form in self.forms.items():
            if any(word == name or word.startswith(f"{name}=") for word in args):
                return form.make_context(info_name, args, *more, **extra)
        return super().make_context(info_name, args, *more, **extra)


def tree() -> TyperGroup:
    """``ktriage`` with all its commands."""
    app = _typer(cls=LazyGroup, help=HELP, add_completion=True, invoke_without_command=True)
    app.callback()(with_options(_ktriage, (), (), lambda ctx, values: _ktriage(ctx, **values)))
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
    version: bool = option("--version", "Print the version and exit.", is_eager=True),
    connection: ClusterOptions,
    metadata_dir: Path | None = METADATA_DIR,
    read_only: bool = option("--read-only", "Console: never allow changes; it cannot be armed."),
    guide: bool = option("--guide", "Console: show what to press next."),
    serve: bool = option("--serve", "Serve the console to a browser on loopback; it cannot be armed."),
    port: int = option("--port N", "With --serve: the port.", 8000),
) -> None:
    if version:
        typer.echo(f"ktriage {installed()}")
        raise typer.Exit
    named = connection.named
    if ctx.invoked_subcommand is not None:
        if named or (connection.state_dir, metadata_dir) != (None, None) or read_only or guide or serve:
            raise InputError(f"cluster options come after the command: ktriage {ctx.invoked_subcommand} …")
        return
    # Only the console needs these imports.
    from console.cli.open_console import has_terminal, open_console, served  # noqa: PLC0415
    from console.cli.open_console import serve as begin_to_serve  # noqa: PLC0415

    on_disks = metadata_dir is not None and not named
    if not (named or on_disks or serve or served() or has_terminal()):
        typer.echo(ctx.get_help())
        raise typer.Exit
    target = connection.target(metadata_dir=metadata_dir) if named or on_disks else None
    connection.use_state_dir(target)
    if serve:
        raise typer.Exit(begin_to_serve([word for word in ctx.obj.argv[1:] if word != "--serve"], port))
    raise typer.Exit(
        open_console(
            ctx.obj, target, read_only=read_only, guide=guide, metadata_dir=None if on_disks else metadata_dir
        )
    )
