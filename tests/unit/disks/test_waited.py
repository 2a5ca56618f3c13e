"""What is offered for partitions that do not come back after a disk was replaced."""

from __future__ import annotations

import io
from typing import Any

from console.cli.log_dirs_swapping import _waited
from console.cli.run import Program, Run
from console.output.screen import Screen
from console.signals import Supervisor
from console.target import resolve
from recovery.disks.values import Place
from tests.unit.disks.clusters import B, state


def said(*left: Any) -> str:
    err = io.StringIO()
    program = Program("ktriage", (), Screen(lambda: 0.0, io.StringIO(), err), Supervisor(lambda _signum: ""))
    _waited(Run(program, resolve("kafka-1:9092", None, None, None), json=False), Place(1, B), list(left))
    return err.getvalue()


def test_no_election_is_offered_where_no_other_copy_is() -> None:
    alone = state(0, (1,), leader=-1, isr=(1,))
    told = said(alone)
    assert "no other replica has a copy" in told
    assert "--strategy" not in told
    assert "--strategy aggressive" in said(state(1, leader=-1, isr=(1,)), alone)
