"""Pane 4: the metadata quorum."""

from widgets.quorum.quorum_pane import QuorumPane
from widgets.quorum.quorum_pane_view import QuorumPaneRow, QuorumPaneView, QuorumRole, VoterChangePreview

__all__ = ["QuorumPane", "QuorumPaneRow", "QuorumPaneView", "QuorumRole", "VoterChangePreview"]
