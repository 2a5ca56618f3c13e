"""A planned rebuild as one file of source text, for a host without ktriage: the modules that carry it out, one
after the other, and the plan's bytes.
"""

from __future__ import annotations

import ast
import base64
from collections.abc import Collection
from importlib import resources

from backends.metadata_log.rebuild_main import ScriptedRebuild

_MODULES: tuple[tuple[str, str, frozenset[str]], ...] = (
    ("backends", "java_properties.py", frozenset()),
    ("backends", "log_segments/segment_source.py", frozenset()),
    ("backends", "disk_scan/checkpoint_files.py", frozenset()),
    (
        "backends",
        "metadata_log/directory.py",
        frozenset(("DIRECTORY", "_SEGMENT", "_SNAPSHOT", "MetadataDirError", "log_files")),
    ),
    ("recovery", "membership/lost_quorum.py", frozenset(("NO_NODE", "StoredElection"))),
    (
        "backends",
        "metadata_log/quorum_copy.py",
        frozenset(("LOCK", "PROPERTIES", "QUORUM_STATE", "stored_election")),
    ),
    ("recovery", "membership/quorum_rebuild.py", frozenset(("PlannedFile",))),
    ("backends", "metadata_log/rebuilt_directory.py", frozenset()),
    ("backends", "metadata_log/rebuild_steps.py", frozenset()),
    ("backends", "metadata_log/rebuild_main.py", frozenset()),
)
"""Package, module, and the names that are needed of it; none: all."""
_ABOVE = __name__.partition("backends")[0]
"""Nothing in the repository, "ktriage." in the wheel."""
_BEGIN = '''\
#!/usr/bin/env python3
"""Carries out one plan of ktriage quorum rebuild on the host that has the directory, while its node is stopped.

It needs nothing but Python 3.8 or newer, as the user that Kafka runs as, or as root:
    python3 rebuild.py            (asks first)
    python3 rebuild.py --undo     (puts back what was there before, until the controller is started)
"""

from __future__ import annotations

import base64
import re
from typing import NamedTuple
'''


def rebuild_script(rebuild: ScriptedRebuild) -> str:
    """The whole script."""
    parts = [
        _code(resources.files(f"{_ABOVE}{package}").joinpath(name).read_text("utf-8"), names)
        for package, name, names in _MODULES
    ]
    return _BEGIN + "".join(parts) + _end(rebuild)


def _code(source: str, names: Collection[str]) -> str:
    """A module without its docstring and what it imports from its neighbours; with ``names``, only these of it."""
    lines = source.splitlines()
    parts = []
    for number, node in enumerate(ast.parse(source).body):
        docstring = number == 0 and isinstance(node, ast.Expr)
        own = isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            ("backends.", "recovery.", "ktriage.", "__future__")
        )
        if docstring or own or (names and _name(node) not in names):
            continue
        decorators = getattr(node, "decorator_list", [])
        first = min((node.lineno, *(one.lineno for one in decorators)))
        parts.append("\n".join(lines[first - 1 : node.end_lineno]))
    return "\n\n" + "\n\n".join(parts) + "\n"


def _name(node: ast.stmt) -> str:
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return node.name
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    return target.id if isinstance(target, ast.Name) else ""


def _end(rebuild: ScriptedRebuild) -> str:
    order = rebuild.order
    fields = [
        f"    {name}={value!r},"
        for name, value in order._asdict().items()
        if name not in ("files", "appended")
    ]
    files = [f"        PlannedFile(*{tuple(file)!r})," for file in order.files]
    encoded = base64.b64encode(order.appended).decode()
    pieces = [f"        {encoded[start : start + 96]!r}" for start in range(0, len(encoded), 96)]
    addresses = [f"    AskedAddress(*{tuple(one)!r})," for one in rebuild.addresses]
    return "\n".join(
        (
            "",
            "",
            "_ORDER = RebuildOrder(",
            *fields,
            "    files=(",
            *files,
            "    ),",
            "    appended=base64.b64decode(",
            *pieces,
            "    ),",
            ")",
            "_ADDRESSES = (",
            *addresses,
            ")",
            f"_SUMMARY = {tuple(rebuild.summary)!r}",
            "",
            'if __name__ == "__main__":',
            f"    _REBUILD = ScriptedRebuild(_ORDER, _SUMMARY, {tuple(rebuild.dead)!r}, _ADDRESSES,"
            f" {rebuild.reviewed!r})",
            "    sys.exit(run_rebuild(_REBUILD, sys.argv[1:]))",
            "",
        )
    )
