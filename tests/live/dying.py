"""``ktriage`` that is killed by SIGKILL right before it sends: ``python -m tests.live.dying MOMENT COMMAND …``.

MOMENT is the action (reorder, elect, restore) whose intention is on disk when the process dies. Only the moment is
handed in; the kill, the journal and the cluster are real.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping

from console.cli import main
from console.journal.journal import Journal


def die_before(moment: str) -> None:
    recorded = Journal.before

    def before(self: Journal, action: str, detail: Mapping[str, object]) -> str:
        entry = recorded(self, action, detail)
        if action == moment:
            os.kill(os.getpid(), signal.SIGKILL)
        return entry

    Journal.before = before  # type: ignore[method-assign]  # the one thing that is not as it is delivered


if __name__ == "__main__":
    die_before(sys.argv[1])
    sys.argv = ["ktriage", *sys.argv[2:]]
    main.main()
