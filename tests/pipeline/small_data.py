"""The settings of a Spark session that has little to do."""

from __future__ import annotations

SMALL_DATA = {
    "spark.sql.shuffle.partitions": "4",
    # To compile code for a query takes longer than to go through a few rows without it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Not set where ``make soak`` submits jobs, nor for ``ktriage pipeline`` as a process of its own."""
