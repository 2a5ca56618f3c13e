"""Pane 2: every replica of a partition, and the picture of their logs."""

from widgets.replicas.replicas_pane import ReplicasPane, ReplicasView

__all__ = ["ReplicasPane", "ReplicasView"]
