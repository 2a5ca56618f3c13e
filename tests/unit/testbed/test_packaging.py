"""The wheel has the product and nothing that stands beside it."""

from __future__ import annotations

import tomllib
from pathlib import Path

from setuptools import find_packages

ROOT = Path(__file__).parents[3]


def test_the_wheel_holds_the_product_only() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    include = settings["tool"]["setuptools"]["packages"]["find"]["include"]
    packages = find_packages(str(ROOT), include=include)
    assert {name.split(".")[0] for name in packages} == {
        "recovery",
        "backends",
        "widgets",
        "console",
        "pipeline",
        "locked_jars",
    }
