"""What is given and does nothing was meant to do something."""

from __future__ import annotations

from collections.abc import Collection

import typer

from console.errors import InputError


def refuse_unused(ctx: typer.Context, what: str, takes: Collection[str]) -> None:
    """Raises InputError for an option of the command line that ``what`` does not take; ``takes`` are parameters."""
    for parameter in ctx.command.params:
        name = parameter.name or ""
        source = ctx.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE" and name not in takes:
            option = parameter.opts[-1]
            given = option if option.startswith("-") else " ".join(map(str, ctx.params[name]))
            raise InputError(f"{what} does not take {given}")
