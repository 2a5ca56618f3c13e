"""ktriage's wheel as ``make wheel`` builds it, and a Python that has everything but ktriage."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[1]


def built_wheel(folder: Path) -> Path:
    """Builds the wheel of this tree in a new folder, and leaves the tree as it is."""
    scratch = folder / "scratch"
    scratch.mkdir(parents=True)
    # setuptools would take modules that were deleted since from an older build directory of the tree.
    settings = scratch / "setup.cfg"
    settings.write_text(f"[build]\nbuild_base = {scratch}/build\n[egg_info]\negg_base = {scratch}\n")
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)),
        ],
        env=os.environ | {"DIST_EXTRA_CONFIG": str(settings)},
        check=True,
        timeout=240,
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


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
        [str(python), "-c", "import console"], capture_output=True, check=False, cwd=folder, env={}
    )
    assert found.returncode != 0, "this Python has ktriage already"
    return str(python)
