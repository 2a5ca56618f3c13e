"""The options of the rescue before elections, which apply, recover and elect share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from console.cli.base.declaration import option
from console.cli.base.options import bytes_per_second
from console.errors import InputError

if TYPE_CHECKING:
    from console.jobs.rescue.rescue_outlook import RescueChoice  # not for --help

RESCUE_INTO = option(
    "--rescue DIR",
    "Where what the elections cut off is read to first, or where ktriage rescue read began that. Default:"
    " a directory of this plan in the state directory. Partitions of which something cannot be read are not"
    " elected.",
)
NO_RESCUE = option(
    "--no-rescue", "Elect without reading first what is cut off: it is gone for good. Needs --reason."
)
ELECT_UNRESCUED = option("--elect-unrescued", "Elect also where something could not be read first.")


def rescue_choice(
    directory: Path | None, *, declined: bool, rate: str | None, elect_anyway: bool, reason: str | None = None
) -> RescueChoice | None:
    """The rescue that the options ask for; None: it is ``declined``. Raises InputError."""
    if declined and (directory is not None or rate is not None or elect_anyway):
        raise InputError(
            "--rescue, --rate and --elect-unrescued are for a rescue, which --no-rescue declines"
        )
    if declined and reason is not None and not reason.strip():
        raise InputError("--no-rescue needs --reason TEXT: the journal says why nothing was read first")
    from console.jobs.rescue.rescue_outlook import RescueChoice  # noqa: PLC0415  # not for --help

    return None if declined else RescueChoice(directory, bytes_per_second(rate), elect_anyway)
