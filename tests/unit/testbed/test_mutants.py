"""The changes of ``make mutants``: each is complete, and is made where its old text stands once, or not at all."""

from __future__ import annotations

import pytest

from benchmarks.soak.mutants import CHANGES, ROOT, BadChange, Mutant, changed, failing_test, mutants

ONE = """
- tests: [tests/unit/a.py]
  files:
    recovery/a.py:
      - {old: "x < y", new: "x <= y", why: it breaks}
      - {old: "z", new: "w", why: it breaks too, tests: [tests/unit/b.py]}
"""


def test_there_are_enough_and_each_names_a_file_and_tests_that_exist() -> None:
    known = mutants(CHANGES.read_text())
    assert len(known) >= 60
    missing = {name for one in known for name in (one.file, *one.tests) if not (ROOT / name).exists()}
    assert not missing
    assert len({(one.file, one.old, one.new) for one in known}) == len(known)


def test_each_can_still_be_made_in_the_code_as_it_stands() -> None:
    for one in mutants(CHANGES.read_text()):
        assert changed((ROOT / one.file).read_text(), one) != (ROOT / one.file).read_text()


def test_a_change_has_the_tests_of_its_room_or_its_own() -> None:
    first, second = mutants(ONE)
    assert first == Mutant("recovery/a.py", "x < y", "x <= y", "it breaks", ("tests/unit/a.py",))
    assert second.tests == ("tests/unit/b.py",)


def test_a_change_is_made_only_where_its_old_text_stands_once() -> None:
    mutant = mutants(ONE)[0]
    assert changed("if x < y:\n", mutant) == "if x <= y:\n"
    for source, times in (("if x > y:\n", 0), ("x < y < z or x < y\n", 2)):
        with pytest.raises(BadChange, match=f"stands there {times} times"):
            changed(source, mutant)


@pytest.mark.parametrize(
    "bad", ['{old: "x", new: "x", why: w}', '{old: "x", why: w}', '{old: "x", new: "y"}']
)
def test_a_change_that_is_incomplete_or_changes_nothing_is_an_error(bad: str) -> None:
    with pytest.raises(BadChange):
        mutants(f"- tests: [t]\n  files:\n    recovery/a.py:\n      - {bad}\n")


def test_a_test_that_fails_without_any_change_spoils_only_the_changes_that_it_judges() -> None:
    one, other = mutants(ONE)
    room = one._replace(tests=("tests/unit",))
    failures = ("FAILED tests/unit/b.py::test_it[a b] - assert 1 == 2",)
    assert failing_test(other, failures) == failing_test(room, failures) == failures[0]
    assert failing_test(one, failures) is None
    assert failing_test(one, ("ERROR tests/unit/a.py: still running after 120 s",)) is not None
