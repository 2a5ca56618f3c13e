"""HTML that cannot be broken by what it shows: text becomes markup in one place only."""

from __future__ import annotations

import html
import re
from typing import NamedTuple

from recovery.wording.quantity_text import printable

_VOID = frozenset({"meta", "br", "line", "rect", "path"})
_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*")


class Html(NamedTuple):
    """Markup that is whole and safe."""

    markup: str


def element(name: str, /, *children: Html | str, **attributes: object) -> Html:
    """``<name attribute="…">children</name>``; children that are text, and attributes, are escaped.

    ``_`` in an attribute's name stands for ``-``, and one at its end for nothing (``class_``).
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no element's name")
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escaped(str(value))}"' for key, value in attributes.items()
    )
    if name in _VOID:
        return Html(f"<{name}{shown}/>")
    inner = "".join(child.markup if isinstance(child, Html) else _escaped(child) for child in children)
    return Html(f"<{name}{shown}>{inner}</{name}>")


def _escaped(text: str) -> str:
    # Control characters first: some of them no HTML document may hold, in any form.
    return html.escape(printable(text), quote=True)
