"""Themes, and how each tone looks in them.

The default is safe for the colour-blind: blue for good, yellow for doubtful, vermilion for bad (after Okabe and
Ito's set), and every one of them beside a word. ``ktriage-plain`` has no colour at all: bold, underlined, reversed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.style import Style
from textual.app import App
from textual.theme import BUILTIN_THEMES, Theme
from textual.widget import Widget

from widgets.text import Tone

DARK = "ktriage"
LIGHT = "ktriage-light"
PLAIN = "ktriage-plain"

FADED = "faded"
"""The class of a widget that shows what was seen before the cluster was lost."""

Styles = Mapping[Tone, Style]


def _styles(colours: Mapping[Tone, str]) -> Styles:
    return {tone: Style.parse(colours[tone]) for tone in Tone}


_DARK = _styles(
    {
        Tone.PLAIN: "#dfe6ec",
        Tone.DIM: "#93a1ad",
        Tone.STRONG: "bold #ffffff",
        Tone.HEAD: "bold #b9d8ee",
        Tone.GOOD: "#6cc3f5",
        Tone.WARN: "#f2e25c",
        Tone.BAD: "bold #ff8a5c",
        Tone.INFO: "#b9d8ee",
        Tone.KEY: "bold #f2e25c",
        Tone.MATCH: "bold #10161b on #f2e25c",
        Tone.CUT: "bold #ff8a5c",
        Tone.BADGE_SAFE: "bold #10161b on #6cc3f5",
        Tone.BADGE_ARMED: "bold #10161b on #ff8a5c",
        Tone.EPOCH_0: "#56b4e9",
        Tone.EPOCH_1: "#e69f00",
        Tone.EPOCH_2: "#35c99c",
        Tone.EPOCH_3: "#d98bb8",
        Tone.EPOCH_4: "#f0e442",
        Tone.EPOCH_5: "#7f9dff",
    }
)
_LIGHT = _styles(
    {
        Tone.PLAIN: "#1d252c",
        Tone.DIM: "#56636e",
        Tone.STRONG: "bold #000000",
        Tone.HEAD: "bold #0b4f7a",
        Tone.GOOD: "#00578a",
        Tone.WARN: "#7a5200",
        Tone.BAD: "bold #a83a00",
        Tone.INFO: "#0b4f7a",
        Tone.KEY: "bold #7a5200",
        Tone.MATCH: "bold #1d252c on #f0d83a",
        Tone.CUT: "bold #a83a00",
        Tone.BADGE_SAFE: "bold #ffffff on #00578a",
        Tone.BADGE_ARMED: "bold #ffffff on #a83a00",
        Tone.EPOCH_0: "#0072b2",
        Tone.EPOCH_1: "#a66a00",
        Tone.EPOCH_2: "#00775a",
        Tone.EPOCH_3: "#9c4a7c",
        Tone.EPOCH_4: "#7d7400",
        Tone.EPOCH_5: "#3a4fc4",
    }
)
_PLAIN = _styles(
    {
        **dict.fromkeys(Tone, ""),
        Tone.STRONG: "bold",
        Tone.HEAD: "bold underline",
        Tone.WARN: "bold",
        Tone.BAD: "bold",
        Tone.KEY: "bold",
        Tone.CUT: "bold",
        Tone.MATCH: "reverse underline",
        Tone.BADGE_SAFE: "bold reverse",
        Tone.BADGE_ARMED: "bold reverse underline",
    }
)

_LOOKS: Mapping[str, Styles] = {DARK: _DARK, LIGHT: _LIGHT, PLAIN: _PLAIN}
_CURSOR = {DARK: Style.parse("on #2d4354"), LIGHT: Style.parse("on #c4dcee"), PLAIN: Style.parse("reverse")}
_CURSOR_AWAY = {DARK: Style.parse("on #222c34"), LIGHT: Style.parse("on #e0e6ea"), PLAIN: Style.parse("bold")}

THEMES = (
    Theme(
        name=DARK,
        primary="#56b4e9",
        secondary="#b9d8ee",
        accent="#f0e442",
        warning="#f2e25c",
        error="#ff8a5c",
        success="#6cc3f5",
        foreground="#dfe6ec",
        background="#10161b",
        surface="#10161b",
        panel="#1b242b",
        dark=True,
        variables={"footer-key-foreground": "#f2e25c", "input-selection-background": "#56b4e9 40%"},
    ),
    Theme(
        name=LIGHT,
        primary="#00578a",
        secondary="#0b4f7a",
        accent="#7a5200",
        warning="#7a5200",
        error="#a83a00",
        success="#00578a",
        foreground="#1d252c",
        background="#f6f8f9",
        surface="#f6f8f9",
        panel="#e4eaee",
        dark=False,
    ),
    Theme(
        name=PLAIN,
        ansi=True,
        primary="ansi_default",
        secondary="ansi_default",
        warning="ansi_default",
        error="ansi_default",
        success="ansi_default",
        accent="ansi_default",
        foreground="ansi_default",
        background="ansi_default",
        surface="ansi_default",
        panel="ansi_default",
        boost="ansi_default",
        dark=True,
        variables={
            **BUILTIN_THEMES["ansi-dark"].variables,
            "block-cursor-text-style": "reverse",
            "button-focus-text-style": "reverse",
            "input-cursor-text-style": "reverse",
        },
    ),
)


def install(app: App[Any], no_color: bool) -> None:
    """Registers the themes and selects one. With ``no_color`` give ``ansi_color=True`` to the app's constructor
    too: Textual then takes colours away instead of turning them into greys.
    """
    for theme in THEMES:
        app.register_theme(theme)
    app.theme = PLAIN if no_color else DARK


def styles(theme: str) -> Styles:
    """How each tone looks; an unknown theme gets the dark styles."""
    return _LOOKS.get(theme, _DARK)


def faded(theme: str) -> Styles:
    """Every tone dim: what is shown is old, and may no longer hold."""
    return dict.fromkeys(Tone, styles(theme)[Tone.DIM])


def tone_styles(widget: Widget) -> Styles:
    """How each tone looks in ``widget``: faded where it has the class ``FADED``."""
    return (faded if widget.has_class(FADED) else styles)(widget.app.theme)


def cursor(theme: str, *, focused: bool) -> Style:
    """The style that is laid over the line under the cursor."""
    return (_CURSOR if focused else _CURSOR_AWAY).get(theme, _CURSOR[DARK])
