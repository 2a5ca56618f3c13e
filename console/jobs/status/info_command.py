"""``ktriage info``."""

from __future__ import annotations

from typing import Any

import typer

from console.cli.base.options import Option, OutputFormat, StateDir, with_options
from console.cli.base.run import Output
from console.paths import use_state_dir
from console.program import Program


def info(program: Program) -> int:
    """Shows which ktriage this is: version, commit and Python, where its files lie (journal, profiles, pages of the
    documentation), which extras are installed, and how to install those that are missing. No cluster is contacted.

    \b
    Examples:
      ktriage info
      ktriage info --output json
    """
    from console.jobs.status.installation import installation_lines  # noqa: PLC0415  # not for --help

    program.screen.out(installation_lines())
    return 0


_OPTIONS: tuple[Option, ...] = (("state_dir", StateDir, None), ("output", OutputFormat, Output.TABLE))


def _call(ctx: typer.Context, values: dict[str, Any]) -> int:
    use_state_dir(values["state_dir"])
    if values["output"] != Output.JSON:
        return info(ctx.obj)
    from console.jobs.status.installation import installation_document  # noqa: PLC0415  # not for --help

    ctx.obj.screen.out(installation_document())
    return 0


command = with_options(info, _OPTIONS, (), _call)
