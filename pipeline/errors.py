"""What the pipeline refuses. Each message is one line for a person, with what to do."""

from __future__ import annotations


class PipelineError(Exception):
    """Input that cannot be used, or a place that cannot be read or written."""


class NotInstalled(PipelineError):
    """What the pipeline needs is not on this machine."""
