"""``make test`` and ``make test-long`` run every test once between them; what must stay in the first is there."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.soak.mutants import CHANGES, mutants
from tests.live.claims import Claims, DifferentTests

ROOT = Path(__file__).parents[3]
MAKEFILE = (ROOT / "Makefile").read_text()
PAGE = (ROOT / "docs/tests.md").read_text()
LONG = "mark.long"
CONFTEST = "from tests.live.conftest import *\n"
MODULE = """
import os, pathlib, time
import pytest
@pytest.mark.parametrize("number", range(3))
def test_it(number):
    time.sleep(0.05)
    with open(pathlib.Path(__file__).with_name("ran"), "a") as ran:
        ran.write(f"{pathlib.Path(__file__).stem} {number} {os.getpid()}\\n")
"""

TWO_CLUSTERS = """
import pathlib
import pytest
@pytest.fixture(scope="module")
def stands():
    yield
@pytest.mark.parametrize("cluster", [object(), object()])
def test_it(cluster, stands):
    with open(pathlib.Path(__file__).with_name("ran"), "a") as ran:
        ran.write("one of two clusters\\n")
"""


def test_processes_that_share_the_tests_on_real_kafka_run_each_once(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    for number in range(6):
        (tmp_path / f"test_{number}.py").write_text(MODULE)
    share = tmp_path / "share"
    share.mkdir()
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--share",
        str(share),
        str(tmp_path),
    ]
    lanes = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [lane.wait() for lane in lanes] == [0, 0]
    lines = [line.split() for line in (tmp_path / "ran").read_text().splitlines()]
    ran = Counter((module, number) for module, number, _ in lines)
    assert ran == {(f"test_{module}", str(number)): 1 for module in range(6) for number in range(3)}
    by_process = {(module, process) for module, _, process in lines}
    assert len(by_process) == 6, "the tests of one cluster were divided"


def test_a_module_of_two_clusters_ends_though_another_process_has_its_second_one(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_0.py").write_text(TWO_CLUSTERS)
    (tmp_path / "test_1.py").write_text(MODULE)
    share = tmp_path / "share"
    share.mkdir()
    assert Claims(share).own(1, "test_0.py::test_it[cluster1]")
    command = ["pytest", "-q", "-p", "no:cacheprovider", "--share", str(share), str(tmp_path)]
    lane = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert lane.returncode == 0, lane.stdout
    assert "4 passed" in lane.stdout


def test_processes_that_collected_other_tests_do_not_share(tmp_path: Path) -> None:
    first, second = Claims(tmp_path), Claims(tmp_path)
    assert first.own(0, "tests/live/test_a.py::test_it")
    assert first.own(0, "tests/live/test_a.py::test_it")
    assert not second.own(0, "tests/live/test_a.py::test_it")
    assert second.own(1, "tests/live/test_b.py::test_it")
    with pytest.raises(DifferentTests, match="test_c"):
        first.own(1, "tests/live/test_c.py::test_it")


def test_what_one_of_the_two_leaves_out_the_other_one_runs() -> None:
    selections = re.findall(r'^\t@\$\(MAKE\) .*\blanes MARKED=("[^"]+"|\w+)', MAKEFILE, re.MULTILINE)
    assert selections == ['"not long"', "long"]
    runs = re.findall(r"^\t.*-m pytest.*$", MAKEFILE, re.MULTILINE)
    assert len(runs) == 3
    assert all('-m pytest -m "$(MARKED)" ' in run for run in runs)
    continuous = (ROOT / ".ci/run").read_text()
    assert re.findall(r"^make --keep-going (\S+)", continuous, re.MULTILINE) == ["test", "test-long"]


def test_what_the_lane_of_all_other_tests_passes_over_has_a_lane() -> None:
    rooms = {
        name: re.findall(rf"^{name} := (.+)$", MAKEFILE, re.MULTILINE)
        for name in ("UNIT_TESTS", "LIVE_TESTS", "SPARK_TESTS", "SECOND_UNIT")
    }
    assert all(len(values) == 1 for values in rooms.values())
    assert rooms["UNIT_TESTS"][0].split() == [
        "tests",
        "--ignore",
        *rooms["LIVE_TESTS"],
        "--ignore",
        *rooms["SPARK_TESTS"],
    ]
    assert 'UNIT_TESTS="$(UNIT_TESTS) $(SECOND_UNIT:%=--ignore %)"' in MAKEFILE
    assert 'UNIT_TESTS="$(SECOND_UNIT)"' in MAKEFILE


def test_the_tests_that_notice_a_broken_rule_are_in_make_test() -> None:
    named = {ROOT / test for mutant in mutants(CHANGES.read_text()) for test in mutant.tests}
    files = {file for path in named for file in (path.rglob("test_*.py") if path.is_dir() else [path])}
    assert len(files) > 30
    assert {str(file.relative_to(ROOT)) for file in files if LONG in file.read_text()} == set()


NAMED = set(re.findall(r"`(tests/live/test_\w+\.py(?:::\w+)?)`", PAGE))


@pytest.mark.parametrize("test", sorted(NAMED))
def test_what_the_page_says_of_real_kafka_in_make_test_is_there(test: str) -> None:
    file, _, name = test.partition("::")
    unmarked = _unmarked(ROOT / file)
    assert name in unmarked if name else unmarked, f"nothing of {test} is in make test"


def test_the_page_names_every_module_that_make_test_runs_on_real_kafka() -> None:
    """Whoever adds one decides to: each new cluster costs make test 20 seconds of CPU time."""
    there = {f"tests/live/{path.name}" for path in (ROOT / "tests/live").glob("test_*.py") if _unmarked(path)}
    assert there == {test.partition("::")[0] for test in NAMED}


def _unmarked(path: Path) -> set[str]:
    """The names of the module's tests, and of its classes of tests, that are not marked long."""
    nodes = ast.parse(path.read_text(encoding="utf-8")).body
    if any(
        isinstance(node, ast.Assign) and "pytestmark = " in (text := ast.unparse(node)) and LONG in text
        for node in nodes
    ):
        return set()
    return {
        node.name
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and node.name.startswith(("test_", "Test"))
        and not any(LONG in ast.unparse(mark) for mark in node.decorator_list)
    }
