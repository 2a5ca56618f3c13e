"""Errors of the pipeline. Each message is one line that says what to do."""

from __future__ import annotations


class PipelineError(Exception):
    """Input that cannot be used, or a URI that cannot be read or written."""


class NotInstalled(PipelineError):
    """A program or library that the pipeline needs is not installed."""
