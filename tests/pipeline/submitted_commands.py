"""For spark-submit: several commands of ktriage, one after the other, each in a Spark session. The workers
are started once, as that costs more than a command. The argument is the list of their words, as JSON.

It has ktriage from the wheel alone, like the script that ``make wheel`` puts beside it.
"""

from __future__ import annotations

import json
import sys
import time

from console.cli.command_tree import tree
from console.cli.main import run
from console.output.screen import Screen
from console.program import Program
from console.signals import Supervisor
from pipeline.spark_session import SparkSettings, session


def main(commands: str) -> None:
    """Ends with the status of the first command that fails."""
    with session("commands", SparkSettings()):
        for words in json.loads(commands):
            program = Program(
                "ktriage", ("ktriage", *words), Screen(time.monotonic), Supervisor(lambda _signum: "")
            )
            status = run(tree(), program)
            if status:
                sys.exit(status)


if __name__ == "__main__":
    main(*sys.argv[1:])
