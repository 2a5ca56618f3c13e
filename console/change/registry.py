"""The one registry of actions: what a command or a key is called, says, needs, and whether it changes a cluster.

Commands, their help and completion, the keys, footer, help and palette of the console, read-only, and why a key
does nothing now are all made from this. No key that tmux (Ctrl+B), screen (Ctrl+A) or a browser (Ctrl and most
letters, F1 to F12) takes.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

OFFLINE, REPLICAS, ELIGIBLE, QUORUM, DIRS, PLAN, TIMELINE, BROKERS, AFTER = "123456789"
PANES = {
    OFFLINE: "Offline partitions",
    REPLICAS: "Replica log info",
    ELIGIBLE: "ELR and LastKnownELR",
    QUORUM: "Quorum",
    DIRS: "Log dirs",
    PLAN: "Plan",
    TIMELINE: "Timeline",
    BROKERS: "Brokers",
    AFTER: "Groups and transactions",
}
WORDS = {
    OFFLINE: "Offline",
    REPLICAS: "Replicas",
    ELIGIBLE: "ELR",
    QUORUM: "Quorum",
    DIRS: "Dirs",
    PLAN: "Plan",
    TIMELINE: "Time",
    BROKERS: "Brokers",
    AFTER: "After",
}
"""One word for each pane, where there is no room for its title."""
ALL = "".join(PANES)
CHOOSING = OFFLINE + REPLICAS + ELIGIBLE
GROUPED = OFFLINE + ELIGIBLE + DIRS + PLAN + TIMELINE + BROKERS + AFTER


class Need(Enum):
    """What a key needs in the console; without it the key is disabled and says why."""

    FILES = auto()
    """It reads or writes a file (a copy too, for terminals that take none)."""
    IDLE = auto()
    """No other task is running."""
    PLAN = auto()
    CLUSTER = auto()
    QUORUM_LEADER = auto()
    ROW = auto()
    SENDS = auto()
    """It sends a change after a question; while the console is read-only, the question is only shown."""


class Action(NamedTuple):
    """An action of a console key, of a command, or of both.

    ``key`` as Textual names it, ``shown`` as a person types it, with a word (``label``) and a sentence (``what``).
    ``panes`` are those where it means something, ``group`` its heading in the help. ``foot`` orders the footer, 0
    is not in it. ``sends``: the kinds of change that it can send, by their action in the journal
    (:mod:`console.journal.change_kinds`). ``command`` is the module of its command,
    imported when that is called: a command pays for its own imports only; ``summary`` is the command's help.
    """

    name: str
    key: str = ""
    shown: str = ""
    label: str = ""
    what: str = ""
    panes: str = ""
    group: str = ""
    foot: int = 0
    needs: tuple[Need, ...] = ()
    sends: tuple[str, ...] = ()
    command: str = ""
    summary: str = ""

    @property
    def changes(self) -> bool:
        """Whether it can send what changes a cluster."""
        return bool(self.sends)

    @property
    def title(self) -> str:
        """Its line in the palette, which is searched for the action's name and for what it does."""
        named = "" if self.what.lower().startswith(self.label.lower()) else f"{self.label}: "
        return f"{named}{self.what} (key {self.shown})"

    def with_command(self, job: str, summary: str) -> Action:
        """The same action, also as a command of that name, in the job's room."""
        return self._replace(command=_module(job, self.name), summary=summary)


def _command(job: str, name: str, summary: str, *, sends: tuple[str, ...] = ()) -> Action:
    """An action that is only a command, in the job's room."""
    return Action(name, sends=sends, command=_module(job, name), summary=summary)


def _module(job: str, name: str) -> str:
    return f"{_JOBS}.{job}.{name.replace('-', '_')}_command"


_JOBS = f"{__name__.removesuffix('.change.registry')}.jobs"


_MOVES = ("reassign", "cancel-reassignment")
_RECOVERY = ("planned-elections", "reorder", "elect", "revert", "keep-log", *_MOVES)
_VOTERS = ("replace-controller", "add-voter", "remove-voter", "unregister-controller", "upgrade-feature")


ACTIONS = (
    _command(
        "status", "check", "Check before an incident: reachable brokers, supported requests, permissions."
    ),
    _command(
        "status", "readiness", "Find what would make an incident long, before it happens; with a score."
    ),
    _command(
        "status", "info", "Show which ktriage this is: version, paths, extras. No cluster is contacted."
    ),
    _command("status", "status", "Show the whole cluster on one screen: what is broken, the worst first."),
    _command("status", "replicas", "Show every replica's log, as its own broker describes it."),
    _command("elect", "plan", "Choose a leader for each offline partition and write a plan file."),
    _command("elect", "review", "Show a plan: what it loses, and the requests that will be sent."),
    Action(
        "apply",
        "X",
        "X",
        "apply",
        "apply the plan: shows it once more and asks",
        PLAN,
        "Plan",
        1,
        needs=(Need.IDLE, Need.PLAN, Need.CLUSTER, Need.SENDS),
        sends=_RECOVERY,
    ).with_command("elect", "Elect the leaders of a plan, after every row is compared again."),
    Action(
        "choose",
        "c",
        "c",
        "choose",
        "put the row, or all marked, into the plan",
        CHOOSING,
        "Plan",
        2,
        needs=(Need.IDLE, Need.CLUSTER, Need.ROW),
    ),
    Action("edit", "e", "e", "edit", "designate another leader", PLAN, "Plan", 2, needs=(Need.PLAN,)),
    Action(
        "open",
        "enter",
        "Enter",
        "open",
        "the row in detail",
        OFFLINE + ELIGIBLE + DIRS + TIMELINE,
        "Move",
        3,
        needs=(Need.ROW,),
    ),
    Action("arm", "A", "A", "arm", "arm, or make read-only again", ALL, "Safety", 4),
    Action(
        "write",
        "w",
        "w",
        "save",
        "save the plan to a new file",
        PLAN,
        "Plan",
        5,
        needs=(Need.FILES, Need.PLAN),
    ),
    Action("load", "o", "o", "load", "load a plan file", ALL, "Plan", needs=(Need.FILES, Need.IDLE)),
    Action(
        "requests",
        "R",
        "R",
        "requests",
        "the exact requests, or the table again",
        PLAN,
        "Plan",
        6,
        needs=(Need.PLAN,),
    ),
    Action(
        "compare",
        "m",
        "m",
        "compare",
        "compare the plan with the cluster as it is now",
        PLAN,
        "Plan",
        7,
        needs=(Need.IDLE, Need.PLAN, Need.CLUSTER),
    ),
    Action(
        "verify",
        "V",
        "V",
        "verify",
        "check the result of the plan",
        OFFLINE + PLAN,
        "Plan",
        8,
        needs=(Need.IDLE, Need.PLAN, Need.CLUSTER),
    ).with_command("elect", "Check the leaders, min ISR and replication of a plan's partitions."),
    Action(
        "aftermath",
        "V",
        "V",
        "read",
        "read groups and transactions again",
        AFTER,
        "Plan",
        1,
        needs=(Need.IDLE, Need.CLUSTER),
    ),
    Action(
        "fix",
        "x",
        "x",
        "fix",
        "put right the row's group or transaction, or all marked: shows it and asks",
        AFTER,
        "Plan",
        2,
        needs=(Need.IDLE, Need.CLUSTER, Need.ROW, Need.SENDS),
        sends=("commit-offsets", "write-markers"),
    ),
    Action(
        "undo",
        "U",
        "U",
        "undo",
        "put back the offsets that the last fix of groups replaced: shows them and asks",
        AFTER,
        "Plan",
        needs=(Need.IDLE, Need.CLUSTER, Need.SENDS),
        sends=("commit-offsets",),
    ),
    _command(
        "consumers",
        "groups",
        "Show which consumer groups an election affects, and put their offsets right.",
        sends=("commit-offsets",),
    ),
    _command(
        "consumers",
        "transactions",
        "Show transactions that an election left hanging, and end them.",
        sends=("write-markers",),
    ),
    Action(
        "heal",
        "N",
        "N",
        "heal",
        "new replicas in place of a broker that does not come back: shows them and asks",
        BROKERS,
        "Plan",
        2,
        needs=(Need.IDLE, Need.CLUSTER, Need.ROW, Need.SENDS),
        sends=("heal", "elect", "unregister-broker", *_MOVES),
    ).with_command("heal", "Give partitions new replicas after a broker that does not come back."),
    Action(
        "undo_heal",
        "U",
        "U",
        "undo",
        "take back what the last heal from this host did: shows it and asks",
        BROKERS,
        "Plan",
        needs=(Need.IDLE, Need.CLUSTER, Need.SENDS),
        sends=("heal", *_MOVES),
    ),
    _command("rescue", "rescue", "Read what an election would cut off, before the election."),
    Action(
        "restore",
        "B",
        "B",
        "restore",
        "write rescued records back: shows them and asks",
        OFFLINE + PLAN + AFTER,
        "Plan",
        9,
        needs=(Need.FILES, Need.IDLE, Need.CLUSTER, Need.SENDS),
        sends=("restore-records",),
    ).with_command("rescue", "Write rescued records back: to their source, or to a topic of their own."),
    _command(
        "elect", "recover", "Recover offline partitions in one go (kafka-unclean-recovery).", sends=_RECOVERY
    ),
    _command(
        "elect",
        "elect",
        "Preferred, unclean and designated elections (kafka-elect-leaders).",
        sends=_RECOVERY,
    ),
    _command(
        "incident", "resume", "Finish what an earlier run left half done.", sends=(*_RECOVERY, *_VOTERS)
    ),
    _command(
        "disks",
        "log-dirs",
        "Show log dirs: the replicas of a failed one, and the effect of a failure.",
    ),
    _command("disks", "disk", "A dead broker's log dirs, read from its disk."),
    _command(
        "quorum",
        "quorum",
        "Show the metadata quorum, change its voters, replace a controller.",
        sends=_VOTERS,
    ),
    _command("simulate", "simulate", "Rehearse incidents on a simulated cluster."),
    _command("gameday", "gameday", "Play an incident that a cluster could have, and compare what was done."),
    _command("pipeline", "snapshot", "Write a cluster's state into Delta tables, once or periodically."),
    _command("pipeline", "pipeline", "Plan, explain and rehearse over many clusters' snapshots, on Spark."),
    _command("timeline", "timeline", "Show what happened and when, from the cluster's metadata log."),
    _command("timeline", "metadata-log", "Copy a cluster's metadata log into a directory."),
    Action(
        "drop",
        "d",
        "d",
        "drop",
        "take the row, or all marked, out of the plan",
        PLAN,
        "Plan",
        9,
        needs=(Need.IDLE, Need.PLAN),
    ),
    Action(
        "dismiss",
        "d",
        "d",
        "dismiss",
        "take away what is said of offsets that others' elections cut off",
        OFFLINE,
        "Table",
        needs=(Need.CLUSTER,),
    ),
    Action(
        "journal",
        "J",
        "J",
        "journal",
        "what was sent to this cluster from this host",
        ALL,
        "Plan",
        needs=(Need.CLUSTER,),
    ).with_command("incident", "Show what was sent to a cluster from this host."),
    _command("status", "watch", "Wait, and tell when a broker is back or a partition changes."),
    _command(
        "incident", "bundle", "Write one file with the cluster as it is, for someone who has no access to it."
    ),
    _command(
        "incident", "report", "Report an incident: what happened, who decided what and why, what is open."
    ),
    Action(
        "handover",
        "H",
        "H",
        "hand-over",
        "what is open, what is waited for, and the next commands",
        ALL,
        "Plan",
        needs=(Need.CLUSTER,),
    ).with_command("incident", "Show what is open and what comes next, for who takes over."),
    Action(
        "replace",
        "M",
        "M",
        "replace",
        "replace a controller, or a broker's disk, step by step",
        QUORUM + DIRS,
        "Quorum",
        2,
        needs=(Need.FILES, Need.IDLE, Need.CLUSTER, Need.QUORUM_LEADER, Need.ROW),
        sends=(*_VOTERS, *_MOVES),
    ),
    Action(
        "evidence",
        "i",
        "i",
        "disk",
        "take a silent replica's log from a file of ktriage disk scan",
        OFFLINE + REPLICAS,
        "Cluster",
        needs=(Need.FILES, Need.IDLE, Need.CLUSTER, Need.ROW),
    ),
    Action("filter", "slash", "/", "filter", "show only rows with a text", ALL, "Table", 10),
    Action(
        "mark_all", "a", "a", "mark all", "mark every row that is shown", ALL, "Table", 11, needs=(Need.ROW,)
    ),
    Action("unmark", "u", "u", "unmark", "remove all marks", ALL, "Table"),
    Action(
        "range", "v", "v", "range", "mark from the last mark to the cursor", ALL, "Table", needs=(Need.ROW,)
    ),
    Action("sort", "s", "s", "sort", "sort by the next column", ALL, "Table", 12, needs=(Need.ROW,)),
    Action("reverse", "S", "S", "reverse", "sort the other way round", ALL, "Table", needs=(Need.ROW,)),
    Action(
        "group",
        "t",
        "t",
        "group",
        "group by topic, by broker, by state, or not",
        GROUPED,
        "Table",
        13,
        needs=(Need.ROW,),
    ),
    Action(
        "fold",
        "F",
        "F",
        "fold all",
        "fold all groups, or unfold them",
        GROUPED,
        "Table",
        27,
        needs=(Need.ROW,),
    ),
    Action(
        "others", "O", "O", "all", "show all partitions, or only those with a problem", OFFLINE, "Table", 19
    ),
    Action(
        "find",
        "f",
        "f",
        "find",
        "find a partition: it is under the cursor wherever it is listed",
        ALL,
        "Move",
        16,
        needs=(Need.CLUSTER,),
    ),
    Action("refresh", "r", "r", "refresh", "refresh now", ALL, "Cluster", 14),
    Action("pause", "p", "p", "pause", "refresh only on request, or every 10 s again", ALL, "Cluster", 24),
    Action(
        "ranking", "K", "K", "ranking", "choose the ranking: which log is the best", CHOOSING, "Cluster", 21
    ),
    Action(
        "strategy",
        "T",
        "T",
        "strategy",
        "choose the strategy: how much must be known",
        CHOOSING,
        "Cluster",
        20,
    ),
    Action("copy", "y", "y", "copy", "copy the row", ALL, "Take away", needs=(Need.FILES, Need.ROW)),
    Action(
        "copy_command",
        "Y",
        "Y",
        "copy $",
        "copy the command line that shows the same",
        ALL,
        "Take away",
        15,
        needs=(Need.FILES,),
    ),
    Action(
        "export",
        "E",
        "E",
        "export",
        "save the table as CSV or JSON",
        ALL,
        "Take away",
        23,
        needs=(Need.FILES, Need.ROW),
    ),
    Action("back", "escape", "Esc", "back", "back to where you came from", ALL, "Move", 18),
    Action("clusters", "C", "C", "clusters", "open another cluster", ALL, "Cluster", 22, needs=(Need.IDLE,)),
    Action("palette", "colon", ":", "commands", "every command by name", ALL, "Help", 25),
    Action(
        "glossary",
        "W",
        "W",
        "words",
        "what ISR, ELR, epoch, verdict … mean, and mean now for the partition under the cursor",
        ALL,
        "Help",
        17,
    ),
    Action(
        "proof",
        "P",
        "P",
        "proof",
        "why each choice loses what it loses, step by step, for the partition under the cursor",
        OFFLINE + REPLICAS,
        "Help",
        needs=(Need.CLUSTER, Need.ROW),
    ),
    Action("theme", "L", "L", "look", "choose the colours; they are remembered", ALL, "Help", 26),
    Action("help", "question_mark", "?", "help", "every key, and why a key is disabled", ALL, "Help", 30),
    Action("quit", "q", "q", "quit", "quit the console", ALL, "Help", 31),
    *(
        Action(f"pane{number}", number, number, title, f"{title}: pane {number}", ALL, "Move")
        for number, title in PANES.items()
    ),
)

BY_NAME = {action.name: action for action in ACTIONS}
COMMANDS = {action.name: action for action in ACTIONS if action.command}
KEYS = tuple(action for action in ACTIONS if action.key)
