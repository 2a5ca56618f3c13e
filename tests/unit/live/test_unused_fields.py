"""What Kafka answers and nothing reads is a decision: docs/internals.md has each such field with its reason."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from backends.live.codec.apis import USES, Api
from backends.live.codec.message_fields import message_fields

ROOT = Path(__file__).parents[3]
LIVE = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "backends/live").rglob("*.py"))}
SCHEMA = re.compile(r"kio\.schema\.(\w+)\.v(\d+)(?:\.response| import .*[rR]esponse)")
LOADED = re.compile(r"response_type\(Api\.(\w+)")
ROW = re.compile(r"^\| (\w+) \| (`.+`) \| (.+) \|$", re.MULTILINE)
EVERYWHERE = {"throttle_time", "error_code", "error_message"}


def responses() -> dict[str, tuple[Any, str]]:
    """By API, the newest response that is decoded, and the code of the modules that name its schema."""
    versions: dict[str, set[int]] = defaultdict(set)
    code: dict[str, str] = defaultdict(str)
    for text in LIVE.values():
        for api, version in set(SCHEMA.findall(text)):
            versions[api].add(int(version))
            code[api] += text
        for name in set(LOADED.findall(text)):
            api = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
            versions[api].update(USES[Api[name]].sent)
            code[api] += text
    found = {}
    for api, named in versions.items():
        for version in sorted(named, reverse=True):
            try:
                module = import_module(f"kio.schema.{api}.v{version}.response")
            except ModuleNotFoundError:  # a header, a type, or no such version
                continue
            name = "".join(word.title() for word in api.split("_")) + "Response"
            found[api] = (getattr(module, name), code[api])
            break
    return found


def paths(message: Any, before: str = "") -> Iterator[tuple[str, str]]:
    for field in message_fields(message):
        yield before + field.name, field.name
        if field.nested is not None:
            yield from paths(field.nested, f"{before}{field.name}.")


def unused() -> dict[str, set[str]]:
    """By API, the fields that none of the modules names that name the schema; without those below an unused one."""
    found: dict[str, set[str]] = {}
    for api, (message, code) in responses().items():
        asked = re.compile(r"\"\w+\":")  # a field of the request
        read = set(re.findall(r"[.\"](\w+)", asked.sub("", code))) | EVERYWHERE
        not_read = [path for path, name in paths(message) if name not in read]
        top = {path for path in not_read if not any(path.startswith(f"{other}.") for other in not_read)}
        if top:
            found[api] = top
    return found


def test_every_field_that_is_decoded_and_not_read_has_its_reason() -> None:
    section = (ROOT / "docs/internals.md").read_text().split("## Fields that are decoded and not read")[1]
    documented: dict[str, set[str]] = defaultdict(set)
    for api, names, _why in ROW.findall(section.split("\n## ")[0]):
        documented[api] |= set(re.findall(r"`([\w.]+)`", names))
    assert dict(documented) == unused()
