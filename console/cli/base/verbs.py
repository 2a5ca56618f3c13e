"""The verbs of a command such as ``ktriage quorum``: each is a subcommand with its own options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from typer.core import TyperGroup

from console.cli.base.option_values import quicken
from console.errors import InputError

_HELP = frozenset({"--help", "-h"})


class Verb(NamedTuple):
    """``command`` is the function that typer runs. Its docstring is the help; ``summary`` is the line in the
    list of verbs.
    """

    name: str
    summary: str
    command: Callable[..., int]


class VerbGroup(TyperGroup):
    """``default``: the verb if options or a plan file follow the command directly; "" if a verb must be given."""

    default = ""

    def get_params(self, ctx: Any) -> list[Any]:
        return quicken(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        first = args[0] if args else ""
        completes = ctx.resilient_parsing and not args
        omitted = not first or first.startswith("-") or (bool(self.default) and first.endswith(".json"))
        if first not in _HELP and not completes and omitted:
            if self.default:
                args = [self.default, *args]
            elif not ctx.resilient_parsing:
                raise InputError(self._missing(ctx, args))
        return super().parse_args(ctx, args)

    def _missing(self, ctx: Any, args: list[str]) -> str:
        verbs = self.list_commands(ctx)
        given = next((word for word in args if word in verbs), None)
        if given is not None:
            return f"options come after the verb: {ctx.command_path} {given} …"
        return f"which of {', '.join(verbs)}? The verb comes first: {ctx.command_path} VERB …"

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        words = super().shell_complete(ctx, incomplete)
        default = self.get_command(ctx, self.default) if incomplete.startswith("-") else None
        return words if default is None else [*words, *default.shell_complete(ctx, incomplete)]
