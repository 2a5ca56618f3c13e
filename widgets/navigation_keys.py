"""The keys that move in text and tables: one list for both."""

from __future__ import annotations

from textual.binding import Binding, BindingType

_KEYS = (
    ("up,k", "One up"),
    ("down,j", "One down"),
    ("pageup", "Page up"),
    ("pagedown", "Page down"),
    ("home,g", "The first"),
    ("end,G", "The last"),
)


def navigation_bindings(*actions: str) -> list[BindingType]:
    """Bindings for the actions that go up, down, a page up, a page down, to the first and to the last."""
    return [
        Binding(key, action, what, show=False) for (key, what), action in zip(_KEYS, actions, strict=True)
    ]
