"""Colours that can be read, and told apart by those who see fewer of them; never the only sign of a state."""

from __future__ import annotations

from itertools import combinations

import pytest
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from textual.color import Color
from textual.theme import BUILTIN_THEMES

from widgets import theme
from widgets.text import Tone

OURS = {one.name: one.background for one in theme.THEMES if not one.ansi}
TEXTUALS = {
    name: Color.parse(one.to_color_system().generate()["background"]).hex
    for name, one in BUILTIN_THEMES.items()
    if not one.ansi
}
SIXTEEN = {theme.SIXTEEN: "#000000"}
BACKGROUNDS = {**OURS, **SIXTEEN, **TEXTUALS}
BADGES = {Tone.BADGE_SAFE, Tone.BADGE_ARMED, Tone.MATCH, Tone.TAB}
Rgb = tuple[float, float, float]
VGA = TerminalTheme(
    (0, 0, 0),
    (170, 170, 170),
    [
        *((0, 0, 0), (170, 0, 0), (0, 170, 0), (170, 85, 0)),
        *((0, 0, 170), (170, 0, 170), (0, 170, 170), (170, 170, 170)),
    ],
    [
        *((85, 85, 85), (255, 85, 85), (85, 255, 85), (255, 255, 85)),
        *((85, 85, 255), (255, 85, 255), (85, 255, 255), (255, 255, 255)),
    ],
)
# Machado, Oliveira and Fernandes 2009, severity 1.0, in linear RGB.
BLINDNESS = {
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.01182, 0.04294, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.3039),
    ),
}


def linear(hexadecimal: str) -> Rgb:
    parts = (int(hexadecimal[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return red, green, blue


def of(style: Style, *, background: bool = False) -> Rgb:
    colour = style.bgcolor if background else style.color
    assert colour is not None
    # The sixteen are those of VGA: terminals have others, but none that are darker.
    return linear(colour.get_truecolor(VGA).hex)


def luminance(rgb: Rgb) -> float:
    return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2]


def contrast(one: Rgb, other: Rgb) -> float:
    """WCAG 2, "contrast ratio"."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def seen(rgb: Rgb, kind: str) -> Rgb:
    red, green, blue = (sum(f * c for f, c in zip(row, rgb, strict=True)) for row in BLINDNESS[kind])
    return red, green, blue


def lab(rgb: Rgb) -> Rgb:
    """CIE L*a*b* of linear sRGB, D65."""
    rows = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    white = (0.9505, 1.0, 1.089)
    sums = (max(0.0, sum(f * c for f, c in zip(row, rgb, strict=True))) for row in rows)
    scaled = (s / w for s, w in zip(sums, white, strict=True))
    x, y, z = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in scaled)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("name", BACKGROUNDS)
@pytest.mark.parametrize("tone", [tone for tone in Tone if tone not in BADGES])
def test_text_can_be_read_on_its_background_and_under_the_cursor(name: str, tone: Tone) -> None:
    background = BACKGROUNDS[name]
    assert background is not None
    ink = of(theme.styles(name)[tone])
    enough = 3.0 if tone.name.startswith("EPOCH") else 4.5
    assert contrast(ink, linear(background)) >= enough
    assert contrast(ink, of(theme.cursor(name, focused=True), background=True)) >= 3.0


@pytest.mark.parametrize("name", BACKGROUNDS)
@pytest.mark.parametrize("tone", sorted(BADGES))
def test_badges_can_be_read(name: str, tone: Tone) -> None:
    style = theme.styles(name)[tone]
    assert contrast(of(style), of(style, background=True)) >= 4.5


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("kind", BLINDNESS)
def test_good_and_bad_are_told_apart_by_the_colour_blind(name: str, kind: str) -> None:
    looks = theme.styles(name)
    for one, other in combinations((Tone.GOOD, Tone.BAD), 2):
        a, b = lab(seen(of(looks[one]), kind)), lab(seen(of(looks[other]), kind))
        assert sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) ** 0.5 >= 20


@pytest.mark.parametrize("name", [*OURS, *TEXTUALS])
def test_a_warning_does_not_look_like_text(name: str) -> None:
    looks = theme.styles(name)
    for tone in (Tone.WARN, Tone.BAD):
        a, b = lab(of(looks[tone])), lab(of(looks[Tone.PLAIN]))
        assert sum((x - y) ** 2 for x, y in zip(a[1:], b[1:], strict=True)) ** 0.5 >= 15, "the hue alone"
    assert theme.styles("ansi-light")[Tone.WARN].color is not None


def test_every_tone_is_there_in_every_theme_and_plain_has_no_colour() -> None:
    for name in (theme.DARK, theme.LIGHT, theme.SIXTEEN, theme.PLAIN, *BUILTIN_THEMES):
        assert set(theme.styles(name)) == set(Tone)
    assert all(style.color is None and style.bgcolor is None for style in theme.styles(theme.PLAIN).values())


@pytest.mark.parametrize("name", [*OURS, *SIXTEEN])
def test_a_key_has_a_colour_of_its_own(name: str) -> None:
    looks = theme.styles(name)
    others = {looks[tone].color for tone in Tone if tone is not Tone.KEY}
    assert looks[Tone.KEY].color not in others
    told_apart = [looks[tone].color for tone in (Tone.KEY, Tone.WARN, Tone.BAD, Tone.CURSOR, Tone.GOOD)]
    assert len(set(told_apart)) == len(told_apart)
    assert looks[Tone.TAB].bgcolor not in (looks[Tone.BADGE_SAFE].bgcolor, looks[Tone.BADGE_ARMED].bgcolor)
