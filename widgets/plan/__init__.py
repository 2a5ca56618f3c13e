"""Pane 6: the plan."""

from widgets.plan.candidate_picker import CandidatePicker, in_plan
from widgets.plan.plan_pane import PlanPane
from widgets.plan.plan_view import BatchProgress, PlanView, RowOutcome

__all__ = ["BatchProgress", "CandidatePicker", "PlanPane", "PlanView", "RowOutcome", "in_plan"]
