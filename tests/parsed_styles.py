"""Style sheets are parsed once for all consoles that tests open.

Textual parses the style sheet of each widget anew for each application, and again for each theme: a twelfth of the
time that a console takes to open. What it parses from the same text and the same colours is the same.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.css.types import CSSLocation

_PARSE = Stylesheet._parse_rules
_parsed: dict[Hashable, list[RuleSet]] = {}


def keep() -> None:
    """From now on this process keeps what it parses."""
    Stylesheet._parse_rules = _parse_rules  # type: ignore[assignment, method-assign]


def _parse_rules(self: Stylesheet, css: str, read_from: CSSLocation, **how: Any) -> list[RuleSet]:
    text = (css, read_from, *how.items(), *self._variables.items())
    if text not in _parsed:
        _parsed[text] = _PARSE(self, css, read_from, **how)
    return _parsed[text]
