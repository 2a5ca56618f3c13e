"""The wheel has the product and nothing that stands beside it, below one name, and runs without being unpacked."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from console.provenance import BUILT_FROM, checked_out
from release.build_backend import COMMIT, PACKAGES, PAGES, NotPackable, commit, lay_out, with_namespace
from tests.built_wheel import built_wheel, install, python_without_ktriage, submit_script

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    return python_without_ktriage(tmp_path_factory.mktemp("python"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the commands of an environment in which the wheel is installed."""
    return install(wheel, python_without_ktriage(tmp_path_factory.mktemp("installed")))


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


def test_the_packages_are_those_that_the_import_rules_call_the_product() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
    (contract,) = (
        each for each in settings["importlinter"]["contracts"] if "not shipped with it" in each["name"]
    )
    assert set(PACKAGES) == set(contract["source_modules"])


def test_every_module_finds_its_neighbours_below_the_one_name(tmp_path: Path) -> None:
    lay_out(tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["ktriage"]
    assert (
        f"console/{BUILT_FROM}" == COMMIT and (tmp_path / "ktriage" / COMMIT).read_text().strip() == commit()
    )
    settings = tomllib.loads((tmp_path / "pyproject.toml").read_text("utf-8"))
    assert settings["tool"]["setuptools"]["packages"]["find"]["include"] == ["ktriage*"] * len(PACKAGES)
    assert settings["project"]["scripts"] == {
        name: f"ktriage.console.cli.entry:{name.replace('-', '_')}"
        for name in ("ktriage", "kafka-unclean-recovery", "kafka-elect-leaders")
    }


@pytest.mark.parametrize("packed", [False, True])
def test_a_clone_and_its_work_trees_tell_their_commit(tmp_path: Path, packed: bool) -> None:
    def git(*words: str) -> str:
        own = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
        return subprocess.run(
            ["git", *own, *words],  # noqa: S607  # whichever git there is
            cwd=clone,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    clone, beside = tmp_path / "clone", tmp_path / "beside"
    clone.mkdir()
    assert checked_out(clone) == ""
    git("init")
    assert checked_out(clone) == ""
    git("commit", "--allow-empty", "--message", "first")
    git("worktree", "add", "-b", "other", str(beside))
    git("commit", "--allow-empty", "--message", "second")
    if packed:
        git("pack-refs", "--all")
    assert (checked_out(clone), checked_out(beside)) == (git("rev-parse", "main"), git("rev-parse", "other"))
    git("checkout", "--detach", "other")
    assert checked_out(clone) == git("rev-parse", "other")


def test_imports_of_our_packages_are_moved_and_nothing_else() -> None:
    before = (
        "import ast\nfrom pathlib import Path\nfrom recovery import model\n"
        "def f() -> str:\n    from console.cli.main import (\n        main,\n    )\n"
        "    return 'from console.cli import main' + f'{main}, recovery.json, pipeline'\n"
    )
    assert with_namespace(before, "m.py") == before.replace("from recovery", "from ktriage.recovery").replace(
        "    from console", "    from ktriage.console"
    )


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("import recovery.model", "recovery.model"),
        ("import pipeline as jobs", "pipeline"),
        ("name = 'console.cli.main:main'", "console.cli.main:main"),
        ("name = f'console.jobs.{name}_command'", "console.jobs."),
    ],
)
def test_a_name_that_the_wheel_does_not_have_is_refused_with_its_line(line: str, named: str) -> None:
    with pytest.raises(NotPackable) as refused:
        with_namespace(f"import os\n{line}\n", "console/new.py")
    assert str(refused.value).startswith(f"console/new.py:2: {named} is ktriage.{named} in the wheel")


@pytest.mark.long
def test_the_built_wheel_has_every_file_that_the_tree_has_and_each_below_one_name(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    files = (path for package in (*PACKAGES, PAGES) for path in (ROOT / package).rglob("*"))
    assert names == {"ktriage/__init__.py", "ktriage/__main__.py", f"ktriage/{COMMIT}"} | {
        f"ktriage/{path.relative_to(ROOT).as_posix()}"
        for path in files
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.mark.long
def test_the_same_tree_gives_the_same_wheel_to_the_byte(wheel: Path, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        again = built_wheel(tmp_path)
    finally:
        os.umask(before)
    assert again.name == wheel.name and again.read_bytes() == wheel.read_bytes()


@pytest.mark.long
@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("ktriage status --simulate stale-long-tail", 1),  # partitions are offline
        ("kafka-unclean-recovery --help", 0),
        ("python -m ktriage --version", 0),
    ],
)
def test_modules_of_the_same_names_do_not_meet_ours(
    installed: Path, tmp_path: Path, line: str, status: int
) -> None:
    program, *words = line.split()
    for name in PACKAGES:
        (tmp_path / f"{name}.py").write_text("raise SystemExit(99)\n")
    ended = run(str(installed / program), str(tmp_path), *words)
    assert ended.returncode == status and ended.stdout, ended.stderr


@pytest.mark.long
@pytest.mark.parametrize("words", [("disk", "script"), ("--help",)], ids=" ".join)
def test_the_installed_commands_say_what_those_of_the_tree_say(
    installed: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    of_tree = subprocess.run(
        [sys.executable, "-c", "from console.cli.entry import ktriage; ktriage()", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert run(str(installed / "ktriage"), "", *words).stdout == of_tree.stdout


@pytest.mark.long
def test_scenarios_run_from_the_wheel_as_a_zip_file(wheel: Path, python: str) -> None:
    code = (
        "from ktriage.backends.simulator.scenario.files import read\n"
        "from ktriage.backends.simulator.simulation import Simulation\n"
        "from ktriage import pipeline; assert '.whl' in pipeline.__file__\n"
        "run = Simulation(read('stale-long-tail'), 1); run.advance_to(run.scenario.operator_at)\n"
        "assert run.offline()\n"
        "import ktriage.pipeline.watch.metadata_source, ktriage.pipeline.watch.fold_records"
    )
    ended = run(python, str(wheel), "-c", code)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.long
def test_the_script_for_spark_submit_is_ktriage(wheel: Path, python: str, tmp_path: Path) -> None:
    script = str(submit_script(wheel, tmp_path))
    ended = run(python, str(wheel), script, "simulate", "list")
    assert ended.returncode == 0 and "stale-long-tail" in ended.stdout, ended.stderr
    wrong = run(python, str(wheel), script, "pipeline", "plan")
    assert wrong.returncode == 2 and "Missing option '--out'" in wrong.stderr


@pytest.mark.long
def test_without_the_wheel_the_script_says_in_one_line_what_is_missing(
    wheel: Path, python: str, tmp_path: Path
) -> None:
    script = str(submit_script(wheel, tmp_path))
    ended = run(python, "", script, "pipeline", "plan")
    assert ended.returncode == 1
    assert ended.stderr.splitlines() == [
        f"ktriage: no module ktriage for the driver, {python}: name ktriage's wheel by --py-files,"
        " and install what it needs (its extra spark) for that Python"
    ]
