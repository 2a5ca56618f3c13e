"""Pane 4: the metadata quorum."""

from widgets.quorum.pane import QuorumPane
from widgets.quorum.view import Change, Member, QuorumView, Role

__all__ = ["Change", "Member", "QuorumPane", "QuorumView", "Role"]
