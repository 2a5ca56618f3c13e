"""Themes, and how each tone looks in them.

The default is safe for the colour-blind: blue for good, orange for doubtful, vermilion for bad (after Okabe and
Ito's set), and every one of them beside a word. Yellow is a key to press, and nothing else; green is what a person
has set (the cursor, marks, a filter, an order). ``ktriage-16`` has the colours that every terminal has, and
``ktriage-plain`` has no colour at all: bold, underlined, reversed. In Textual's own themes the tones take the
theme's colours, as far as they can be read on its background.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from rich.style import Style
from textual.app import App
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme
from textual.widget import Widget

from widgets.text import Tone

DARK = "ktriage"
LIGHT = "ktriage-light"
SIXTEEN = "ktriage-16"
PLAIN = "ktriage-plain"

FADED = "faded"
"""The class of a widget that shows what was seen before the cluster was lost."""

Styles = Mapping[Tone, Style]


class ThemeStyles(NamedTuple):
    """How each tone looks, and the line under the cursor: where the keys go, and elsewhere."""

    styles: Styles
    cursor: Style
    cursor_away: Style


def _styles(colours: Mapping[Tone, str]) -> Styles:
    return {tone: Style.parse(colours[tone]) for tone in Tone}


_DARK = _styles(
    {
        Tone.PLAIN: "#dfe6ec",
        Tone.DIM: "#93a1ad",
        Tone.STRONG: "bold #ffffff",
        Tone.HEAD: "bold #b9d8ee",
        Tone.GOOD: "#6cc3f5",
        Tone.WARN: "#ffb86b",
        Tone.BAD: "bold #ff7a63",
        Tone.INFO: "#b9d8ee",
        Tone.KEY: "bold #f2e25c",
        Tone.TAB: "bold #10161b on #b9d8ee",
        Tone.CURSOR: "bold #6fe0b0",
        Tone.MATCH: "bold #10161b on #6fe0b0",
        Tone.CUT: "bold #ff7a63",
        Tone.BADGE_SAFE: "bold #10161b on #6cc3f5",
        Tone.BADGE_ARMED: "bold #10161b on #ff7a63",
        Tone.EPOCH_0: "#56b4e9",
        Tone.EPOCH_1: "#e69f00",
        Tone.EPOCH_2: "#35c99c",
        Tone.EPOCH_3: "#d98bb8",
        Tone.EPOCH_4: "#b8c46a",
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
        Tone.WARN: "#8f4700",
        Tone.BAD: "bold #a8201a",
        Tone.INFO: "#0b4f7a",
        Tone.KEY: "bold #665700",
        Tone.TAB: "bold #ffffff on #0b4f7a",
        Tone.CURSOR: "bold #006650",
        Tone.MATCH: "bold #ffffff on #006650",
        Tone.CUT: "bold #a8201a",
        Tone.BADGE_SAFE: "bold #ffffff on #00578a",
        Tone.BADGE_ARMED: "bold #ffffff on #a8201a",
        Tone.EPOCH_0: "#0072b2",
        Tone.EPOCH_1: "#a66a00",
        Tone.EPOCH_2: "#00775a",
        Tone.EPOCH_3: "#9c4a7c",
        Tone.EPOCH_4: "#6d7a1c",
        Tone.EPOCH_5: "#3a4fc4",
    }
)
# Named colours, on black: where a terminal has only these, it takes the nearest one for any other colour, and text
# may get the colour of its background.
_SIXTEEN = _styles(
    {
        Tone.PLAIN: "bright_white",
        Tone.DIM: "white",
        Tone.STRONG: "bold bright_white",
        Tone.HEAD: "bold bright_cyan",
        Tone.GOOD: "bright_cyan",
        Tone.WARN: "bright_magenta",
        Tone.BAD: "bold bright_red",
        Tone.INFO: "bright_cyan",
        Tone.KEY: "bold bright_yellow",
        Tone.TAB: "bold black on white",
        Tone.CURSOR: "bold bright_green",
        Tone.MATCH: "bold black on bright_green",
        Tone.CUT: "bold bright_red",
        Tone.BADGE_SAFE: "bold black on bright_cyan",
        Tone.BADGE_ARMED: "bold black on bright_red",
        Tone.EPOCH_0: "bright_cyan",
        Tone.EPOCH_1: "bright_magenta",
        Tone.EPOCH_2: "bright_green",
        Tone.EPOCH_3: "bright_red",
        Tone.EPOCH_4: "white",
        Tone.EPOCH_5: "green",
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
        Tone.TAB: "bold reverse",
        Tone.CURSOR: "bold",
        Tone.CUT: "bold",
        Tone.MATCH: "reverse underline",
        Tone.BADGE_SAFE: "bold reverse",
        Tone.BADGE_ARMED: "bold reverse underline",
    }
)

_KNOWN: Mapping[str, ThemeStyles] = {
    DARK: ThemeStyles(_DARK, Style.parse("on #2d4354"), Style.parse("on #222c34")),
    LIGHT: ThemeStyles(_LIGHT, Style.parse("on #c4dcee"), Style.parse("on #e0e6ea")),
    SIXTEEN: ThemeStyles(_SIXTEEN, Style.parse("on blue"), Style.parse("underline")),
    PLAIN: ThemeStyles(_PLAIN, Style.parse("reverse"), Style.parse("bold")),
}

# On a light ground of the terminal's own: the colours that are dark in every palette.
_ANSI_LIGHT = _KNOWN[PLAIN]._replace(
    styles={
        **_PLAIN,
        Tone.WARN: Style.parse("bold magenta"),
        Tone.BAD: Style.parse("bold red"),
        Tone.GOOD: Style.parse("blue"),
    }
)

_ANSI = {
    **BUILTIN_THEMES["ansi-dark"].variables,
    "block-cursor-text-style": "reverse",
    "button-focus-text-style": "reverse",
    "input-cursor-text-style": "reverse",
}
THEMES = (
    Theme(
        name=DARK,
        primary="#56b4e9",
        secondary="#b9d8ee",
        accent="#6fe0b0",
        warning="#ffb86b",
        error="#ff7a63",
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
        accent="#006650",
        warning="#8f4700",
        error="#a8201a",
        success="#00578a",
        foreground="#1d252c",
        background="#f6f8f9",
        surface="#f6f8f9",
        panel="#e4eaee",
        dark=False,
    ),
    Theme(
        name=SIXTEEN,
        ansi=True,
        primary="ansi_bright_cyan",
        secondary="ansi_cyan",
        warning="ansi_bright_magenta",
        error="ansi_bright_red",
        success="ansi_bright_cyan",
        accent="ansi_bright_green",
        foreground="ansi_bright_white",
        background="ansi_black",
        surface="ansi_black",
        panel="ansi_black",
        boost="ansi_black",
        dark=True,
        variables=_ANSI,
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
        variables=_ANSI,
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
    return _theme_styles(theme).styles


def _theme_styles(theme: str) -> ThemeStyles:
    known = _KNOWN.get(theme)
    return _textual_styles(theme) if known is None else known


@cache
def _textual_styles(name: str) -> ThemeStyles:
    """The look of one of Textual's own themes."""
    theme = BUILTIN_THEMES.get(name)
    if theme is None:
        return _KNOWN[DARK]
    if theme.ansi:  # what its colours look like is the terminal's affair
        return _KNOWN[PLAIN] if theme.dark else _ANSI_LIGHT
    given = theme.to_color_system().generate()
    ground = Color.parse(given["background"])
    plain = _readable(Color.parse(given["foreground"]), ground)

    def ink(colour: str, bold: str = "") -> str:
        return f"{bold} {_readable(Color.parse(given[colour]), ground).hex}"

    def badge(colour: str) -> str:
        fill = Color.parse(given[colour])
        black, white = Color(0, 0, 0), Color(255, 255, 255)
        text = max((black, white), key=lambda one: _contrast(one, fill))
        return f"bold {text.hex} on {Color(fill.r, fill.g, fill.b).hex}"

    epochs = ("primary", "warning", "success", "secondary", "accent", "error")
    tones = {
        Tone.PLAIN: plain.hex,
        Tone.DIM: _readable(plain.blend(ground, 0.3), ground).hex,
        Tone.STRONG: f"bold {plain.hex}",
        Tone.HEAD: ink("primary", "bold"),
        Tone.GOOD: ink("success"),
        Tone.WARN: ink("warning"),
        Tone.BAD: ink("error", "bold"),
        Tone.INFO: ink("primary"),
        Tone.KEY: ink("accent", "bold"),
        Tone.TAB: badge("primary"),
        Tone.CURSOR: ink("secondary", "bold"),
        Tone.MATCH: badge("secondary"),
        Tone.CUT: ink("error", "bold"),
        Tone.BADGE_SAFE: badge("success"),
        Tone.BADGE_ARMED: badge("error"),
        **{Tone[f"EPOCH_{number}"]: ink(colour) for number, colour in enumerate(epochs)},
    }
    return ThemeStyles(
        _styles(tones),
        Style.parse(f"on {ground.blend(plain, 0.18).hex}"),
        Style.parse(f"on {ground.blend(plain, 0.08).hex}"),
    )


_ENOUGH = 7.0
"""So that it can be read under the cursor too, whose line is nearer to the text."""
_SHADES = 20


def _readable(colour: Color, ground: Color) -> Color:
    """The colour, or the nearest one on its way to black or white that can be read on ``ground``: it keeps its hue,
    so that a warning does not look like text.
    """
    opaque = Color(colour.r, colour.g, colour.b)
    end = Color.parse("white" if ground.brightness < 0.5 else "black")
    shades = (opaque.blend(end, step / _SHADES) for step in range(_SHADES))
    return next((shade for shade in shades if _contrast(shade, ground) >= _ENOUGH), end)


def _contrast(one: Color, other: Color) -> float:
    """WCAG 2, "contrast ratio"."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: Color) -> float:
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour.normalized
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def faded(theme: str) -> Styles:
    """Every tone dim: what is shown is old, and may no longer hold."""
    return dict.fromkeys(Tone, styles(theme)[Tone.DIM])


def tone_styles(widget: Widget) -> Styles:
    """How each tone looks in ``widget``: faded where it has the class ``FADED``."""
    return (faded if widget.has_class(FADED) else styles)(widget.app.theme)


def cursor(theme: str, *, focused: bool) -> Style:
    """The style that is laid over the line under the cursor."""
    found = _theme_styles(theme)
    return found.cursor if focused else found.cursor_away
