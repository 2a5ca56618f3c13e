"""Pane 4: the metadata quorum."""

from widgets.quorum.quorum_pane import QuorumPane
from widgets.quorum.quorum_pane_view import QuorumMember, QuorumPaneView, QuorumRole, VoterChangePreview

__all__ = ["QuorumMember", "QuorumPane", "QuorumPaneView", "QuorumRole", "VoterChangePreview"]
