"""YAML files: what would take a minute, or mean something else than it seems, is one line with its place."""

from __future__ import annotations

import pytest

from recovery.yaml_text import DEEPEST, YamlMistake, read_yaml

LAUGHS = "\n".join(["a: &a0 [x, x]", *(f"b{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40))])


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "a: the key is given twice"),
        ("a:\n- b: 1\n  b: 2\n", 3, "b: the key is given twice"),
        (LAUGHS, 2, "an alias is not read here"),
        ("a: &x\n  b: *x\n", 2, "an alias is not read here"),
        ("[" * 100_000, 1, f"more than {DEEPEST} levels"),
        ("a: [\n", 2, "expected"),
        ("a: \x00", 1, "special characters are not allowed"),
        ("a: !!python/object/apply:os.getcwd []", 1, "could not determine a constructor"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(text: str, line: int, what: str) -> None:
    with pytest.raises(YamlMistake, match=what) as refused:
        read_yaml(text)
    assert refused.value.line == line and "\n" not in str(refused.value)


def test_what_is_read_has_its_lines() -> None:
    tree, data = read_yaml("a:\n  b: 010\n")
    assert data == {"a": {"b": 8}}
    assert tree is not None and tree.value[0][1].value[0][0].start_mark.line == 1
    assert read_yaml("") == (None, None)
    deep = "[" * (DEEPEST - 1) + "]" * (DEEPEST - 1)
    assert read_yaml(deep).data is not None
