"""Modules form layers: no module imports, through others, a module that imports it; names of types alone may."""

from __future__ import annotations

from graphlib import TopologicalSorter

import grimp

PACKAGES = ("recovery", "backends", "widgets", "console", "pipeline", "testbed")


def test_no_module_is_part_of_an_import_circle() -> None:
    graph = grimp.build_graph(*PACKAGES, cache_dir=None, exclude_type_checking_imports=True)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert sum(map(len, imports.values())) > 3000, "the product's imports were not found"
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the modules of a circle
