"""What to do first, as programs read it: the same steps in ``status`` and ``plan`` as on the screen."""

from __future__ import annotations

import json

import pytest

from tests.unit.cli.command_process import Caller

STANDING = ("--simulate", "last-replica-standing")


@pytest.mark.parametrize("line", [("status",), ("plan", "--all-offline-partitions", "plan.json")])
def test_the_steps_are_those_of_the_table(call: Caller, line: tuple[str, ...]) -> None:
    table = " ".join(call("ktriage", *line, *STANDING).out.split())
    again = [word.replace("plan.json", "again.json") for word in line]
    document = json.loads(call("ktriage", *again, *STANDING, "--output", "json").out)
    steps = document["steps"]
    assert sum(step["partitions"] for step in steps) == document["counts"]["offline"] > 0
    assert f"Do first: {steps[0]['text']}" in table.replace(f" ({_name(steps[0])}):", ":")
    for step in steps:
        assert (step["kind"] == "choose") == (step["brokers"] == [])
        assert all(
            set(one) == {"broker", "electedAs", "checksRecords", "failedDisk"} for one in step["keepDown"]
        )


def _name(step: dict[str, dict[str, object]]) -> str:
    return "{topic}-{partition}".format(**step["example"])
