"""The wheel has the product and nothing that stands beside it, and runs without being unpacked."""

from __future__ import annotations

import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest
from setuptools import find_packages

from tests.built_wheel import built_wheel, python_without_ktriage

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]


ROOMS = {"recovery", "backends", "widgets", "console", "pipeline"}
SUBMIT = ROOT / "console" / "spark_submit" / "ktriage_submit.py"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    return python_without_ktriage(tmp_path_factory.mktemp("python"))


def run(python: str, path: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Not from the tree: from an empty directory."""
    return subprocess.run(
        [python, *words],
        cwd=Path(python).parent,
        env={"PYTHONPATH": path, "HOME": str(Path(python).parent)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_wheel_holds_the_product_only() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    include = settings["tool"]["setuptools"]["packages"]["find"]["include"]
    packages = find_packages(str(ROOT), include=include)
    assert {name.split(".")[0] for name in packages} == ROOMS


def test_the_built_wheel_has_every_file_that_the_tree_has(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    files = (path for room in ROOMS for path in (ROOT / room).rglob("*"))
    assert names == {
        path.relative_to(ROOT).as_posix()
        for path in files
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_scenarios_and_drills_run_from_the_wheel_as_a_zip_file(wheel: Path, python: str) -> None:
    code = (
        "from pipeline.drills.drill_run import DrillCase\n"
        "from pipeline.drills.drill_run import run\n"
        "import pipeline; assert '.whl' in pipeline.__file__\n"
        "row = run(DrillCase('kills', 'last-record', 1, 1)); assert not row.error, row.error\n"
        "row = run(DrillCase('stale-long-tail', 'last-record', None, 1)); assert not row.error, row.error\n"
        "import pipeline.watch.metadata_source, pipeline.watch.fold_records"
    )
    ended = run(python, str(wheel), "-c", code)
    assert ended.returncode == 0, ended.stderr


def test_the_script_for_spark_submit_is_ktriage(wheel: Path, python: str) -> None:
    ended = run(python, str(wheel), str(SUBMIT), "simulate", "list")
    assert ended.returncode == 0 and "stale-long-tail" in ended.stdout, ended.stderr
    wrong = run(python, str(wheel), str(SUBMIT), "pipeline", "plan")
    assert wrong.returncode == 2 and "Missing option '--out'" in wrong.stderr


def test_without_the_wheel_the_script_says_in_one_line_what_is_missing(python: str) -> None:
    ended = run(python, "", str(SUBMIT), "pipeline", "plan")
    assert ended.returncode == 1
    assert ended.stderr.splitlines() == [
        f"ktriage: no module console for the driver, {python}: name ktriage's wheel by --py-files,"
        " and install what it needs (its extra spark) for that Python"
    ]
