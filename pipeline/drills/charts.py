"""The results of a drill as charts (PNG): one panel per scenario, one bar per recovery method, with its
confidence interval.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.drills.recovery_arms import Arm
from pipeline.errors import NotInstalled
from recovery.wording.missing_extra import missing_extra

TITLES = {
    "lost_acknowledged": "records acknowledged with acks=all and lost, mean per incident",
    "lost_other": "other records lost, mean per incident",
    "unavailable_s": "partition-seconds without a leader, mean per incident",
    "decisions": "decisions that a person had to make, mean per incident",
}


def picture(cells: Sequence[Mapping[str, Any]], measure: str) -> bytes:
    """A PNG of one measure. Raises NotInstalled if matplotlib is missing."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415  # an extra
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ModuleNotFoundError:
        raise NotInstalled(missing_extra("charts need", "matplotlib", "spark")) from None
    scenarios = sorted({cell["scenario"] for cell in cells} - {"all"}) or ["all"]
    levels = sorted({cell["min_isr"] for cell in cells})
    arms = [arm.value for arm in Arm if any(cell["arm"] == arm.value for cell in cells)]
    figure = Figure(figsize=(4 + 2.6 * len(scenarios), 1.6 + 0.42 * len(arms)), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(scenarios), squeeze=False, sharey=True)[0]
    thick = 0.8 / len(levels)
    for panel, scenario in zip(panels, scenarios, strict=True):
        for number, level in enumerate(levels):
            found = {c["arm"]: c for c in cells if c["scenario"] == scenario and c["min_isr"] == level}
            values = [(found[arm][measure] or 0.0) if arm in found else 0.0 for arm in arms]
            spread = [(found[arm][f"{measure}_ci"] or 0.0) if arm in found else 0.0 for arm in arms]
            where = [place + number * thick for place in range(len(arms))]
            label = "min ISR as it is" if level < 0 else f"min ISR {level}"
            panel.barh(where, values, thick * 0.9, xerr=spread, label=label, capsize=2)
        panel.set_title(scenario, fontsize=10)
        panel.set_yticks([place + 0.4 - thick / 2 for place in range(len(arms))], arms)
        panel.grid(axis="x", alpha=0.3)
        panel.invert_yaxis() if panel is panels[0] else None
    panels[-1].legend(fontsize=8)
    figure.suptitle(TITLES[measure], fontsize=11)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
    return buffer.getvalue()
