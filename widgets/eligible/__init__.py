"""Pane 3: ELR and LastKnownELR, and what the controller waits for."""

from widgets.eligible.eligible_pane import EligiblePane, EligibleView
from widgets.eligible.eligible_row import DiskWord, EligibleRow
from widgets.eligible.eligible_text import unknown_now

__all__ = ["DiskWord", "EligiblePane", "EligibleRow", "EligibleView", "unknown_now"]
