"""The entry points of the three programs. A Ctrl-C during the imports ends them without a traceback."""

from __future__ import annotations

import logging
import signal
from typing import NoReturn


def ktriage() -> NoReturn:
    """``ktriage``."""
    _end_at_once()
    _silence_libraries()
    from console.cli.main import main  # noqa: PLC0415  # what may be interrupted

    main()


def kafka_unclean_recovery() -> NoReturn:
    """``kafka-unclean-recovery``."""
    _end_at_once()
    _silence_libraries()
    from console.cli.main import kafka_unclean_recovery as program  # noqa: PLC0415  # as above

    program()


def kafka_elect_leaders() -> NoReturn:
    """``kafka-elect-leaders``."""
    _end_at_once()
    _silence_libraries()
    from console.cli.main import kafka_elect_leaders as program  # noqa: PLC0415  # as above

    program()


def _silence_libraries() -> None:
    """Without a handler, Python prints warnings of libraries on stderr, between our own lines."""
    logging.getLogger("aiokafka").addHandler(logging.NullHandler())


def _end_at_once() -> None:
    """Nothing can be in flight before the supervisor starts. A signal that is ignored (nohup) stays ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
