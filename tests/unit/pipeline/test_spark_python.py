"""How the Python processes of a local Spark start: with the installed PySpark, whose compiled code Python keeps."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from pipeline import spark_python

HERE = Path(spark_python.__file__).parent
SHOWN = "import pyspark, sys; print(pyspark.__file__, 'other' in sys.modules)"


def started(path: Sequence[Path]) -> tuple[str, str]:
    """Which PySpark a process has that Spark starts with this PYTHONPATH, and whether ``other`` was imported."""
    ended = subprocess.run(
        [sys.executable, "-S", "-c", f"import site; site.execsitecustomize(); {SHOWN}"],
        env={"PYTHONPATH": ":".join(map(str, path))},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stderr == ""
    where, other = ended.stdout.split()
    return where, other


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Where PySpark and py4j are installed; in PySpark is the archive that Spark puts on the path."""
    for package in ("pyspark", "py4j"):
        (tmp_path / "site" / package).mkdir(parents=True)
        (tmp_path / "site" / package / "__init__.py").touch()
    archived(tmp_path / "site" / "pyspark")
    return tmp_path / "site"


def archived(home: Path) -> Path:
    found = home / "python" / "lib" / "pyspark.zip"
    found.parent.mkdir(parents=True)
    with zipfile.ZipFile(found, "w") as archive:
        archive.writestr("pyspark/__init__.py", "")
    return found


def test_the_installed_pyspark_is_taken_not_its_own_archive(site: Path) -> None:
    archive = site / "pyspark" / "python" / "lib" / "pyspark.zip"
    assert started((archive, HERE, site)) == (str(site / "pyspark" / "__init__.py"), "False")


def test_the_archive_of_another_spark_stays_first(site: Path, tmp_path: Path) -> None:
    archive = archived(tmp_path / "other-spark")
    assert started((archive, HERE, site)) == (str(archive / "pyspark" / "__init__.py"), "False")


def test_without_py4j_beside_it_the_archive_stays_first(site: Path) -> None:
    (site / "py4j" / "__init__.py").unlink()
    (site / "py4j").rmdir()
    archive = site / "pyspark" / "python" / "lib" / "pyspark.zip"
    assert started((archive, HERE, site)) == (str(archive / "pyspark" / "__init__.py"), "False")


def test_what_the_installation_runs_at_the_start_runs_too(site: Path) -> None:
    (site / "sitecustomize.py").write_text("import sys; sys.modules['other'] = sys")
    assert started((HERE, site)) == (str(site / "pyspark" / "__init__.py"), "True")
