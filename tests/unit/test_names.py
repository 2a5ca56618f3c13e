"""Names in the product: a class name stands for one thing, and a module name says what is in the module."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = ("recovery", "backends", "widgets", "console", "pipeline")
BESIDE_IT = ("testbed", "benchmarks")
VAGUE = frozenset(
    [
        *(
            "about",
            "aside",
            "bed",
            "beside",
            "besides",
            "carrier",
            "common",
            "elsewhere",
            "fate",
            "given",
            "held",
        ),
        *(
            "helper",
            "helpers",
            "kept",
            "look",
            "looked",
            "misc",
            "other",
            "others",
            "piece",
            "pieces",
            "quick",
        ),
        *("race", "ragged", "seen", "spine", "story", "stuff", "things", "told", "tools", "utils", "various"),
    ]
)
VAGUE_IN_DEFINITIONS = frozenset(
    [
        *("apart", "aside", "beside", "fate", "kept", "look", "looked", "looks", "said", "seen", "spine"),
        *("stuff", "told", "unsaid", "unseen", "untold"),
    ]
)
"""Of classes, functions and methods: they have a verb or a noun that an engineer would search for."""

VAGUE_IN_VARIABLES = frozenset(["held", "kept", "look", "seen", "told"])
"""Of parameters, local variables and fields: they are named by what the value is, not by how it was had. A constant
may end in such a word (``READ_KEPT``), and may not be one.
"""
IN_DOCUMENTED_OUTPUT = {"recovery/groups/offset_judgement.py": "KEPT"}
"""A member of an enumeration whose name is a value in docs/output.md."""

NOUNS_IN_ING = {
    "encoding": "the form that bytes have",
    "hedging": "the usual name for sending a request to a second server when the first is slow",
    "listing": "a list that a server returned",
    "ranking": "the order of candidates, as the option --ranking has it",
    "reading": "one look at a cluster, as a value",
    "standing": "whether the controller would accept a replica as leader",
    "wording": "the text of values that several screens and commands show",
}
"""The last word of a module's name may end in -ing where it names a thing."""


def modules(*rooms: str) -> list[Path]:
    return [path for room in rooms for path in sorted((ROOT / room).rglob("*.py"))]


def product_modules() -> list[Path]:
    return modules(*PRODUCT)


def module_names() -> Iterator[tuple[str, Path]]:
    """Of packages and modules, in words."""
    for path in product_modules():
        yield (path.parent.name if path.stem == "__init__" else path.stem), path.relative_to(ROOT)


class Names(NamedTuple):
    """What a module defines and binds, each with its line."""

    classes: tuple[str, ...]
    definitions: tuple[tuple[str, int], ...]
    variables: tuple[tuple[str, int], ...]


@cache
def names_in(path: Path) -> Names:
    tree = ast.parse(path.read_text())
    defined = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return Names(
        tuple(node.name for node in defined if isinstance(node, ast.ClassDef)),
        tuple((node.name, node.lineno) for node in defined),
        tuple(variables_of(tree)),
    )


def test_no_class_name_stands_for_two_things() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for path in modules(*PRODUCT, *BESIDE_IT):
        for name in names_in(path).classes:
            found[name].append(str(path.relative_to(ROOT)))
    twice = {name: paths for name, paths in found.items() if len(paths) > 1}
    assert len(found) > 500, "the product's classes were not found"
    assert not twice, f"qualify one of each: {twice}"


def test_no_module_has_a_vague_name() -> None:
    vague = [str(path) for name, path in module_names() if VAGUE.intersection(name.split("_"))]
    assert not vague, f"say what is in them: {vague}"


def vague_words(name: str) -> frozenset[str]:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_")
    return VAGUE_IN_DEFINITIONS.intersection(words)


def test_no_class_or_function_has_a_vague_name() -> None:
    vague = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path in product_modules()
        for name, line in names_in(path).definitions
        if vague_words(name)
    ]
    assert not vague, f"say what they do or return: {vague}"


@pytest.mark.parametrize(
    ("name", "vague"), [("_told", True), ("SeenChange", True), ("kept_from", True), ("overlooked", False)]
)
def test_what_the_rule_for_definitions_catches(name: str, vague: bool) -> None:
    assert bool(vague_words(name)) is vague


def variables_of(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """What the code of a module binds or assigns, with the line: variables, parameters, fields, attributes."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.Name(id=name, ctx=ast.Store())
                | ast.Attribute(attr=name, ctx=ast.Store())
                | ast.arg(arg=name)
            ):
                yield name, node.lineno
            case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)):
                yield name, node.lineno
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, node.lineno


def is_vague_variable(name: str) -> bool:
    words = name.strip("_").lower().split("_")
    return bool(VAGUE_IN_VARIABLES.intersection(words)) and (len(words) == 1 or not name.isupper())


def test_no_variable_has_a_vague_name() -> None:
    found = [
        (f"{path.relative_to(ROOT)}:{line} {name}", name)
        for path in modules(*PRODUCT, *BESIDE_IT)
        for name, line in names_in(path).variables
    ]
    assert len(found) > 10_000, "the product's variables were not found"
    documented = {f"{path} {name}" for path, name in IN_DOCUMENTED_OUTPUT.items()}
    vague = [where for where, name in found if is_vague_variable(name)]
    assert {re.sub(r":\d+", "", where) for where in vague} == documented, f"say what the value is: {vague}"


@pytest.mark.parametrize(
    ("code", "vague"),
    [
        ("held = 1", True),
        ("def f(kept: int) -> None: ...", True),
        ("class C:\n    never_seen: int = 0", True),
        ("self._told = ()", True),
        ("[1 for look in ()]", True),
        ("def f():\n    if (seen := 1): ...", True),
        ("match x:\n    case int() as held: ...", True),
        ("KEPT = 20", True),
        ("READ_KEPT = 'no record that a consumer has read is gone'", False),
        ("held_by = withheld = 1", True),
        ("withheld = overlooked = 1", False),
        ("print(told)", False),
    ],
)
def test_what_the_rule_for_variables_catches(code: str, vague: bool) -> None:
    assert any(is_vague_variable(name) for name, _ in variables_of(ast.parse(code))) is vague


def test_no_module_is_named_by_a_gerund() -> None:
    last = [(name.rpartition("_")[2], path) for name, path in module_names()]
    gerunds = [str(path) for word, path in last if word.endswith("ing") and word not in NOUNS_IN_ING]
    assert not gerunds, f"name what is in them: {gerunds}"
    unused = set(NOUNS_IN_ING) - {word for word, _ in last}
    assert not unused, f"no module has such a name any more: {unused}"


@pytest.mark.parametrize(
    ("name", "vague", "gerund"),
    [
        ("told", True, False),
        ("kept_files", True, False),
        ("connecting", False, True),
        ("journal", False, False),
    ],
)
def test_what_the_rules_catch(name: str, vague: bool, gerund: bool) -> None:
    last = name.rpartition("_")[2]
    assert bool(VAGUE.intersection(name.split("_"))) is vague
    assert (last.endswith("ing") and last not in NOUNS_IN_ING) is gerund


REFERENCE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):`[~.]?(?:[\w.]*\.)?(\w+)`")


def test_what_a_docstring_refers_to_exists() -> None:
    """The name stands somewhere else too: in code, or in the name of a file."""
    texts = {path: path.read_text() for path in modules(*PRODUCT, *BESIDE_IT, "tests")}
    words = {word for path in texts for word in path.relative_to(ROOT).with_suffix("").parts}
    words.update(word for text in texts.values() for word in re.findall(r"\w+", REFERENCE.sub("", text)))
    references = [(path, name) for path, text in texts.items() for name in REFERENCE.findall(text)]
    assert len(references) > 100, "the references were not found"
    gone = [f"{path.relative_to(ROOT)}: {name}" for path, name in references if name not in words]
    assert not gone, f"no such name any more: {gone}"
