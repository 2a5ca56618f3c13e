"""Over ssh a refresh that brings nothing new sends nothing: no pane repaints for equal values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from textual.geometry import Region
from textual.widget import Widget

from console.app.session.draft import Draft
from console.jobs.disks.log_dirs_pane import LogDirsPane
from console.jobs.elect.plan_pane import PlanPane
from console.jobs.quorum.quorum_pane import QuorumPane
from console.reading.partitions_pane import PartitionsPane
from console.reading.replica_report import replica_rows
from console.reading.replicas_pane import ReplicasPane
from recovery.controller.rules import ControllerRules
from recovery.membership.preflight import LivenessLimits
from recovery.membership.quorum_health import health
from tests.unit.membership.quorums import quorum
from tests.unit.widgets import examples
from tests.unit.widgets.harness import Harness
from tests.unit.widgets.test_panes import DIRS, rows
from widgets.bars.title_bar import RefreshState, Title, TitleBar
from widgets.eligible_pane import EligiblePane, EligibleRow, EligibleView
from widgets.table import RowTable
from widgets.text_lines import Lines

VIEWS: dict[type[Widget], Callable[[], Any]] = {
    PartitionsPane: rows,
    ReplicasPane: lambda: replica_rows(examples.READING, examples.stale_long_tail()),
    EligiblePane: lambda: EligibleView(
        tuple(EligibleRow(one, ControllerRules(), {}) for one in examples.SURVEYS)
    ),
    QuorumPane: lambda: health(quorum(1, 2, 3), LivenessLimits()),
    LogDirsPane: lambda: tuple(DIRS),
    PlanPane: lambda: Draft(examples.plan()),
    TitleBar: lambda: Title("prod", "id", "LIVE", age_s=3.0, refresh=RefreshState.FRESH, colour="red"),
}


def watch(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Widget, Region]]:
    """Every repaint of a table or of lines from now on; a repaint of all is that of the widget's region."""
    painted: list[tuple[Widget, Region]] = []
    for kind in (RowTable, Lines):
        refresh = kind.refresh

        def watched(self: Widget, *regions: Region, _refresh: Any = refresh, **options: bool) -> Any:
            painted.extend((self, region) for region in regions or [self.region])
            return _refresh(self, *regions, **options)

        monkeypatch.setattr(kind, "refresh", watched)
    return painted


@pytest.mark.parametrize("kind", VIEWS, ids=lambda kind: kind.__name__)
async def test_equal_values_repaint_nothing(kind: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    shown = kind()
    async with Harness(shown).run_test(size=(80, 24)) as pilot:
        shown.update(VIEWS[kind]())
        await pilot.pause()
        await pilot.pause()
        painted = watch(monkeypatch)
        shown.update(VIEWS[kind]())
        await pilot.pause()
        assert painted == []


async def test_another_age_repaints_its_line_only(monkeypatch: pytest.MonkeyPatch) -> None:
    bar = TitleBar()
    title = VIEWS[TitleBar]()
    async with Harness(bar).run_test(size=(80, 24)) as pilot:
        bar.update(title)
        await pilot.pause()
        painted = watch(monkeypatch)
        bar.update(replace(title, age_s=4.0))
        await pilot.pause()
        assert [(region.y, region.height) for _, region in painted] == [(1, 1)]
