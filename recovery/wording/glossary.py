"""The glossary: Kafka's words and ours, each in two sentences."""

from __future__ import annotations

from typing import NamedTuple


class GlossaryEntry(NamedTuple):
    """A term, other words that somebody may search for, and what it means in two sentences."""

    term: str
    also: tuple[str, ...]
    meaning: str

    def matches(self, text: str) -> bool:
        """Whether somebody who types ``text`` may mean it."""
        wanted = text.strip().lower()
        return any(wanted in known.lower() for known in (self.term, *self.also, self.meaning))


ISR = "ISR"
MIN_ISR = "min ISR"
ELR = "ELR"
LAST_KNOWN_ELR = "LastKnownELR"
FENCED = "fenced"
LEADER_EPOCH = "leader epoch"
LAST_EPOCH = "last record's epoch"
HIGH_WATERMARK = "high watermark"
LOG_END = "log end"
DIVERGENT_TAIL = "divergent tail"
RANKING = "ranking"
STRATEGY = "strategy"
VERDICT = "verdict"
ACKNOWLEDGED = "acknowledged record"
UNCLEAN = "unclean election"
OLD_LEADER = "old leader"
CANDIDATE = "candidate"
SUCCESSOR = "if it drops out"

GLOSSARY = (
    GlossaryEntry(
        ISR,
        ("in-sync replicas", "in sync"),
        "The in-sync replicas: those that have everything the leader has committed. Kafka elects a leader"
        " from them without data loss.",
    ),
    GlossaryEntry(
        MIN_ISR,
        ("min.insync.replicas", "acks=all"),
        "min.insync.replicas: a write with acks=all is accepted only while the ISR has at least so many"
        " members. Below it those writes fail with NOT_ENOUGH_REPLICAS, and consumers see no new records of"
        " others either, although the partition has a leader.",
    ),
    GlossaryEntry(
        ELR,
        ("eligible leader replicas", "KIP-966"),
        "Eligible leader replicas (KIP-966): replicas that left the ISR when it fell below min ISR, and still"
        " hold every committed record. A member that returns after a clean shutdown is elected without data"
        " loss.",
    ),
    GlossaryEntry(
        LAST_KNOWN_ELR,
        ("last known leader",),
        "The last leader, noted when a partition loses its leader; it may be in the ELR as well. Kafka elects it"
        " only where ISR and ELR are empty, once it is unfenced, whatever its log lost.",
    ),
    GlossaryEntry(
        FENCED,
        ("unfenced", "heartbeat", "broker session"),
        "The controller hears no heartbeat of a fenced broker, or the broker is still starting. It cannot"
        " lead or be in an ISR until it is unfenced.",
    ),
    GlossaryEntry(
        LEADER_EPOCH,
        ("epoch", "partition leader epoch"),
        "A number that the controller raises with each new leader of the partition. Every record carries the"
        " leader epoch in which it was written.",
    ),
    GlossaryEntry(
        LAST_EPOCH,
        ("epoch", "last epoch", "lineage"),
        "The leader epoch of the last record in a replica's log. A log with a higher one was written to"
        " later, even if it is shorter.",
    ),
    GlossaryEntry(
        HIGH_WATERMARK,
        ("HW", "committed"),
        "The offset up to which every member of the ISR had the records; consumers read no further. The one"
        " that a dead or returned replica knew is often old, so it is a lower bound of what was committed.",
    ),
    GlossaryEntry(
        LOG_END,
        ("LEO", "log end offset"),
        "The offset of the next record that a log would take. A longer log is not always the better one: it"
        " may end with records that no other replica ever had.",
    ),
    GlossaryEntry(
        DIVERGENT_TAIL,
        ("divergence", "stale", "old", "truncated", "branch"),
        "Records at the end of a log that an old leader wrote and that the other logs do not have. A replica"
        " truncates them when it follows a leader without them.",
    ),
    GlossaryEntry(
        RANKING,
        ("last-record", "specification"),
        "The order of the candidates: by the epoch of the last record, then by log end (last-record). K"
        " chooses another ranking.",
    ),
    GlossaryEntry(
        STRATEGY,
        ("balanced", "aggressive", "complete"),
        "How much must be known before a leader is chosen: balanced goes by the verdicts, complete wants an"
        " answer of every replica, aggressive takes the best that answered. T chooses another strategy.",
    ),
    GlossaryEntry(
        VERDICT,
        ("none", "some", "open", "evidence", "in doubt", "unchecked", "none, unchecked", "none, in doubt"),
        "What a choice loses of the records acknowledged with acks=all: none (proved; unchecked: if conditions"
        " hold that were not checked; in doubt: there are signs against one), some (committed ones, by a high"
        " watermark), or open where neither is proved. It names its evidence and what would decide it.",
    ),
    GlossaryEntry(
        ACKNOWLEDGED,
        ("acks=all", "LOSES ACKED"),
        "A record that an acks=all producer was told is written: it was on an ISR of at least min ISR."
        " Records of other producers, and records that were only appended, are counted apart.",
    ),
    GlossaryEntry(
        UNCLEAN,
        ("unclean.leader.election.enable",),
        "The election of a leader that is in neither ISR nor ELR: what its log lacks is lost. ktriage"
        " requests one only for the replica that you chose.",
    ),
    GlossaryEntry(
        OLD_LEADER,
        ("acts as leader", "cut off", "still takes writes"),
        "A broker that is cut off from the controllers and does not know that it was replaced: it takes and"
        " confirms writes of the clients that reach it. They are lost when it hears of its successor.",
    ),
    GlossaryEntry(
        CANDIDATE,
        ("electable", "electable now"),
        "A replica that answered with its log and could be elected. Its broker must be registered, unfenced,"
        " and have the replica online.",
    ),
    GlossaryEntry(
        SUCCESSOR,
        ("successor",),
        "The replica that Kafka elects if the chosen one fails right before the election. The plan shows what"
        " that one would lose.",
    ),
    GlossaryEntry(
        "rescue",
        ("restore", "branch"),
        "The records that an election would cut off, read from the brokers that still have them and saved as"
        " segment files. They can be written back later.",
    ),
    GlossaryEntry(
        "plan",
        ("precondition", "digest"),
        "The reviewed choice: a leader for each partition, with what it loses. Each row has preconditions"
        " (topic id, leader epoch, replicas, log ends) and is refused if they do not hold any more.",
    ),
    GlossaryEntry(
        "voter",
        ("observer", "quorum"),
        "A controller that votes in the metadata quorum; a majority of the voters must be up. An observer (a"
        " broker, or a controller that is not a voter yet) only copies the metadata log.",
    ),
    GlossaryEntry(
        "directory id",
        ("disk", "log dir"),
        "The id that a log dir gets when it is formatted. A controller with a new disk has a new one, and is"
        " another voter for the quorum.",
    ),
    GlossaryEntry(
        "T+15 s",
        ("simulated time", "virtual time"),
        "A time of a simulated cluster: 15 seconds after its start. Simulated clusters have no calendar.",
    ),
)


def search(text: str) -> tuple[GlossaryEntry, ...]:
    """The entries for what was typed: those whose name has it first; all of them for an empty text."""
    found = [entry for entry in GLOSSARY if entry.matches(text)]
    wanted = text.strip().lower()
    return tuple(sorted(found, key=lambda entry: wanted not in entry.term.lower()))
