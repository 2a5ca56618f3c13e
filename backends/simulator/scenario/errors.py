"""Mistakes in scenario files: one line with file, line number and what was expected."""

from __future__ import annotations


class ScenarioError(ValueError):
    """One line for a person: ``file:line: what was expected``."""


class UnknownScenario(ScenarioError):
    """No built-in scenario of that name, and no such file."""


class MisplacedValue(ValueError):
    """``expected`` belongs at ``path`` (keys and indices) in the file."""

    def __init__(self, path: tuple[int | str, ...], expected: str) -> None:
        super().__init__(f"expected {expected}")
        self.path = path
