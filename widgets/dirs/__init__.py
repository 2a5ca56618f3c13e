"""Pane 5: log dirs."""

from widgets.dirs.pane import DirsPane
from widgets.dirs.view import DirDetail, DirRow, DirsView, PartitionOutcome

__all__ = ["DirDetail", "DirRow", "DirsPane", "DirsView", "PartitionOutcome"]
