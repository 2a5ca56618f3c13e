"""ktriage.pyz unpacks itself once, where nobody else can have written, and then runs what it has unpacked."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from release.one_file import EVERY, python_of, write_one_file

ENTRY = "import compiled\ndef ktriage() -> None:\n    print(compiled.NAME, __file__)\n"
NAME = f"cp{sys.version_info[0]}{sys.version_info[1]}"


def wheel(folder: Path, name: str, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(folder / name, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return folder / name


@pytest.fixture
def one_file(tmp_path: Path) -> Path:
    """Of a ktriage that prints which compiled library it has, and where it lies."""
    wheels = [
        wheel(tmp_path, "ktriage-1-py3-none-any.whl", {"ktriage/console/cli/entry.py": ENTRY}),
        wheel(
            tmp_path,
            f"c-1-{NAME}-{NAME}-manylinux_2_28_x86_64.whl",
            {"c-1.data/platlib/compiled.py": "NAME = 1"},
        ),
        wheel(tmp_path, "c-1-cp399-cp399-manylinux_2_28_x86_64.whl", {"compiled.py": "NAME = 2"}),
    ]
    write_one_file(tmp_path / "ktriage.pyz", wheels)
    write_one_file(tmp_path / "again.pyz", reversed(wheels))
    assert (tmp_path / "ktriage.pyz").read_bytes() == (tmp_path / "again.pyz").read_bytes()
    return tmp_path / "ktriage.pyz"


def ran(one_file: Path, **environment: str) -> Path:
    """Runs it, and returns where its entry lies."""
    ended = subprocess.run(
        [sys.executable, str(one_file)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    number, place = ended.stdout.split()
    assert number == "1"
    return Path(place)


def test_it_is_unpacked_by_the_first_run_only(one_file: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    entry = ran(one_file, HOME=str(home))
    assert (home / ".cache" / "ktriage") in entry.parents
    entry.write_text(ENTRY + "# as it was\n")
    assert ran(one_file, HOME=str(home)) == entry and entry.read_text().endswith("# as it was\n")
    assert [path.name for path in (home / ".cache" / "ktriage").iterdir() if path.name.startswith(".")] == []


def test_without_a_home_that_can_be_written_it_is_unpacked_elsewhere(one_file: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    entry = ran(one_file, HOME=str(tmp_path / "file"), TMPDIR=str(tmp_path))
    assert tmp_path in entry.parents and entry.is_file()


def test_a_folder_that_others_can_write_is_not_used(one_file: Path, tmp_path: Path) -> None:
    shared = tmp_path / "cache" / "ktriage"
    shared.mkdir(parents=True)
    shared.chmod(0o777)
    entry = ran(one_file, XDG_CACHE_HOME=str(shared.parent), TMPDIR=str(tmp_path))
    assert shared not in entry.parents and not list(shared.iterdir())


def test_wheels_that_any_python_can_use_are_packed_once() -> None:
    assert python_of(Path("kio-0.6.5-cp312-cp312-manylinux_2_28_x86_64.whl")) == "cp312"
    assert python_of(Path("cryptography-50.0.2-cp311-abi3-manylinux_2_28_x86_64.whl")) == EVERY
    assert python_of(Path("rich-15.0.0-py3-none-any.whl")) == EVERY
