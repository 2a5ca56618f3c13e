"""ktriage's wheel as ``make wheel`` builds it, and a Python that has everything but ktriage, or ktriage too."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def built_wheel(folder: Path) -> Path:
    """Builds the wheel of this tree in a folder, and leaves the tree as it is."""
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)),
        ],
        check=True,
        timeout=240,
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


def submit_script(wheel: Path, folder: Path) -> Path:
    """The script for spark-submit, alone in a folder."""
    script = folder / "ktriage_submit.py"
    script.write_bytes(zipfile.ZipFile(wheel).read("ktriage/console/spark_submit/ktriage_submit.py"))
    return script


def install(wheel: Path, python: str) -> Path:
    """Installs the wheel for that Python, and returns the folder of its commands."""
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--python", python, "install", "--quiet"),
            *("--disable-pip-version-check", "--no-deps", "--no-index", str(wheel)),
        ],
        check=True,
        timeout=240,
    )
    return Path(python).parent


def python_without_ktriage(folder: Path) -> str:
    """The path of a new environment's Python, with the libraries of this one: an editable ktriage in these is not
    among them.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=240)
    python = folder / "bin" / "python"
    paths = {"base": str(folder), "platbase": str(folder)}
    Path(sysconfig.get_path("purelib", vars=paths), "libraries.pth").write_text(
        sysconfig.get_path("purelib") + "\n"
    )
    found = subprocess.run(
        [str(python), "-c", "import ktriage"], capture_output=True, check=False, cwd=folder, env={}
    )
    assert found.returncode != 0, "this Python has ktriage already"
    return str(python)
