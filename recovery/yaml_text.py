"""YAML as the files of this tool are read: bounded, and without what would silently mean something else."""

from __future__ import annotations

from typing import Any, NamedTuple

import yaml

DEEPEST = 40
"""Levels of lists and mappings within each other."""


class YamlMistake(ValueError):
    """What is wrong, at ``line`` (from 1)."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line


class YamlText(NamedTuple):
    """``tree`` has the lines of what is in ``data``; both None for an empty text."""

    tree: yaml.Node | None
    data: Any


class _Loader(yaml.SafeLoader):
    """Refuses aliases, with which a small text stands for a huge one, doubled keys, of which YAML would take the
    last, and what is nested deeper than any file of ours.
    """

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]  # PyYAML has no types for it
        mark = event.start_mark
        line = 1 if mark is None else mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            raise YamlMistake(line, f"*{event.anchor}: write the value again, an alias is not read here")
        self._depth += 1
        if self._depth > DEEPEST:
            raise YamlMistake(line, f"nested more than {DEEPEST} levels deep")
        node = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(node, yaml.MappingNode):
            _refuse_doubled(node)
        return node


def _refuse_doubled(mapping: yaml.MappingNode) -> None:
    keys: set[str] = set()
    for key, _ in mapping.value:
        if isinstance(key, yaml.ScalarNode):
            if key.value in keys:
                raise YamlMistake(key.start_mark.line + 1, f"{key.value}: the key is given twice")
            keys.add(key.value)


def read_yaml(text: str) -> YamlText:
    """Raises YamlMistake."""
    try:
        loader = _Loader(text)
        tree = loader.get_single_node()
        return YamlText(tree, None if tree is None else loader.construct_document(tree))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        raise YamlMistake(line, f"not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise YamlMistake(1, f"not YAML: {' '.join(str(error).split())}") from None
