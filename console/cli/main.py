"""The entry points: ``ktriage``, ``kafka-unclean-recovery`` and ``kafka-elect-leaders``.

Every outcome ends here as an exit status, and every error as one line that says what to do.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import itertools
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, NoReturn

import typer
from typer.exceptions import Exit, TyperException

from backends.base.errors import BackendError
from console.cli.command_tree import single, tree
from console.errors import ConsoleError, Status, kind_of, status_of
from console.logs import LogOptions
from console.output.screen import Screen
from console.program import Program
from console.signals import AT_QUESTION, Stopped, Supervisor, status_of_signal
from recovery.wording.quantity_text import printable

if TYPE_CHECKING:
    from typer.core import TyperCommand, TyperGroup


# Makes Python's cycle collector run rarely.

YOUNG_OBJECTS = 1_000_000
"""New objects before the collector runs. A command keeps nearly all its objects until it ends, and collecting
again and again among the answers for thousands of partitions took a fifth of its time.
"""


def collect_seldom() -> None:
    """For a process that runs one command and ends."""
    gc.set_threshold(YOUNG_OBJECTS, 20, 50)


def main() -> NoReturn:
    """``ktriage``."""
    _enter("ktriage", tree())


def kafka_unclean_recovery() -> NoReturn:
    """``kafka-unclean-recovery``: the same as ``ktriage recover``."""
    _enter("kafka-unclean-recovery", single("recover"))


def kafka_elect_leaders() -> NoReturn:
    """``kafka-elect-leaders``: the same as ``ktriage elect``."""
    _enter("kafka-elect-leaders", single("elect"))


def _enter(name: str, command: TyperCommand | TyperGroup) -> NoReturn:
    collect_seldom()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets an escape sequence, not a crash in the middle of a
        # recovery.
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    if f"_{name.upper().replace('-', '_')}_COMPLETE" in os.environ:
        from typer._completion_classes import completion_init  # noqa: PLC0415  # a shell that completes only

        completion_init()
    program = _program(name, sys.argv[1:])
    status = run(command, program)
    if program.screen.output_failed:
        program.screen.say(f"{name}: the results could not be written: {program.screen.output_failed}")
        status = status or Status.PARTLY
    leave(status)


def leave(status: int) -> NoReturn:
    """Ends the process without freeing Python's memory, which would take a tenth of a short command's time."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # closed, or its reader has gone: reported before
            if stream is not None:
                stream.flush()
    os._exit(status)


def _program(name: str, arguments: list[str]) -> Program:
    program: Program

    def last_words(_signum: int) -> str:
        resume = f"; to finish or undo it: {program.resume}" if program.resume else ""
        return f"{name}: stopped at once; requests in flight may be unfinished{resume}\n"

    program = Program(name, (name, *arguments), Screen(time.monotonic), Supervisor(last_words))
    program.supervisor.install()
    return program


def run(command: TyperCommand | TyperGroup, program: Program) -> int:
    """Runs the command with the program's arguments; every way out is an exit status."""
    screen = program.screen
    reported = False
    try:
        logs = LogOptions(program.argv[1:])
        program.argv = (program.name, *logs.rest)
        program.logs_to_stderr = logs.to_stderr
        with logs.applied(screen.say):
            status = command.main(
                args=list(program.argv[1:]), prog_name=program.name, standalone_mode=False, obj=program
            )
    except TyperException as error:
        status = _usage(error, program)
    except (Exit, typer.Abort) as error:
        status = getattr(error, "exit_code", Status.PARTLY)
    except SystemExit as leaving:
        # typer leaves like this after completion, and when the reader of its help has gone away.
        gone = isinstance(leaving.__context__, BrokenPipeError)
        status = Status.DONE if gone or not isinstance(leaving.code, int) else leaving.code
    except Stopped as stopped:
        reported = True
        state = "what was in flight may be unfinished" if stopped.in_flight else "nothing was in flight"
        screen.say(f"{program.name}: stopped by {stopped}; {state}")
        if stopped.in_flight and program.resume:
            screen.say(f"  {program.resume}")
        status = status_of_signal(stopped.signum)
    except (ConsoleError, BackendError) as error:
        status = _failed(error, str(error), program)
    except Exception as error:  # the last handler: no traceback reaches the user
        status = _crashed(error, program)
    stop = program.supervisor.stop
    if stop.signum is None:
        return int(status or Status.DONE)
    if not reported:
        name = signal.Signals(stop.signum).name
        done = AT_QUESTION if stop.asked else "what was in flight was finished, and nothing else was started"
        screen.say(f"{program.name}: {name} came; {done}")
        if program.resume:
            screen.say(f"  {program.resume}")
    return status_of_signal(stop.signum)


def _usage(error: TyperException, program: Program) -> int:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else program.name
    message = printable(" ".join(error.format_message().split()))
    option = getattr(error, "option_name", None) or ""
    if option.startswith("-") and option[1:2].isdecimal():
        message = f"{option}: negative numbers are not allowed"
    program.screen.say(f"{path}: {message} (see {path} --help)")
    _say_as_json(program, Status.USAGE, "usage", message)
    return Status.USAGE


def _failed(error: Exception, text: str, program: Program) -> int:
    status = status_of(error)
    program.screen.say(f"{program.name}: {printable(text)}")
    _say_as_json(program, status, kind_of(error), text)
    return status


def _say_as_json(program: Program, status: Status, kind: str, message: str) -> None:
    """Where JSON was asked for and nothing was written yet: a program reads one document, whatever happens."""
    words = program.argv
    asked = "--output=json" in words or ("--output", "json") in itertools.pairwise(words)
    if asked and not program.screen.wrote:
        from console.output.json_document import document  # noqa: PLC0415  # not for a command that succeeds

        program.screen.out(document("error", {"status": int(status), "kind": kind, "message": message}))


def _crashed(error: Exception, program: Program) -> int:
    # Only a crash needs these imports.
    from datetime import UTC, datetime  # noqa: PLC0415

    from console.crash import write_crash  # noqa: PLC0415
    from console.paths import state_dir  # noqa: PLC0415
    from console.redaction import redact  # noqa: PLC0415

    what = f"internal error ({type(error).__name__})"
    _say_as_json(program, Status.PARTLY, "internal error", what)
    try:
        path = write_crash(error, program.argv, state_dir() / "crashes", datetime.now(UTC))
    except OSError as failed:
        program.screen.say(
            redact(f"{program.name}: {what}; its report could not be written ({failed.strerror})")
        )
    else:
        program.screen.say(f"{program.name}: {what}; its report is in {path}")
    return Status.PARTLY
