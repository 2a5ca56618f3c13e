"""Pane 6: the plan."""

from widgets.plan.candidates import in_plan
from widgets.plan.pane import PlanPane
from widgets.plan.pick import CandidatePicker
from widgets.plan.view import Batch, PlanView, RowOutcome

__all__ = ["Batch", "CandidatePicker", "PlanPane", "PlanView", "RowOutcome", "in_plan"]
