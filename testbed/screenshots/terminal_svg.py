"""Draws text from a terminal as a picture: ``python -m testbed.screenshots.terminal_svg TITLE < TEXT > SVG``."""

from __future__ import annotations

import io
import sys

WIDTH = 132

# Rich's own format without the web font, so that the picture needs no download.
_FORMAT = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""


def svg(text: str, title: str) -> str:
    """``text`` as a terminal of 132 columns shows it, as SVG."""
    from rich.console import Console  # noqa: PLC0415  # only for pictures
    from rich.text import Text  # noqa: PLC0415

    console = Console(record=True, width=WIDTH, file=io.StringIO())
    console.print(Text.from_ansi(text), soft_wrap=False)
    return console.export_svg(title=title, code_format=_FORMAT, unique_id="ktriage")


if __name__ == "__main__":
    sys.stdout.write(svg(sys.stdin.read(), sys.argv[1]))
