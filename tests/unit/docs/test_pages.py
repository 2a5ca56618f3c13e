"""README is short; every page, link, command and version that README, docs and the product refer to is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from console.change.registry import COMMANDS
from release.build_backend import PACKAGES, PAGES
from release.tag import newest_section, version

ROOT = Path(__file__).parents[3]
README = ROOT / "README.md"
DOCS = sorted((ROOT / "docs").glob("*.md"))
WRITTEN = [README, *(ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")), *DOCS]
LINK = re.compile(r"\]\(([^)\s]+)\)")
MOST_LINES = 150


def anchors(page: Path) -> set[str]:
    """The headings of a page, as a link names them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_readme_is_read_in_one_sitting() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8").replace("\n", " ")):
        name, _, heading = target.partition("#")
        if "://" in name:
            continue
        led = page.parent / name if name else page
        assert led.exists(), target
        assert not heading or heading in anchors(led), target


def test_the_table_of_contents_has_every_page() -> None:
    contents = ROOT / "docs" / "README.md"
    listed = set(LINK.findall(contents.read_text(encoding="utf-8")))
    assert {page.name for page in DOCS} - listed == {contents.name}


def test_every_command_stands_in_the_table_of_commands() -> None:
    table = re.findall(r"^\| ([^|]+) \|", (ROOT / "docs/commands.md").read_text("utf-8"), re.MULTILINE)
    told = {word for cell in table for word in re.findall(r"`([\w-]+)", cell)}
    assert set(COMMANDS) - told == set()


def test_what_the_product_refers_to_is_packed_with_it() -> None:
    """docs/ lies in the wheel; ``ktriage info`` says where."""
    named = {
        name
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for name in re.findall(r"\bdocs/([\w-]+\.md)", path.read_text(encoding="utf-8"))
    }
    assert len(named) > 5 and PAGES == "docs"
    assert named - {page.name for page in DOCS} == set()


def test_one_version_is_told() -> None:
    assert newest_section()[0] == version()
    for page in (README, ROOT / "docs/install.md"):
        wheels = re.findall(r"ktriage-(\d[\w.]*)-(?:py3|wheelhouse)", page.read_text(encoding="utf-8"))
        assert set(wheels) == {version()}, page
