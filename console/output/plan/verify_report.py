"""``ktriage verify`` as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from console.operations.consumers.election_aftermath import ElectionAftermath
from console.output.json_document import document
from console.output.plan.aftermath_report import aftermath_json
from console.output.plan.plan_json import state_json
from console.output.plan.plan_table import state_counts, state_table
from recovery.plan.verify import Leading, RowState
from recovery.wording.quantity_text import counted

_LED = {
    Leading.OTHER: "led by another leader",
    Leading.OFFLINE: "led by nobody",
    Leading.NOT_SEEN: "not seen",
    Leading.MOVED: "led by a replica that took over later and has the planned log",
    Leading.CLEAN: "led by a member of ISR or ELR",
    Leading.RIGHT: "led by the right leader",
}
"""The worst first."""


def verified_lines(states: Sequence[RowState], limit: int) -> Iterator[str]:
    """Counts, then the incomplete rows, the worst first."""
    leading = Counter(state.leading for state in states)
    yield f"{counted(len(states), 'partition')} of the plan: " + ", ".join(
        f"{leading[what]:,} {text}" for what, text in _LED.items() if leading[what]
    )
    yield from state_counts(states)
    missing = sorted((state for state in states if not state.complete), key=lambda state: state.good)
    if not missing:
        yield "all of them have the planned leader, are at min ISR and fully replicated"
        return
    shown = missing[:limit] if limit else missing
    yield ""
    yield from state_table(shown)
    if len(missing) > len(shown):
        yield f"… and {len(missing) - len(shown):,} more (--rows 0, or --output json, shows all)"


def verified_document(states: Sequence[RowState], aftermath: ElectionAftermath) -> Iterator[str]:
    """``ktriage.verify/1``."""
    return document(
        "verify",
        {
            "counts": {
                "partitions": len(states),
                "good": sum(1 for state in states if state.good),
                "usable": sum(1 for state in states if state.usable is True),
                "replicated": sum(1 for state in states if state.replicated),
                "complete": sum(1 for state in states if state.complete),
            },
            "partitions": [state_json(state) for state in states],
            **aftermath_json(aftermath),
        },
    )
