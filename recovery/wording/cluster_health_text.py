"""The health of a whole cluster in one line, the worst first."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from recovery.cluster_health import ClusterHealth, QuorumFinding, QuorumState, cut_off, quorum_finding
from recovery.membership.possible_only_voter import LEAD_NO_BROKER
from recovery.membership.quorum import Quorum
from recovery.membership.quorum_without_leader import QuorumWithoutLeader
from recovery.model import Unknown
from recovery.wording.quantity_text import counted, ids, printable, simulated_time, utc_text
from recovery.wording.unread_disk_text import unread_in_short

FEW = 4
"""So many brokers or voters are named; more are counted."""

_STALE = {
    QuorumState.NO_LEADER: "no controller leads",
    QuorumState.CANNOT_COMMIT: "a majority of the voters is down",
    QuorumState.UNREACHABLE: "no controller that leads can be reached",
    QuorumState.NOT_REACHED_BY_BROKERS: "a controller leads, it says, and the brokers that answer do not reach it",
    QuorumState.OLD_VOTERS: "the quorum is led by voters that a rebuild replaced",
}
_MEND_QUORUM = (
    "nobody can be elected, and leaders and ISRs are shown as they were before.",
    " Mend the quorum first ({where}).",
)
_CHECK_QUORUM = (
    "nobody leads, or the brokers that answer are cut off from the controllers. Leaders and ISRs are shown as these"
    " brokers last knew them, and may have changed.",
    " Look first ({where}).",
)
_FIND_OUT_WHY = (
    "leaders and ISRs are shown as these brokers last knew them, and may have changed.",
    f" Find out why first ({{where}}). {LEAD_NO_BROKER}",
)
_STOP_OLD_VOTERS = (
    "leaders and ISRs are theirs, not the cluster's, and what is changed there is not in the rebuilt quorum.",
    " Stop these voters first ({where}).",
)
_OTHERS = "leaders and ISRs are shown as it last knew them. Ask other brokers (--bootstrap-server)."

_MEANS = {
    QuorumState.UNREACHABLE: _CHECK_QUORUM,
    QuorumState.NOT_REACHED_BY_BROKERS: _FIND_OUT_WHY,
    QuorumState.OLD_VOTERS: _STOP_OLD_VOTERS,
}

STATES_LAST_KNOWN = "leaders and ISRs are shown as the brokers last knew them"
"""Of states that were read while no controller leads."""

FROM_DISKS = (
    "Read from disks: leaders and ISRs are those at the end of this metadata log, and logs end where their scans"
    " say. What runs now was not asked; another copy of the metadata log may be newer."
)
"""Of a cluster that is read from disks."""

_QUORUM = {
    QuorumState.NO_LEADER: "NO LEADER",
    QuorumState.UNREACHABLE: "UNREACHABLE",
    QuorumState.NOT_REACHED_BY_BROKERS: "NOT REACHED BY BROKERS",
    QuorumState.CANNOT_COMMIT: "CANNOT COMMIT",
    QuorumState.LED_BY_NON_VOTER: "LED BY A NON-VOTER",
    QuorumState.OLD_VOTERS: "LED BY OLD VOTERS",
    QuorumState.UNKNOWN: "unknown",
    QuorumState.NOT_ASKED: "not asked",
}
_SEPARATOR = " · "
_MORE = "…"


class _Part(NamedTuple):
    """One finding, and the shorter ``texts`` that stand in for it where there is no room for it, each shorter than
    the one before; ``rank`` 0 is the last to be shortened and left out.
    """

    rank: int
    texts: tuple[str, ...]

    @property
    def text(self) -> str:
        return self.texts[0]


def _part(rank: int, *texts: str) -> _Part:
    return _Part(rank, texts)


def health_line(health: ClusterHealth, caveat: str = "", width: int | None = None) -> str:
    """Such as ``quorum NO LEADER · broker 3 down · 1 disk failed · 4 offline``.

    ``caveat`` says why the states may not be those of now ("picture 45 s old"): it stands first, and nothing is
    called well then. With a ``width`` in columns, findings are shortened, the least important first, and none is
    left out before all are short; what was left out is marked by "…".
    """
    parts = [*([_part(0, caveat)] if caveat else ()), *_parts(health)]
    if count := health.under_replicated:
        more = "more " if health.offline or health.under_min_isr else ""
        text = f"{count:,} {more}under-replicated"
        parts.append(_part(7, text, f"{count:,} {more}under-repl."))
    if not caveat and health.current and health.offline == 0:
        parts.append(_none_offline(health))
    if width is None:
        return _SEPARATOR.join(part.text for part in parts)
    return _within(parts, width)


def health_lines(health: ClusterHealth, *, advised: bool = False) -> Iterator[str]:
    """The head of a report: the line, and what a lost quorum means for everything below it. ``advised``: what to do
    first is said below.
    """
    yield health_line(health)
    why = stale_reason(health)
    if health.from_disks:
        yield FROM_DISKS
    elif why:
        yield f"{why[0].upper()}{why[1:]}: {stale_advice(health, '' if advised else 'ktriage quorum status')}"


def as_of(end_ms: int) -> str:
    """When the metadata log ends that the cluster is read from (ms since 1970)."""
    return f"as of {simulated_time(end_ms) or f'{utc_text(end_ms)} UTC'}"


def stale_reason(health: ClusterHealth) -> str:
    """Why the partition states are old, and what is offline now is not known; "" if they are not known to be."""
    if health.cut_off is not None:
        return f"broker {health.cut_off} is cut off from the controllers"
    return _STALE.get(health.quorum.state, "")


def stale_by_quorum(quorum: Quorum | QuorumWithoutLeader | Unknown | None, asked: int = -1) -> str:
    """The same by the quorum alone as it is now, and by whether ``asked``, the broker that described the
    partitions, is cut off (-1: not known).
    """
    return stale_reason(ClusterHealth(quorum_finding(quorum), cut_off=cut_off(quorum, asked)))


def stale_advice(health: ClusterHealth, where: str) -> str:
    """What old partition states mean, and what to do first; "" if they are not known to be old. ``where``: what
    shows the quorum; "" where what to do first is said beside it.
    """
    if not stale_reason(health):
        return ""
    if health.cut_off is not None:
        return _OTHERS
    means, do = _MEANS.get(health.quorum.state, _MEND_QUORUM)
    return f"{means}{do.format(where=where) if where else ''}"


def leader_unknown_text(why: Unknown) -> str:
    """What is said of a partition that has a leader which the listener that was asked does not reach."""
    return f"{printable(why.detail)}; it is not offline and nothing is elected for it"


def hidden_topic_texts(hidden: Sequence[str], not_compared: Unknown | None) -> Iterator[str]:
    """Why there are, or may be, topics that this caller does not see; nothing where it sees all.

    ``hidden`` and ``not_compared`` as in Partitions.
    """
    if hidden:
        names = ", ".join(hidden[:5]) + (", …" if len(hidden) > 5 else "")
        yield f"{counted(len(hidden), 'topic')} may not be seen (needs DESCRIBE on topic {printable(names)})"
    if not_compared is not None:
        yield (
            f"whether some partitions are hidden from this caller is unknown ({printable(str(not_compared))})"
        )


def not_listed_text(brokers: Sequence[int]) -> str:
    """The end of a count of failed log dirs: what it leaves out; "" where every broker listed its own."""
    if not brokers:
        return ""
    if len(brokers) > FEW:
        return f", not known of {counted(len(brokers), 'broker')}"
    return f", not known of {'broker' if len(brokers) == 1 else 'brokers'} {', '.join(map(str, brokers))}"


def quorum_badge(quorum: QuorumFinding) -> str:
    """What is wrong with the quorum in a word or two, "" where nothing is."""
    if quorum.state is QuorumState.LED:
        if not quorum.dead_voters:
            return ""
        down = len(quorum.dead_voters) - len(quorum.new_disks)
        return f"{down} down" if down else f"{len(quorum.new_disks)} no vote"
    # What was not asked is no trouble yet.
    return "" if quorum.state is QuorumState.NOT_ASKED else _QUORUM[quorum.state]


def brokers_badge(health: ClusterHealth) -> str:
    """How many brokers are not up, or not reached, in a word or two, "" where none is."""
    found = {
        "down": health.brokers_down,
        "fenced": health.brokers_fenced,
        "not reached": health.brokers_unreached,
    }
    counts = {how: len(brokers) for how, brokers in found.items() if brokers}
    if not counts:
        return ""
    several = "in trouble" if health.brokers_unreached else "not up"
    how = next(iter(counts)) if len(counts) == 1 else several
    return f"{sum(counts.values()):,} {how}"


def _within(parts: list[_Part], width: int) -> str:
    shown: list[_Part] = list(parts)
    more: tuple[str, ...] = ()
    while True:
        for texts in _shortened(shown):
            line = _SEPARATOR.join((*texts, *more))
            if len(line) <= width:
                return line
        if len(shown) == 1:
            return line[: max(width - 1, 0)] + _MORE
        shown.remove(max(shown, key=lambda part: part.rank))
        more = (_MORE,)


def _shortened(parts: Sequence[_Part]) -> Iterator[list[str]]:
    """The findings whole, then one after the other in fewer words, what matters least first."""
    used = [0] * len(parts)
    yield [part.text for part in parts]
    for length in range(1, max(len(part.texts) for part in parts)):
        for at in sorted(range(len(parts)), key=lambda at: -parts[at].rank):
            if length < len(parts[at].texts):
                used[at] = length
                yield [part.texts[short] for part, short in zip(parts, used, strict=True)]


def _none_offline(health: ClusterHealth) -> _Part:
    if health.sees_all:
        return _part(2, "no partition offline", "0 offline")
    return _part(2, "no partition seen offline", "0 seen offline")


def _parts(health: ClusterHealth) -> Iterator[_Part]:  # one finding after the other
    yield from _quorum_parts(health)
    if health.cut_off is not None:
        yield _part(0, f"old metadata, of broker {health.cut_off}", "old metadata")
    yield from _controller_parts(health)
    if health.brokers_down:
        yield _named(health.brokers_down, "broker", "down", 3)
    if health.brokers_fenced:
        yield _named(health.brokers_fenced, "broker", "fenced", 4)
    if health.brokers_unreached:
        yield _unreached(health)
    yield from _disk_parts(health)
    if health.offline:
        yield _part(1, f"{health.offline:,} offline{' if nothing runs' if health.from_disks else ''}")
    yield from _lost_parts(health)
    if health.disks_to_read:
        yield _unread(health.disks_to_read, away={*health.brokers_down, *health.brokers_fenced})
    if health.self_electing:
        yield _self_electing(len(health.self_electing))
    if health.under_min_isr:
        yield _part(6, f"{health.under_min_isr:,} under min ISR")
    if health.unreachable_leaders:
        yield _part(7, f"{health.unreachable_leaders:,} with a leader not on this listener")


def _controller_parts(health: ClusterHealth) -> Iterator[_Part]:
    quorum = health.quorum
    down = (voter for voter in quorum.dead_voters if voter not in quorum.new_disks)
    dead: tuple[int | str, ...] = (*down, *quorum.dead_addresses)
    if dead:
        # Only a leader tells which of the controllers are voters.
        member = "voter" if quorum.state in (QuorumState.LED, QuorumState.CANNOT_COMMIT) else "controller"
        yield _named(dead, member, "down", 5)
    if quorum.new_disks:
        yield _named(quorum.new_disks, "controller", "without a vote", 5, short="no vote")
    if quorum.without_metadata:
        bare = _named(quorum.without_metadata, "controller", "without metadata", 5)
        yield bare._replace(texts=(bare.text, f"{ids(quorum.without_metadata)} no metadata"))
    if health.votes_wanted:
        no_failure = "quorum tolerates no failure"
        yield _part(5, f"{no_failure}: {ids(health.votes_wanted)} without a vote", no_failure)


def _lost_parts(health: ClusterHealth) -> Iterator[_Part]:
    if health.empty_on_leader:
        yield _part(1, f"{health.empty_on_leader:,} EMPTY on the leader", f"{health.empty_on_leader:,} EMPTY")
    if health.lost_offsets:
        partitions = counted(health.lost_offsets, "partition")
        yield _part(1, f"{partitions} LOST offsets", f"{health.lost_offsets:,} LOST")


def _quorum_parts(health: ClusterHealth) -> Iterator[_Part]:
    state = health.quorum.state
    if health.recorded_ms is not None:
        yield _part(0, f"BUNDLE, {as_of(health.recorded_ms)}, nothing asked now", "BUNDLE")
    if health.second_quorum:
        yield _part(0, "2 QUORUMS")
    if health.disks_end_ms is not None:
        yield _part(0, f"FROM DISKS, {as_of(health.disks_end_ms)}, nothing asked", "FROM DISKS")
    elif state in _QUORUM:
        not_known = state in (QuorumState.UNKNOWN, QuorumState.NOT_ASKED)
        yield _part(8 if not_known else 0, f"quorum {_QUORUM[state]}")


def _disk_parts(health: ClusterHealth) -> Iterator[_Part]:
    if health.failed_dirs:
        yield _part(2, f"{counted(health.failed_dirs, 'disk')} failed")
    if health.dirs_hidden:
        count = counted(len(health.dirs_hidden), "broker")
        yield _part(7, f"log dirs of {count} not known", f"dirs of {count} not known")


def _unread(brokers: Sequence[int], away: Collection[int]) -> _Part:
    """Of a broker that is not ``away`` the disk failed: its start is not waited for."""
    disks = counted(len(brokers), "disk")
    if len(brokers) > FEW:
        return _part(1, f"read {disks} before start", f"read {disks} first")
    named = f"read {'disk' if len(brokers) == 1 else 'disks'} of {ids(brokers)} first"
    if not set(brokers).issubset(away):
        return _part(1, named, f"read {disks} first")
    return _part(1, unread_in_short(brokers), named, f"read {disks} first")


def _unreached(health: ClusterHealth) -> _Part:
    """Only the controller tells whether a broker that does not answer from here is up."""
    part = _named(health.brokers_unreached, "broker", "not reached", 4)
    if health.quorum.state is not QuorumState.LED:
        return part
    they = "it is" if len(health.brokers_unreached) == 1 else "they are"
    return part._replace(texts=(f"{part.text} from here; the controller says that {they} up", *part.texts))


def _self_electing(count: int) -> _Part:
    brief = f"{counted(count, 'topic')} {'elects' if count == 1 else 'elect'} uncleanly"
    return _part(4, f"{brief} by {'itself' if count == 1 else 'themselves'}", brief)


def _named(members: tuple[int | str, ...], what: str, how: str, rank: int, short: str = "") -> _Part:
    """``short`` says ``how`` in fewer words; "" for none."""
    counts = [f"{counted(len(members), what)} {said}" for said in (how, short) if said]
    if len(members) > FEW:
        return _part(rank, *counts)
    names = f"{what if len(members) == 1 else f'{what}s'} {', '.join(map(str, members))}"
    named = [f"{names} {said}" for said in (how, short) if said]
    return _part(rank, *named, *(() if len(members) == 1 else counts[-1:]))
