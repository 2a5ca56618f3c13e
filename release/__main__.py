"""``python -m release DIST``: everything that a release has, in one directory (``make release``).

The wheel, the source as it was built, a wheelhouse for hosts without a registry, one file that runs by itself, the
bill of materials, a Containerfile, and the checksums of all of them. The same tree and the same locked libraries
(requirements/release.txt) give the same bytes.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from release.bill_of_materials import bill_of_materials
from release.one_file import write_one_file

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
LOCKED = ROOT / "requirements" / "release.txt"


def main(dist: Path) -> None:
    """Writes all of it into a new directory."""
    dist.mkdir(parents=True)
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(dist), str(ROOT))
    (wheel,) = dist.glob("*.whl")
    name = "-".join(wheel.name.split("-")[:2])
    with TemporaryDirectory() as scratch:
        libraries = _libraries(Path(scratch))
        write_one_file(dist / "ktriage.pyz", [wheel, *libraries])
        _write_tar(dist / f"{name}-wheelhouse.tar", f"{name}-wheelhouse", [wheel, LOCKED, *libraries])
        bill = bill_of_materials(wheel, libraries)
    (dist / f"{name}.cdx.json").write_text(bill, "utf-8")
    # Not by pip, which makes no source archive.
    build = "import sys; from release.build_backend import build_sdist; build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(dist.resolve())], cwd=ROOT, check=True)
    (dist / "Containerfile").write_bytes((ROOT / "release" / "Containerfile").read_bytes())
    sums = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(dist.iterdir())
    ]
    (dist / "SHA256SUMS").write_text("".join(sums), "utf-8")


def _pip(*words: str) -> None:
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    subprocess.run([*pip, *words], check=True)


def _libraries(folder: Path) -> list[Path]:
    """The wheels of every Python, checked against the locked hashes."""
    platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
    for python in PYTHONS:
        _pip(
            *(
                "download",
                "--no-deps",
                "--require-hashes",
                "--requirement",
                str(LOCKED),
                "--dest",
                str(folder),
            ),
            *("--only-binary", ":all:", "--python-version", python, *platforms),
        )
    return sorted(folder.glob("*.whl"))


def _write_tar(target: Path, folder: str, files: list[Path]) -> None:
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
        for path in files:
            entry = tarfile.TarInfo(f"{folder}/{path.name}")
            entry.size, entry.mode = path.stat().st_size, 0o644
            with path.open("rb") as data:
                archive.addfile(entry, data)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
