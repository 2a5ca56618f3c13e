"""What to do first, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from recovery.acknowledged.verdict import (
    AutomaticElection,
    AutomaticElectionKind,
    ConditionKind,
    DeciderKind,
    EvidenceKind,
    VerdictKind,
)
from recovery.advice import Advice, AdviceKind, FirstStep
from recovery.strategy import Decision, WhyNot
from recovery.wording.quantity_text import both, counted, either, exact_age, time_text
from recovery.wording.replica_text import still_writes_text
from recovery.wording.unread_disk_text import may_hold_text, read_before_start, stop_and_read
from recovery.wording.verdict_text import conditions_text, decider_text

ACKED = "every record that was acknowledged with acks=all"
ACCEPT_LOSS = "only if what stands above can never be done, accept the loss:"
"""Before a command that elects by the aggressive strategy."""
ACCEPT_UNCHECKED = "only if what stands above cannot be done, elect by what was not checked, and say why:"
"""Before a command with --accept-unchecked."""


def steps_lines(steps: Sequence[FirstStep], shown: int = 3, *, after: bool = False) -> Iterator[str]:
    """What to do, in order, a line each; of more than ``shown`` steps the rest is counted. What is warned of in two
    steps is said once. ``after``: something else was said to be done first.
    """
    said: set[str] = set()
    for number, step in enumerate(steps[:shown], 1):
        first = "Do first" if number == 1 and not after else "Only then" if step.only_then else "Then"
        where = f" ({step.example})" if step.partitions == 1 else ""
        sentences = [sentence for sentence in step_lines(step) if sentence not in said]
        said.update(sentences)
        if not sentences:
            continue  # the same, for partitions in another state
        yield f"{first}{where}: {' '.join(sentences)}"
    left = sum(step.partitions for step in steps[shown:])
    if left:
        yield f"Then: {_partitions(left)} in other ways (see the plan)."


def step_lines(step: FirstStep) -> tuple[str, ...]:
    """The step, then what would undo it: one sentence or two each."""
    return _worst_first(step.advice, step.partitions)


def advice_lines(advice: Advice) -> tuple[str, ...]:
    """As :func:`step_lines`, for one partition."""
    return _worst_first(advice, 1)


class ShortStep(NamedTuple):
    """A step in one sentence of at most 90 characters, and what would undo it or speaks against it, in sentences of
    at most 120; the reasons are in :func:`step_lines`.
    """

    action: str
    warnings: tuple[str, ...]
    instead: str = ""
    """What may be done instead of it."""


def short_steps_lines(steps: Sequence[FirstStep], shown: int) -> Iterator[str]:
    """What to do, in order, for a screen that has the reasons at a key; as :func:`steps_lines`."""
    said: set[str] = set()
    for number, step in enumerate(steps[:shown], 1):
        action, warnings, instead = short_step(step.advice, step.partitions)
        first = "Do first" if number == 1 else "Only then" if step.only_then else "Then"
        sentences = [action, *filter(None, (instead,)), *(f"! {warning}" for warning in warnings)]
        new = [sentence for sentence in sentences if sentence not in said]
        said.update(new)
        if new:
            yield f"{first}: {' '.join(new)}"
    left = sum(step.partitions for step in steps[shown:])
    if left:
        yield f"Then: {_partitions(left)} in other ways."


def short_step(advice: Advice, count: int) -> ShortStep:
    """What to do, and what not, for somebody who reads nothing else."""
    warnings = [*_short_failed(advice), *_short_before_start(advice), *_short_do_not_start(advice)]
    if advice.kind is AdviceKind.BRING_BACK:
        warnings += _short_return(advice)
    if advice.by_elr:
        warnings.append("Leave min.insync.replicas alone.")
    who = str(advice.instead[0]) if len(advice.instead) == 1 else "one that answered"
    instead = f"Or elect {who} (c): not fully checked." if advice.instead else ""
    return ShortStep(_SHORT[advice.kind](advice, count), tuple(warnings), instead)


def _few(brokers: Sequence[int], join: Callable[[Sequence[int]], str] = both) -> str:
    """``broker 3``; of many only how many."""
    if len(brokers) > _MOST_NAMED:
        return f"{len(brokers)} brokers"
    return f"broker {join(sorted(brokers))}"


_MOST_NAMED = 3


def _disk_of(brokers: Sequence[int]) -> str:
    return f"the disk{'' if len(brokers) == 1 else 's'} of {_few(brokers)}"


def _start_of(brokers: Sequence[int]) -> str:
    return "it starts" if len(brokers) == 1 else "they start"


def _get_a_leader(count: int) -> str:
    return "1 partition gets a leader" if count == 1 else f"{count:,} get a leader"


def _short_bring_back(advice: Advice, count: int) -> str:
    get = _get_a_leader(count)
    if advice.read_before:
        return f"Read {_disk_of(advice.read_before)} before the start: then {get}."
    disk = "its old disk" if len(advice.brokers) == 1 else "its old disk, each"
    return f"Start {_few(advice.brokers, either)} with {disk}: {get}."


def _short_return(advice: Advice) -> Iterator[str]:
    if advice.led_after:
        who = tuple(sorted({one.broker for one in advice.led_after}))
        later = "has records" if len(who) == 1 else "have records"
        yield f"{_few(who)[0].upper()}{_few(who)[1:]} led later and {later} that this cuts off: save them first."
    if advice.check_disk and not advice.was_shut_down and not advice.read_before:
        yield "If its host lost power, read its disk first: Kafka elects it whatever it lost."


def _short_elect(advice: Advice, _count: int) -> str:
    who = str(advice.brokers[0]) if len(advice.brokers) == 1 else "a leader"
    whole = [one.broker for one in advice.start_if_whole if one.broker not in advice.read_before]
    if whole:
        return f"Start {_few(whole)} if its host kept power; else elect {who} (c)."
    checked = advice.verdict is not None and advice.verdict.proved_none
    sure = (
        "no acknowledged record is lost"
        if checked
        else "it lacks none that was acknowledged, as far as known"
    )
    return f"Elect {who} (c): {sure}."


def _short_ask(advice: Advice, _count: int) -> str:
    if advice.read_before:
        return f"Read {_disk_of(advice.read_before)} before the start: it shows whose log is whole."
    return f"Start {_few(advice.brokers, either)} or read its disk: that shows whose log is whole."


def _short_compare(advice: Advice, _count: int) -> str:
    choose = "hoose one (c): what it lacks is saved first."
    if advice.brokers and not advice.read_before:
        return f"The logs differ. Start {_few(advice.brokers, either)}, or choose a leader (c)."
    return f"The logs differ. C{choose}"


def _short_choose(advice: Advice, _count: int) -> str:
    if advice.reassigning:
        return "A reassignment is in progress. See what an election loses (Enter) before you hold one."
    return "No log surely has all. Choose one (c): what it lacks is saved first."


_SHORT: Mapping[AdviceKind, Callable[[Advice, int], str]] = {
    AdviceKind.STOP_AND_READ: lambda a, _: (
        f"Stop {_few(a.brokers)} and read its disk: what it takes is lost later."
    ),
    AdviceKind.READ_FIRST: lambda a, _: (
        f"Read {_disk_of(a.brokers)} before {_start_of(a.brokers)}: the leader may lack some."
    ),
    AdviceKind.STOP_OR_MEND: lambda a, _: (
        f"Stop {_few(a.brokers)}: it still takes writes that an election cuts off."
        if not a.leads_again
        else f"Stop {_few(a.brokers)}, or mend its network: then it leads again."
    ),
    AdviceKind.ELECT: _short_elect,
    AdviceKind.UNFENCE: lambda a, _: f"Wait until {_few(a.brokers)} is unfenced: its log is better.",
    AdviceKind.BRING_BACK: _short_bring_back,
    AdviceKind.ASK: _short_ask,
    AdviceKind.GIVE_LOG: lambda _a, _: "Give ktriage the metadata log: it shows whose log is whole.",
    AdviceKind.READ_DISK: lambda a, _: f"Read {_disk_of(a.brokers)} first: no other replica is left.",
    AdviceKind.COMPARE: _short_compare,
    AdviceKind.CHOOSE: _short_choose,
}


def _short_failed(advice: Advice) -> Iterator[str]:
    failed = [one.broker for one in advice.keep_down if one.failed_disk]
    if failed:
        disk = _disk_of(failed)
        yield f"{disk[0].upper()}{disk[1:]} FAILED: choose a leader before it returns with an empty one."


def _short_before_start(advice: Advice) -> Iterator[str]:
    for what, brokers in (("Repair", advice.repair), ("Copy", advice.copy)):
        if brokers:
            yield f"{what} {_disk_of(brokers)} before the start (ktriage disk scan says how)."


def _short_do_not_start(advice: Advice) -> Iterator[str]:
    others = not_to_start_first(advice)
    if not others:
        return
    who = _few([one.broker for one in others], either)
    cutting = sorted({broker for one in others for broker in one.cuts_off})
    if cutting:
        yield f"Do not start {who} first: it leads at once and cuts off what {_few(cutting)} holds."
    else:
        yield f"Do not start {who} first: Kafka elects it at once, and its log may lack records."


def _worst_first(advice: Advice, count: int) -> tuple[str, ...]:
    """An election cures what it is warned of; else a failed disk is the worst, and said before what to wait for."""
    action, warnings = _action(advice, count), tuple(_warnings(advice))
    failed = tuple(_failed(advice))
    if advice.kind is AdviceKind.ELECT:
        return (*_start_or_elect(advice, action), *failed, *warnings)
    failed += tuple(f"{demand} ({why})." for demand, _, why in _before_start(advice))
    match advice.kind:
        case AdviceKind.CHOOSE:
            return (*failed, *warnings, action)
        case _:
            return (*failed, action, *warnings)


def short_reason(decision: Decision) -> str:
    """Why nobody is elected, in a few words where the evidence speaks against it."""
    returning = () if decision.judged is None else decision.judged.automatic_elections
    failed = sorted(one.broker for one in returning if one.failed_disk)
    if decision.why_not is WhyNot.FAILED_DISK and failed:
        disks = f"broker {failed[0]}'s disk" if len(failed) == 1 else f"the disks of brokers {both(failed)}"
        return f"read {disks} first"
    if decision.why_not is WhyNot.BRANCHES:
        return "each choice cuts off a branch"
    return decision.reason


def _action(advice: Advice, count: int) -> str:
    return _ACTIONS[advice.kind](advice, count)


def _unfence(advice: Advice, count: int) -> str:
    better = f"for {_partitions(count)} its log is better"
    return f"Wait until broker {both(advice.brokers)} is unfenced: {better}. Then plan again."


def _ask(advice: Advice, count: int) -> str:
    start = (
        f"Start broker {either(advice.brokers)}, here or with its disk on another host, or read its disk (ktriage"
        " disk scan)"
    )
    if read := advice.read_before:
        start = f"Read {_disks(read)} (ktriage disk scan) before {_they_are(read)} started"
    if also := _also_read(advice):
        return (
            f"{start}, and read {_disks(also)} too: for {_partitions(count)} only all of these logs together decide"
            f" who holds {ACKED}.{_instead(advice)}"
        )
    return f"{start}: for {_partitions(count)} its log decides who holds {ACKED}.{_instead(advice)}"


def _also_read(advice: Advice) -> tuple[int, ...]:
    """Other brokers whose logs a verdict needs, and that are not started: they led after an unclean election."""
    needed = {
        broker
        for decider in advice.decided_by
        if decider.kind is DeciderKind.BROKER_DISK and decider.every
        for broker in decider.brokers
    }
    down = {one.broker for one in advice.keep_down if one.cuts_off}
    return tuple(sorted((needed & down).difference(advice.brokers)))


def _choose(advice: Advice, count: int) -> str:
    if advice.reassigning:
        return (
            f"A reassignment of {_partitions(count)} is in progress, and nobody's return is known to end it. Look"
            " what an unclean election loses before you hold one (ktriage replicas): it elects the first live"
            " replica of the assignment, whatever its log lacks."
        )
    return f"No replica of {_partitions(count)} is proved to hold {ACKED}.{_decide(advice)}{_instead(advice)}"


def _read_disk(advice: Advice, count: int) -> str:
    whose, one = _of(list(advice.brokers))[0], len(advice.brokers) == 1
    left = f"{whose} FAILED, and no other replica of {_partitions(count)} is left"
    it, it_is = ("it", "it is") if one else ("them", "they are")
    return f"{left}: read {it} (ktriage disk scan) before {it_is} replaced, or the records are gone."


def _unchecked(advice: Advice) -> str:
    """What it rests on that nothing speaks against, and that was not checked."""
    conditions = () if advice.verdict is None else advice.verdict.conditions
    unchecked = tuple(condition for condition in conditions if not condition.doubtful)
    return f", {conditions_text(unchecked)} (not checked)" if unchecked else ""


def _unless(advice: Advice) -> str:
    """What was seen that makes it uncertain."""
    conditions = () if advice.verdict is None else advice.verdict.conditions
    doubtful = [condition for condition in conditions if condition.doubtful]
    unflushed = [one for one in doubtful if one.kind is ConditionKind.RECORDS_KEPT]
    if unflushed:
        brokers = sorted({broker for one in unflushed for broker in one.brokers})
        return f", unless the host of broker {either(brokers)} lost power before it restarted"
    return ", unless compaction removed some from its log" if doubtful else ""


def _compare(advice: Advice, count: int) -> str:
    """A rescue reads what the chosen leader lacks, and so needs the choice."""
    whose = "The" if count == 1 else f"For {count:,} partitions the"
    lacks = f"{whose} best-ranked log lacks records that were committed: each choice cuts off a branch."
    choose = "hoose a leader, and read what it cuts off before it is elected (ktriage rescue)."
    if advice.brokers and not advice.read_before:
        return f"{lacks} {_bring(advice)}, or c{choose}"
    return f"{lacks} C{choose}"


def _elect(advice: Advice, count: int) -> str:
    one = advice.brokers[0] if len(advice.brokers) == 1 else None
    who = f"Elect {one} now" if one is not None else "Elect now"
    holds = "it holds" if count == 1 else f"{count:,} partitions have a replica that holds"
    if count > 1 and one is not None:
        holds = f"for {count:,} partitions it holds"
    return f"{who}: {holds} {ACKED}{_unless(advice)}{_unchecked(advice)}."


def _start_or_elect(advice: Advice, elect: str) -> Iterator[str]:
    """The election, or first the start of who may hold what nobody acknowledged with acks=all."""
    brokers = sorted(one.broker for one in advice.start_if_whole)
    first = [broker for broker in brokers if broker not in advice.read_before]
    if first:
        one = len(first) == 1
        # Of several that led different partitions last, each may cut off what another one took.
        disks = ", with its disk " if one else ", with their disks "
        ready = " and ".join(f"{done} ({why})" for _, done, why in _before_start(advice))
        outcome = (
            "then nothing at all is lost"
            if one and advice.keeps_all and not ready
            else f"{'its log' if one else 'their logs'} may hold more"
        )
        start = f"start {'it' if one else 'them'} first{disks + ready if ready else ''}"
        yield f"If the host of broker {both(first)} kept power, {start}: {outcome}."
        yield f"If not, or if nobody knows, {elect[0].lower()}{elect[1:]}"
    else:
        yield elect
    if not brokers:
        return
    alone = tuple(_led_alone(advice))
    yield from alone or (f"What broker {both(brokers)} may have taken alone with acks=1 is on no other log.",)
    then = "Then r" if first else "R"
    yield f"{then}ead {_disks(brokers)} before {_they_are(brokers)} started (ktriage disk scan)."


def _disks(brokers: Sequence[int]) -> str:
    return f"the disk{'' if len(brokers) == 1 else 's'} of broker {both(sorted(brokers))}"


def _they_are(brokers: Sequence[int]) -> str:
    return "it is" if len(brokers) == 1 else "they are"


def _led_alone(advice: Advice) -> Iterator[str]:
    """``Broker 1 led alone from … to … (99 s): what it took then with acks=1 is on no other log.``"""
    found = () if advice.verdict is None else advice.verdict.evidence
    stints = [one for one in found if one.kind is EvidenceKind.LED_ALONE]
    for brokers in dict.fromkeys(one.brokers for one in stints):
        times = [(one.since_ms or 0, one.until_ms or 0) for one in stints if one.brokers == brokers]
        acks_all = any(one.acks_all for one in stints if one.brokers == brokers)
        since, until = times[-1]
        more = f", and {counted(len(times) - 1, 'time')} before" if len(times) > 1 else ""
        who = (
            f"Broker {brokers[0]} led alone"
            if len(brokers) == 1
            else f"Brokers {both(brokers)} went on alone"
        )
        yield (
            f"{who} from {time_text(since)} to {time_text(until)} ({exact_age((until - since) / 1000)}){more}: what"
            f" {'it' if len(brokers) == 1 else 'they'} took then{'' if acks_all else ' with acks=1'} is on no"
            " other log."
        )


def _instead(advice: Advice) -> str:
    """Whom to elect all the same, and on what that rests."""
    log = (
        " The metadata log may decide it at once: give this user CLUSTER_ACTION and a way to the active controller,"
        " or a copy of that log (--metadata-dir)."
        if any(one.kind is DeciderKind.METADATA_LOG for one in advice.decided_by)
        and advice.kind is not AdviceKind.GIVE_LOG
        else ""
    )
    if not advice.instead:
        return log
    one = len(advice.instead) == 1
    who, holds = (str(advice.instead[0]), "it holds") if one else ("one that answered", "each of these holds")
    lacks = "" if advice.verdict is None or not advice.verdict.proved_none else ", and may lack others"
    rests = f"{_unless(advice)}{_unchecked(advice)}{lacks}"
    return f"{log} Or elect {who} now (--accept-unchecked): {holds} {ACKED}{rests}."


def _give_log(advice: Advice, count: int) -> str:
    return (
        "Give the metadata log (CLUSTER_ACTION for this user and a way to the active controller, or a copy of that"
        f" log with --metadata-dir): for {_partitions(count)} it decides who holds {ACKED}.{_instead(advice)}"
    )


def _bring(advice: Advice) -> str:
    return f"Bring broker {either(advice.brokers)} back with its disk intact, here or on another host"


def _bring_back(advice: Advice, count: int) -> str:
    get = "the partition then gets" if count == 1 else f"{count:,} partitions then get"
    read = f"Read {_disks(advice.read_before)} first (ktriage disk scan). " if advice.read_before else ""
    # Nobody else is in the ELR: killed, it leaves that too, and is elected as the last known leader.
    by_last_known = advice.by_elr and advice.check_disk and not advice.was_shut_down
    how = " (after a kill by an unclean election)" if by_last_known else " without an unclean election"
    text = f"{read}{_bring(advice)}: {get} a leader{how}"
    if advice.reassigning:
        text += ", which a reassignment in progress needs"
    if advice.was_shut_down:
        one = len(advice.brokers) == 1
        stopped = f"{'it was' if one else 'they were'} shut down when last seen"
        if advice.keeps_all:
            text += ", and nothing at all is lost"
        elif advice.keeps_acked:
            text += ", and no record that was acknowledged with acks=all is lost"
        return f"{text} ({stopped}).{_later_leaders(advice, count)}{_instead(advice)}"
    if not advice.check_disk:
        return f"{text} (for certain only after a clean shutdown).{_later_leaders(advice, count)}{_instead(advice)}"
    # A member of the ELR: after a kill only as the last known leader, by an unclean election of the controller.
    unchecked = "read its disk first (ktriage disk scan): Kafka elects it whatever it lost"
    return (
        f"{text}. If its host lost power, or nobody knows, {unchecked}."
        f"{_later_leaders(advice, count)}{_instead(advice)}"
    )


def _later_leaders(advice: Advice, count: int) -> str:
    """Whose records the return cuts off, and how to keep them."""
    if not advice.led_after:
        return ""
    who, back = tuple(sorted({one.broker for one in advice.led_after})), either(advice.brokers)
    one = len(who) == 1
    led = f"{'Broker' if one else 'Brokers'} {both(who)} led after broker {back} had left the ISR"
    if count > 1:
        led += ", of one or more of these partitions"
    took = f"{'it' if one else 'they'} took then{' with acks=1' if advice.keeps_acked else ''}"
    dead = tuple(sorted({one.broker for one in advice.led_after if one.failed_disk}))
    known = tuple(sorted({one.broker for one in advice.led_after if one.log_known}))
    silent = tuple(broker for broker in who if broker not in known + dead)
    steps = []
    if known:
        steps.append(f"read the log of broker {both(known)} first (ktriage rescue read)")
    if silent:
        hosts = "its host" if len(silent) == 1 else "their hosts"
        steps.append(f"start broker {both(silent)} first if {hosts} kept power")
    if lost := tuple(broker for broker in dead if broker not in known):
        steps.append(f"read the disk of broker {both(lost)} first (ktriage disk scan)")
    return f" {led}: what {took} is cut off when broker {back} leads; {', and '.join(steps)}."


def _read_first(advice: Advice, count: int) -> str:
    do = read_before_start(advice.brokers)
    return f"{do[0].upper()}{do[1:]}: {may_hold_text(advice.brokers, advice.missed, count)}."


def _stop_or_mend(advice: Advice, count: int) -> str:
    one = len(advice.brokers) == 1
    whose = (
        f"Stop the process of broker {advice.brokers[0]}" if one else f"Stop brokers {both(advice.brokers)}"
    )
    it, its, takes = ("it", "its", "takes") if one else ("they", "their", "take")
    if advice.read_before:
        do = stop_and_read(advice.brokers)
        return (
            f"{do[0].upper()}{do[1:]}: for {_partitions(count)} {it} still {'acts' if one else 'act'} as leader and"
            f" {takes} writes that an election will cut off. Then plan again."
        )
    text = (
        f"{whose}, or mend {its} network to the controllers: for {_partitions(count)} {it} still"
        f" {'acts' if one else 'act'} as leader and {takes} writes that an election will cut off."
    )
    if advice.leads_again:
        return (
            f"{text} Once {its} network is mended, the controller makes {it if one else 'them'}"
            " leader again, and no election is needed."
        )
    return f"{text} Then plan again."


def _stop_and_read(advice: Advice, count: int) -> str:
    do = stop_and_read(advice.brokers)
    of = "" if count == 1 else f" ({_partitions(count)})"
    return f"{do[0].upper()}{do[1:]}: {still_writes_text(advice.old_leaders, offline=False)}{of}."


_ACTIONS: Mapping[AdviceKind, Callable[[Advice, int], str]] = {
    AdviceKind.STOP_AND_READ: _stop_and_read,
    AdviceKind.READ_FIRST: _read_first,
    AdviceKind.STOP_OR_MEND: _stop_or_mend,
    AdviceKind.ELECT: _elect,
    AdviceKind.UNFENCE: _unfence,
    AdviceKind.BRING_BACK: _bring_back,
    AdviceKind.ASK: _ask,
    AdviceKind.GIVE_LOG: _give_log,
    AdviceKind.READ_DISK: _read_disk,
    AdviceKind.COMPARE: _compare,
    AdviceKind.CHOOSE: _choose,
}


def _failed(advice: Advice) -> Iterator[str]:
    failed = [one.broker for one in advice.keep_down if one.failed_disk]
    if failed:
        whose, it, returns = _of(failed)
        yield f"{whose} FAILED: choose a leader before {it} {returns} with an empty disk."


def _before_start(advice: Advice) -> Iterator[tuple[str, str, str]]:
    """What is to be done with the disks, as they were read, before their brokers start: the demand, what is done
    then, and why.
    """
    if advice.repair:
        one = len(advice.repair) == 1
        why = f"as read, {'the broker' if one else 'the brokers'} would not serve all of it, or end"
        demand = f"Repair {_disks(advice.repair)} before {_they_are(advice.repair)} started"
        yield demand, "repaired", f"ktriage disk scan says how; {why}"
    if advice.copy:
        demand = f"Copy {_disks(advice.copy)} before {_they_are(advice.copy)} started"
        yield demand, "copied", "as read, the start deletes what ktriage disk scan names"


def not_to_start_first(advice: Advice) -> list[AutomaticElection]:
    """Whom not to start before the step is done, beside brokers whose disks failed."""
    return [one for one in advice.keep_down if not one.failed_disk]


def do_not_start(advice: Advice) -> Iterator[str]:
    """One sentence that says so, and why; nothing where there is nobody."""
    others = not_to_start_first(advice)
    if others and advice.kind in (AdviceKind.ELECT, AdviceKind.COMPARE):
        yield f"Do not start broker {either([one.broker for one in others])} first: {_why(others)}."
    elif others:
        yield f"Do not start broker {either([one.broker for one in others])} before: {_why(others)}."


def _warnings(advice: Advice) -> Iterator[str]:
    yield from do_not_start(advice)
    if advice.by_elr:
        yield "Do not change min.insync.replicas before: that empties the ELR."


def _of(brokers: list[int]) -> tuple[str, str, str]:
    if len(brokers) == 1:
        return f"Broker {brokers[0]}'s disk", "it", "returns"
    return f"The disks of brokers {both(brokers)}", "they", "return"


def _why(others: list[AutomaticElection]) -> str:
    cutting = sorted({broker for one in others for broker in one.cuts_off})
    if cutting:
        return (
            "it led after an unclean election, and its return cuts off what broker"
            f" {both(cutting)} {'holds' if len(cutting) == 1 else 'hold'} from before"
        )
    verdicts = [one.verdict for one in others if one.verdict is not None]
    # Where the logs are known, whether a host lost power is no question any more.
    if len(verdicts) == len(others):
        if all(verdict.kind is VerdictKind.SOME for verdict in verdicts):
            return "Kafka elects it at once, and its log, as it was read, lacks acknowledged records"
        return "Kafka elects it at once, and its log, as it was read, may lack acknowledged records"
    kinds = {one.kind for one in others}
    if AutomaticElectionKind.UNCLEAN_TOPIC in kinds:
        return "with unclean.leader.election.enable Kafka elects whoever returns first, whatever it lacks"
    if any(not one.checks_records for one in others):
        return "Kafka elects it at once, and it may be shorter if its host lost power"
    return "Kafka elects it at once, and it is not known what its log holds"


def _decide(advice: Advice) -> str:
    texts = list(dict.fromkeys(decider_text(decider) for decider in advice.decided_by))
    return f" What would decide it: {either(texts)}." if texts else ""


def _partitions(count: int) -> str:
    return "this partition" if count == 1 else f"{count:,} partitions"
