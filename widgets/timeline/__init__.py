"""Pane 7: the timeline."""

from widgets.timeline.timeline_pane import TimelinePane
from widgets.timeline.timeline_view import TimelineRow, TimelineView

__all__ = ["TimelinePane", "TimelineRow", "TimelineView"]
