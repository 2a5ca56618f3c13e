"""Pane 3: ELR and LastKnownELR, and what the controller waits for."""

from widgets.eligible.pane import EligiblePane, EligibleView
from widgets.eligible.row import DiskWord, EligibleRow

__all__ = ["DiskWord", "EligiblePane", "EligibleRow", "EligibleView"]
