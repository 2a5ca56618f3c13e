"""What can be done in the console, by key: footer, help, command palette and read-only are made from this.

No key that tmux (Ctrl+B), screen (Ctrl+A) or a browser (Ctrl and most letters, F1 to F12) takes.
"""

from __future__ import annotations

from typing import NamedTuple

OFFLINE, REPLICAS, ELIGIBLE, QUORUM, DIRS, PLAN = "123456"
PANES = {
    OFFLINE: "Offline partitions",
    REPLICAS: "Replica log info",
    ELIGIBLE: "ELR and LastKnownELR",
    QUORUM: "Quorum",
    DIRS: "Log dirs",
    PLAN: "Plan",
}
ALL = "123456"
TABLES = ALL
CHOOSING = OFFLINE + REPLICAS + ELIGIBLE


class KeyAction(NamedTuple):
    """``key`` as Textual names it, ``shown`` as a person types it. ``panes`` are those where it means something.

    ``changes``: it can send what changes the cluster, and needs an armed console. ``foot`` orders the footer, 0 is
    not in it. ``group`` is its heading in the help.
    """

    name: str
    key: str
    shown: str
    label: str
    what: str
    panes: str
    group: str
    foot: int = 0
    changes: bool = False


KEYS = (
    KeyAction(
        "apply", "X", "X", "apply", "apply the plan: shows it once more and asks", PLAN, "Plan", 1, True
    ),
    KeyAction("choose", "c", "c", "choose", "put the row, or all marked, into the plan", CHOOSING, "Plan", 2),
    KeyAction("edit", "e", "e", "edit", "designate another leader", PLAN, "Plan", 2),
    KeyAction("open", "enter", "Enter", "open", "the row in detail", OFFLINE + ELIGIBLE + DIRS, "Move", 3),
    KeyAction("arm", "A", "A", "arm", "arm, or make read-only again", ALL, "Safety", 4),
    KeyAction("write", "w", "w", "save", "save the plan to a new file", PLAN, "Plan", 5),
    KeyAction("load", "o", "o", "load", "load a plan file", ALL, "Plan", 0),
    KeyAction("requests", "R", "R", "requests", "the exact requests, or the table again", PLAN, "Plan", 6),
    KeyAction("compare", "m", "m", "compare", "compare the plan with the cluster of now", PLAN, "Plan", 7),
    KeyAction("verify", "V", "V", "verify", "whether the plan came out as it was meant", PLAN, "Plan", 8),
    KeyAction("drop", "d", "d", "drop", "take the row, or all marked, out of the plan", PLAN, "Plan", 9),
    KeyAction("journal", "J", "J", "journal", "what was sent to this cluster from this host", ALL, "Plan", 0),
    KeyAction("replace", "M", "M", "replace", "replace a controller, step by step", QUORUM, "Quorum", 2),
    KeyAction("filter", "slash", "/", "filter", "show only rows with a text", ALL, "Table", 10),
    KeyAction("mark_all", "a", "a", "mark all", "mark every row that is shown", ALL, "Table", 11),
    KeyAction("unmark", "u", "u", "unmark", "take every mark away", ALL, "Table", 0),
    KeyAction("range", "v", "v", "range", "mark from the last mark to the cursor", ALL, "Table", 0),
    KeyAction("sort", "s", "s", "sort", "sort by the next column", ALL, "Table", 12),
    KeyAction("reverse", "S", "S", "reverse", "sort the other way round", ALL, "Table", 0),
    KeyAction("group", "t", "t", "group", "group by topic, by broker, or not", OFFLINE, "Table", 13),
    KeyAction("others", "O", "O", "others", "the other partitions too, or not", OFFLINE, "Table", 0),
    KeyAction("refresh", "r", "r", "refresh", "look at the cluster now", ALL, "Cluster", 14),
    KeyAction("pause", "p", "p", "pause", "look only when asked, or every 10 s again", ALL, "Cluster", 0),
    KeyAction("ranking", "K", "K", "ranking", "what makes a log the best", CHOOSING, "Cluster", 0),
    KeyAction("strategy", "T", "T", "strategy", "how much must be known to choose", CHOOSING, "Cluster", 0),
    KeyAction("copy", "y", "y", "copy", "copy the row", ALL, "Take away", 0),
    KeyAction(
        "copy_command", "Y", "Y", "copy $", "copy the command line of what is shown", ALL, "Take away", 15
    ),
    KeyAction("export", "E", "E", "export", "save the table as CSV or JSON", ALL, "Take away", 0),
    KeyAction("back", "escape", "Esc", "back", "back to where you came from", ALL, "Move", 16),
    KeyAction("clusters", "C", "C", "clusters", "leave this cluster for another", ALL, "Cluster", 0),
    KeyAction("palette", "colon", ":", "commands", "every command by name", ALL, "Help", 0),
    KeyAction(
        "help", "question_mark", "?", "help", "every key, and why one does nothing now", ALL, "Help", 17
    ),
    KeyAction("quit", "q", "q", "quit", "end the console", ALL, "Help", 18),
    *(
        KeyAction(f"pane{number}", number, number, title, f"pane {number}: {title}", ALL, "Move")
        for number, title in PANES.items()
    ),
)

BY_NAME = {action.name: action for action in KEYS}
