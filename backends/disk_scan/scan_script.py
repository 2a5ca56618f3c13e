"""The scanner as one file of source text: its modules one after the other, without the imports between them."""

from __future__ import annotations

import ast
from importlib import resources

_MODULES = (
    "java_properties.py",
    "log_segments/checksum.py",
    "log_segments/batch_header.py",
    "log_segments/segment_source.py",
    "log_segments/segment_reader.py",
    "disk_scan/checkpoint_files.py",
    "disk_scan/scan_values.py",
    "disk_scan/broker_start.py",
    "disk_scan/segment_walk.py",
    "disk_scan/partition_scan.py",
    "disk_scan/log_dir_scan.py",
    "disk_scan/scan_main.py",
)
_BEGIN = '''\
#!/usr/bin/env python3
"""Reads the log dirs of a Kafka broker, running or dead, and writes what they hold as JSON to stdout.

It opens files for reading only and needs nothing but Python 3.8 or newer:
    ssh HOST python3 - /var/lib/kafka/data < scan.py > broker-3.json
"""

from __future__ import annotations
'''
_OWN = ("backends.", "ktriage.", "__future__")
"""What modules import of each other begins so, in the repository and in the wheel."""
_END = """

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
"""


def scan_script() -> str:
    """The whole script."""
    root = resources.files(__name__.removesuffix(".disk_scan.scan_script"))
    parts = [_body(root.joinpath(name).read_text("utf-8")) for name in _MODULES]
    return _BEGIN + "".join(parts) + _END


def _body(source: str) -> str:
    """A module without its docstring and the imports of its own kind."""
    lines = source.splitlines()
    left_out: set[int] = set()
    for number, node in enumerate(ast.parse(source).body):
        docstring = number == 0 and isinstance(node, ast.Expr)
        own = isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_OWN)
        if docstring or own:
            left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    code = [line for number, line in enumerate(lines, 1) if number not in left_out]
    return "\n\n" + "\n".join(code).strip() + "\n"
