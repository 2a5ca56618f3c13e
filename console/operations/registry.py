"""The actions by name: what help, completion, read-only and (later) the console's keys are made from."""

from __future__ import annotations

from typing import NamedTuple


class Action(NamedTuple):
    """One action. ``changes``: it can send what changes a cluster, and read-only refuses it.

    ``module`` holds its command, imported when it is called: a command pays for its own imports only.
    """

    name: str
    summary: str
    changes: bool
    module: str


ACTIONS = (
    Action(
        "check", "What can be reached, called and seen of a cluster, before trouble comes.", False, "check"
    ),
    Action("status", "The whole cluster on one screen: what is broken, the worst first.", False, "overview"),
    Action("replicas", "Every replica's log, as its own broker describes it.", False, "replicas"),
    Action("plan", "Choose a leader for each offline partition and write a plan file.", False, "plan"),
    Action("review", "Show a plan: what it loses, and the requests that will be sent.", False, "review"),
    Action("apply", "Elect the leaders of a plan, after every row is compared again.", True, "apply"),
    Action("verify", "Whether the partitions of a plan are led, usable and replicated.", False, "verify"),
    Action("recover", "Recover offline partitions in one go (kafka-unclean-recovery).", True, "recover"),
    Action("elect", "Preferred, unclean and designated elections (kafka-elect-leaders).", True, "elect"),
    Action("resume", "Finish what an earlier run left half done.", True, "resume"),
    Action(
        "log-dirs", "Every log dir; what a failed one held, and what a failure would take.", False, "log_dirs"
    ),
    Action("quorum", "The metadata quorum: see it, change its voters, replace a controller.", True, "quorum"),
    Action("simulate", "Rehearse incidents on a simulated cluster.", False, "simulate"),
    Action("snapshot", "Write a cluster's state as Parquet, once or again and again.", False, "snapshot"),
    Action(
        "pipeline", "Plan, explain and rehearse over many clusters' snapshots, on Spark.", False, "pipeline"
    ),
    Action(
        "timeline",
        "What happened and when: the cluster's own metadata log in plain words.",
        False,
        "timeline",
    ),
    Action("journal", "Show what was sent to a cluster from this host.", False, "journal"),
)

BY_NAME = {found.name: found for found in ACTIONS}
