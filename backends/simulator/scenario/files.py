"""Reads scenario files: built-in ones by name, others by path."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from backends import simulator
from backends.simulator.scenario.build import Scenario, build
from backends.simulator.scenario.errors import MisplacedValue, ScenarioError, UnknownScenario
from backends.simulator.scenario.file_model import ScenarioModel
from recovery.yaml_text import YamlMistake, read_yaml

# pydantic's kind of mistake → the message for a person who writes YAML.
_PLAIN = {
    "union_tag_not_found": "do: is expected, which says what happens",
    "model_type": "a mapping is expected",
    "model_attributes_type": "a mapping is expected",
    "dict_type": "a mapping is expected",
    "tuple_type": "a list is expected",
    "too_short": "a list of at least {min_length} is expected",
    "too_long": "a list of at most {max_length} is expected",
}
_SAMPLES = {
    ("about",): "what happened",
    ("cluster",): "{brokers: {count: 3}}",
    ("topics",): "[{name: payments, replication_factor: 3}]",
    ("operator",): "{at: 60}",
    ("expect",): "{offline: 0}",
}
"""Examples for the required keys."""
BUILT_IN = files(simulator) / "scenarios"
"""A directory, or a part of the wheel that Python imports from."""


def names() -> tuple[str, ...]:
    """The built-in scenarios."""
    return tuple(sorted(Path(file.name).stem for file in BUILT_IN.iterdir() if file.name.endswith(".yaml")))


def read(name: str) -> Scenario:
    """The built-in scenario of that name, or the one in the file at that path.

    The name of a file's scenario is its absolute path, so that it is unique and independent of the working
    directory. Raises ScenarioError.
    """
    if name in names():
        built_in = BUILT_IN / f"{name}.yaml"
        return parse(built_in.read_text(encoding="utf-8"), name, str(built_in))
    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        raise UnknownScenario(f"no scenario {name!r}; there are {', '.join(names())}, or give a .yaml file")
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UnknownScenario(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ScenarioError(f"{path}:1: expected text in UTF-8") from None
    return parse(text, str(path.resolve()), str(path))


def parse(text: str, name: str, where: str) -> Scenario:
    """The scenario in ``text``. Raises ScenarioError with ``where``, the line, and what was expected."""
    try:
        tree, data = read_yaml(text)
    except YamlMistake as error:
        raise ScenarioError(f"{where}:{error.line}: {error}") from None
    if tree is None or not isinstance(data, dict):
        raise ScenarioError(
            f"{where}:1: expected a mapping with title, about, cluster, topics, operator, expect"
        )
    try:
        model = ScenarioModel.model_validate(data)
    except ValidationError as error:
        path, expected = _first(error.errors())
        raise ScenarioError(_line(where, tree, path, expected)) from None
    try:
        return build(model, name, text)
    except MisplacedValue as error:
        raise ScenarioError(_line(where, tree, error.path, str(error))) from None


def _first(errors: Sequence[Any]) -> tuple[tuple[int | str, ...], str]:
    """The place of the mistake, and what was expected. An unknown key is shown first: it may explain a missing
    one.
    """
    unknown = next((error for error in errors if error["type"] == "extra_forbidden"), None)
    if unknown is None:
        return errors[0]["loc"], _expected(errors[0])
    path: tuple[int | str, ...] = unknown["loc"]
    missing = [
        str(error["loc"][-1])
        for error in errors
        if error["type"] == "missing" and error["loc"][:-1] == path[:-1]
    ]
    instead = f"; {', '.join(missing)} is expected" if missing else ""
    return path, _expected(unknown) + instead


def _expected(error: Any) -> str:
    message: str = error["msg"].removeprefix("Value error, ")
    kind = error["type"]
    if kind == "extra_forbidden":
        return "no such key is known here"
    if kind == "missing":
        sample = _SAMPLES.get(error["loc"])
        return f"a value is expected here{'' if sample is None else f', such as {sample}'}"
    plain = _PLAIN.get(kind)
    if plain is not None:
        return plain.format(**error.get("ctx", {}))
    return message[0].lower() + message[1:]


def _line(where: str, tree: yaml.Node, path: tuple[int | str, ...], expected: str) -> str:
    """The line of the innermost node of ``path`` that the file contains."""
    node, line, named = tree, tree.start_mark.line, []
    for part in path:
        found = _child(node, part)
        if found is None:
            if isinstance(part, str) and part.isidentifier() and expected.startswith("a value"):
                named.append(part)
            continue
        node, line = found
        named.append(str(part))
    return f"{where}:{line + 1}: {'.'.join(named) or 'the file'}: {expected}"


def _child(node: yaml.Node, part: int | str) -> tuple[yaml.Node, int] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(part):
                return value, key.start_mark.line
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        child = node.value[part]
        return child, child.start_mark.line
    return None
