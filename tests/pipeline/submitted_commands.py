"""For spark-submit: several commands of ktriage, one after the other, the last by the script that users submit. The
workers are started once, as that costs more than a command. Arguments: the script, and the commands' words as JSON.

It has ktriage from the wheel alone, like the script.
"""

from __future__ import annotations

import json
import runpy
import sys
import time

from console.cli.command_tree import tree
from console.cli.main import run
from console.output.screen import Screen
from console.program import Program
from console.signals import Supervisor
from pipeline.spark_session import SparkSettings, session


def main(script: str, commands: str) -> None:
    """Ends with the status of the first command that fails, or of the last."""
    *others, last = json.loads(commands)
    with session("commands", SparkSettings()):
        for words in others:
            program = Program(
                "ktriage", ("ktriage", *words), Screen(time.monotonic), Supervisor(lambda _signum: "")
            )
            status = run(tree(), program)
            if status:
                sys.exit(status)
        sys.argv = [script, *last]
        runpy.run_path(script, run_name="__main__")  # it ends the process


if __name__ == "__main__":
    main(*sys.argv[1:])
