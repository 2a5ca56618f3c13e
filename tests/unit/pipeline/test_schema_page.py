"""The page of the tables' schemas is a contract: a column that it names stays, with its type.

``python -m tests.unit.pipeline.test_schema_page`` writes it anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pipeline.results import RESULT_TABLES
from pipeline.tables.schema_conversion import ddl
from pipeline.tables.schemas import OBSERVATIONS, PARTITION_STATES, RUNS, VERSION, TableDefinition
from pipeline.views import TABLES_OF_VIEWS, view_text
from pipeline.watch.incident_rows import TABLES

PAGE = Path(__file__).parents[3] / "docs" / "schemas.md"
EVERY = (PARTITION_STATES, OBSERVATIONS, RUNS, *RESULT_TABLES, *TABLES)

HEAD = f"""\
# The columns of the pipeline's tables

Schema version {VERSION}. A column is never renamed or removed, and its type and meaning never change; a later
version may add columns, which are null in older rows. A test compares this page with the code.
[pipeline.md](pipeline.md) says what the tables are for, [tables.md](tables.md) how other engines read them.
"""


def page() -> str:
    """The page, as it has to be."""
    return "".join((HEAD, *(part for definition in EVERY for part in _of_table(definition)), *_views()))


def _of_table(definition: TableDefinition) -> Iterator[str]:
    yield f"\n## {definition.name}\n\n"
    if definition.partition_by:
        yield f"Partitioned by {', '.join(f'`{name}`' for name in definition.partition_by)}.\n\n"
    yield "| column | type |\n| --- | --- |\n"
    for field in definition.schema:
        kind = (
            ddl(definition.schema.empty_table().select([field.name]).schema)
            .partition(" ")[2]
            .replace("`", "")
        )
        yield f"| `{field.name}` | `{kind}` |\n"


def _views() -> Iterator[str]:
    yield "\n## Views\n\n| view | reads |\n| --- | --- |\n"
    for name in TABLES_OF_VIEWS:
        head = re.findall(r"^-- (.*)$", view_text(name), re.MULTILINE)
        yield f"| `{name}` | {head[-1].partition(': ')[2].rstrip('.')} |\n"


def test_the_page_is_that_of_the_tables() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.unit.pipeline.test_schema_page"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
