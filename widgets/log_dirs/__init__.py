"""Pane 5: log dirs."""

from widgets.log_dirs.log_dirs_pane import LogDirsPane
from widgets.log_dirs.log_dirs_view import LogDirDetail, LogDirRow, LogDirsView, PartitionOutcome

__all__ = ["LogDirDetail", "LogDirRow", "LogDirsPane", "LogDirsView", "PartitionOutcome"]
