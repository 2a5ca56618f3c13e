"""Style sheets are parsed once for all widgets under test."""

from __future__ import annotations

from tests import parsed_styles

parsed_styles.keep()
