"""What the confirmation of a plan offers for records that its elections cut off; the rescue comes first."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from console.saved_plans import rescue_directory
from recovery.plan.values import Plan
from widgets.dialogs.confirmation import ConfirmOption
from widgets.text import Tone

if TYPE_CHECKING:
    from console.operations.rescue.rescue_read import RescueRequest


class RescueOption(NamedTuple):
    """``request`` is None where nothing is read."""

    option: ConfirmOption
    request: RescueRequest | None


def rescue_options(plan: Plan) -> tuple[RescueOption, ...]:
    """The choices for a plan; empty where no election of it can lose anything. Raises InputError."""
    if all(row.loss.none for row in plan.rows):
        return ()
    from console.operations.rescue.rescue_read import RescueRequest  # noqa: PLC0415  # not for the first frame

    directory = rescue_directory(plan)
    where = f"…/{directory.parent.name}/{directory.name}"
    return (
        RescueOption(
            ConfirmOption("rescue first", f"Rescue first: what is cut off is read into {where}."),
            RescueRequest(directory),
        ),
        RescueOption(
            ConfirmOption("no rescue", "NO rescue: what is cut off is gone for good.", Tone.BAD), None
        ),
        RescueOption(
            ConfirmOption(
                "rescue, and elect also what could not be read",
                f"Rescue first, into {where}; elect also what could not be read as a whole.",
                Tone.WARN,
            ),
            RescueRequest(directory, elect_anyway=True),
        ),
    )
