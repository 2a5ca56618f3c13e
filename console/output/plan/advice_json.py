"""What to do first, as JSON (docs/output.md, "steps")."""

from __future__ import annotations

from collections.abc import Sequence

from console.output.plan.plan_json import tp_json
from recovery.advice import FirstStep
from recovery.wording.advice_text import step_lines


def steps_json(steps: Sequence[FirstStep]) -> list[dict[str, object]]:
    """All steps in order, with the sentences of the tables."""
    return [_step_json(step) for step in steps]


def _step_json(step: FirstStep) -> dict[str, object]:
    advice = step.advice
    return {
        "kind": advice.kind.value,
        "brokers": list(advice.brokers),
        "partitions": step.partitions,
        "example": tp_json(step.example),
        "keepDown": [
            {
                "broker": one.broker,
                "electedAs": one.kind.value,
                "checksRecords": one.checks_records,
                "failedDisk": one.failed_disk,
                "cutsOff": list(one.cuts_off),
            }
            for one in advice.keep_down
        ],
        "checkDisk": list(advice.check_disk),
        "byElr": advice.by_elr,
        "reassigning": advice.reassigning,
        "text": " ".join(step_lines(step)),
    }
