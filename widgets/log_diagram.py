"""The picture of a partition's logs: bars on one offset axis, and what each choice would cut off.

Epochs differ by pattern, by colour, and by their number wherever a bar is long enough to hold it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from recovery.acknowledged.verdict import Verdict
from recovery.loss import Loss, divergence, loss
from recovery.model import NO_EPOCH, Lineage, Replica, ReplicaLog, Survey, Unknown
from recovery.offset_axis import Axis, make_axis
from recovery.ranking import Ranking, rank
from recovery.wording.loss_text import harm_text, lost_ranges, short_loss
from recovery.wording.quantity_text import both, offset, printable
from recovery.wording.verdict_text import verdict_text
from widgets.loss_tone import last_epoch, loss_tone, verdict_tone
from widgets.text import Line, Piece, Tone, fit, fold, line, width_of

PATTERNS = "█▒░▓=#"
TONES = (Tone.EPOCH_0, Tone.EPOCH_1, Tone.EPOCH_2, Tone.EPOCH_3, Tone.EPOCH_4, Tone.EPOCH_5)
NOT_ASKED = "·"
UNKNOWN_LOSS = "?"
NOT_KNOWN = "?"
CUT = "x"
WATERMARK = "H"
LABEL = 12
LEAST_AXIS = 24


class Bar(NamedTuple):
    """One replica's log: its lineage's spans, or why they are not known."""

    broker: int
    log: ReplicaLog


def picture(survey: Survey, ranking: Ranking, width: int, room: int | None = None) -> list[Line]:
    """The logs, where they diverge, and what electing each of them would cut off, in ``width`` columns. Of a
    partition with a leader nothing is elected. Where ``room`` lines do not hold both, what each choice cuts off
    stands first: by that is decided.
    """
    bars = [Bar(r.broker, r.log) for r in survey.replicas if isinstance(r.log, ReplicaLog)]
    if not bars:
        return [line(Piece("no replica answered: there is nothing to draw", Tone.WARN))]
    choices = [_choice(survey, broker) for broker in _ranked(survey, ranking)]
    aside = max(len(text) for text in (*map(_end_text, bars), *(choice.label for choice in choices))) + 2
    axis = make_axis(_offsets(bars), max(width - LABEL - aside, LEAST_AXIS))
    scale = [*_scale(axis, width)]
    logs = [_bar_line(replica, axis, width) for replica in survey.replicas]
    logs += _parting(bars, [choice.broker for choice in choices], axis, width)
    if not survey.state.offline:
        return [*scale, *logs, *_legend(bars, width, unknown=False)]
    heading = line(
        Piece("WHAT EACH CHOICE CUTS OFF", Tone.HEAD), Piece(f"  best log first, {CUT} = lost", Tone.DIM)
    )
    cut_off = [heading, *(_choice_line(choice, axis, width) for choice in choices)]
    legend = _legend(bars, width, unknown=any(choice.lost.at_most is None for choice in choices))
    short = room is not None and len(scale) + len(logs) + len(cut_off) > room
    return [*scale, *(cut_off + logs if short else logs + cut_off), *legend]


def _ranked(survey: Survey, ranking: Ranking) -> list[int]:
    ranked = rank(survey, ranking)
    if isinstance(ranked, Unknown):
        return [r.broker for r in survey.replicas if isinstance(r.log, ReplicaLog)]
    return [candidate.broker for candidate in ranked]


def _offsets(bars: Sequence[Bar]) -> Iterator[int]:
    for _, log in bars:
        yield max(log.log_start_offset, 0)
        yield log.log_end_offset
        if log.high_watermark >= 0:
            yield min(log.high_watermark, log.log_end_offset)
        if isinstance(log.lineage, Lineage):
            for span in log.lineage.spans:
                yield span.start
                yield span.end


def _scale(axis: Axis, width: int) -> Iterator[Line]:
    """The offsets that matter most, as many as fit: the ends, then those nearest to the right."""
    if len(axis.points) < 2:
        yield line(Piece(fit("offset", LABEL), Tone.DIM), Piece(offset(axis.points[0]), Tone.DIM))
        return
    taken: dict[int, str] = {}
    room = width - LABEL
    free = [True] * room
    for index in (0, len(axis.points) - 1, *range(len(axis.points) - 2, 0, -1)):
        text, at = offset(axis.points[index]), axis.columns[index]
        if at + len(text) <= room and all(free[max(at - 1, 0) : at + len(text) + 1]):
            taken[at] = text
            free[at : at + len(text)] = [False] * len(text)
    row = _placed(taken, room)
    ticks = "".join("┬" if c in taken else "─" for c in range(axis.width + 1))
    yield line(Piece(fit("offset", LABEL), Tone.DIM), Piece(row.rstrip(), Tone.DIM))
    note = " not to scale" + (", older epochs drawn as one" if axis.skipped else "")
    yield line(
        Piece(" " * LABEL),
        Piece(ticks, Tone.DIM),
        Piece(note[: max(width - LABEL - len(ticks), 0)], Tone.DIM),
    )


def _placed(texts: dict[int, str], width: int) -> str:
    row = [" "] * width
    for at, text in texts.items():
        row[at : at + len(text)] = text
    return "".join(row)


def _bar_line(replica: Replica, axis: Axis, width: int) -> Line:
    label = Piece(fit(f"broker {replica.broker}", LABEL), Tone.STRONG)
    log = replica.log
    if isinstance(log, Unknown):
        return line(
            label, Piece(fit(f"{NOT_KNOWN} {printable(str(log))}", width - LABEL).rstrip(), Tone.WARN)
        )
    aside = f" {_end_text(Bar(replica.broker, log))}"
    return (label, *_bar(log, axis), Piece(fit(aside, width - LABEL - axis.width - 1).rstrip()))


def _end_text(bar: Bar) -> str:
    epoch = last_epoch(bar.log)
    last = "epoch ?" if epoch is None else "no records" if epoch == NO_EPOCH else f"epoch {epoch}"
    return f"end {offset(bar.log.log_end_offset)}, {last}"


def _bar(log: ReplicaLog, axis: Axis) -> list[Piece]:
    """The log's cells, one more than the axis has columns: the high watermark may stand behind the last record."""
    cells: list[tuple[str, Tone]] = [(" ", Tone.PLAIN)] * (axis.width + 1)
    for first, left, wide in axis.stretches():
        cells[left : left + wide] = [_cell(log, first)] * wide
    _number_epochs(log, cells, axis)
    if log.high_watermark >= 0:
        cells[axis.column(min(log.high_watermark, log.log_end_offset))] = (WATERMARK, Tone.MATCH)
    return _joined(cells)


def _cell(log: ReplicaLog, at: int) -> tuple[str, Tone]:
    if not max(log.log_start_offset, 0) <= at < log.log_end_offset:
        return " ", Tone.PLAIN
    if isinstance(log.lineage, Unknown):
        return NOT_KNOWN, Tone.WARN
    for span in log.lineage.spans:
        if span.start <= at < span.end:
            return epoch_style(span.epoch)
    return NOT_ASKED, Tone.DIM


def epoch_style(epoch: int) -> tuple[str, Tone]:
    """The pattern and the colour of an epoch."""
    return PATTERNS[epoch % len(PATTERNS)], TONES[epoch % len(TONES)]


def _number_epochs(log: ReplicaLog, cells: list[tuple[str, Tone]], axis: Axis) -> None:
    if isinstance(log.lineage, Unknown):
        return
    for span in log.lineage.spans:
        left, right = axis.column(span.start), axis.column(span.end)
        label = f" e{span.epoch} "
        if right - left >= len(label) + 2:
            at = left + (right - left - len(label)) // 2
            cells[at : at + len(label)] = [(char, Tone.STRONG) for char in label]


def _joined(cells: Sequence[tuple[str, Tone]]) -> list[Piece]:
    pieces: list[Piece] = []
    for char, tone in cells:
        if pieces and pieces[-1].tone is tone:
            pieces[-1] = Piece(pieces[-1].text + char, tone)
        else:
            pieces.append(Piece(char, tone))
    return pieces


def _parting(bars: Sequence[Bar], order: Sequence[int], axis: Axis, width: int) -> Iterator[Line]:
    """Where the others diverge from the best log, end before it, or continue after its end."""
    logs = {bar.broker: bar.log for bar in bars if isinstance(bar.log.lineage, Lineage)}
    best = next((broker for broker in order if broker in logs), None)
    if best is None or len(logs) < 2:
        return
    differences: dict[tuple[int, str], list[int]] = {}
    for broker, log in logs.items():
        if broker != best:
            found = _relation(logs[best], log)
            if found is not None:
                differences.setdefault(found, []).append(broker)
    if not differences:
        same = Piece("the logs that are known are the same up to their ends", Tone.GOOD)
        yield from fold((Piece(" " * LABEL), same), width, " " * LABEL)
    for (at, words), brokers in sorted(differences.items()):
        if len(brokers) > 1:
            words = words.replace("{0} ends", "{0} end").replace("{0} goes", "{0} go")  # noqa: PLW2901  # grammar
        sign = "▲ " if at >= 0 else ""
        text = sign + words.format(both(brokers), best, offset(at))
        column = min(axis.column(at), max(width - LABEL - len(text), 0)) if at >= 0 else 0
        yield from fold((Piece(" " * (LABEL + column)), Piece(text, Tone.STRONG)), width, " " * LABEL)


def _relation(best: ReplicaLog, other: ReplicaLog) -> tuple[int, str] | None:
    """The offset from which ``other`` differs from the best log (-1 not known), and how; None: nowhere."""
    if isinstance(best.lineage, Unknown) or isinstance(other.lineage, Unknown):
        return None
    at = divergence(best.lineage, other.lineage)
    if at is None:
        # An empty log differs from none.
        empty = other.log_end_offset == other.log_start_offset
        return None if empty else (-1, "{0} and {1} have no epoch in common, as far as was asked")
    if at >= max(best.log_end_offset, other.log_end_offset):
        return None
    words = "{0} and {1} part at {2}"
    if at >= other.log_end_offset:
        words = "{0} ends at {2}, {1} goes on"
    elif at >= best.log_end_offset:
        words = "{1} ends at {2}, {0} goes on"
    return at, words


class _Choice(NamedTuple):
    """What electing one replica would lose; ``why_not`` it cannot be, "" where it can."""

    broker: int
    lost: Loss
    epoch: int | None
    why_not: str

    @property
    def label(self) -> str:
        if self.why_not:
            return f"cannot: {self.why_not}"
        return "loss unknown" if self.lost.unknown else f"loses {short_loss(self.lost, self.epoch)}"


def _choice(survey: Survey, broker: int) -> _Choice:
    replica = survey.replica(broker)
    why_not = "" if replica is None or replica.electable else str(replica.standing)
    return _Choice(broker, loss(survey, broker), last_epoch(survey.log(broker)), why_not)


def _choice_line(choice: _Choice, axis: Axis, width: int) -> Line:
    label = Piece(fit(f"elect {choice.broker}", LABEL), Tone.DIM if choice.why_not else Tone.STRONG)
    # Where nobody knows what else is lost, it must not look like nothing.
    end = (" ", Tone.PLAIN) if choice.lost.at_most is not None else (UNKNOWN_LOSS, Tone.WARN)
    cells: list[tuple[str, Tone]] = [("·", Tone.DIM)] * axis.width + [end]
    for first, left, wide in axis.stretches():
        if any(span.start <= first < span.end for span in (*choice.lost.head, *choice.lost.tail)):
            cells[left : left + wide] = [(CUT, Tone.CUT)] * wide
    tone = Tone.BAD if choice.why_not else loss_tone(choice.lost, choice.epoch)
    return (
        label,
        *_joined(cells),
        Piece(fit(f" {choice.label}", width - LABEL - axis.width - 1).rstrip(), tone),
    )


def _legend(bars: Sequence[Bar], width: int, *, unknown: bool) -> list[Line]:
    """What the signs mean, folded between entries only."""
    spans = [span for _, log in bars if isinstance(log.lineage, Lineage) for span in log.lineage.spans]
    newest = sorted({span.epoch for span in spans if span.end > span.start})[-len(PATTERNS) :]
    entries = [(*epoch_style(epoch), f"epoch {epoch}") for epoch in newest]
    entries.append((WATERMARK, Tone.MATCH, "high watermark (a lower bound)"))
    if any(isinstance(log.lineage, Lineage) and log.lineage.floor > log.log_start_offset for _, log in bars):
        entries.append((NOT_ASKED, Tone.DIM, "epoch not asked"))
    if unknown:
        entries.append((UNKNOWN_LOSS, Tone.WARN, "may lose what a silent replica holds"))
    lines, row = [], [Piece(" " * LABEL)]
    for sign, tone, meaning in entries:
        text = f" {meaning}  "
        if width_of(row) + len(sign) + len(text.rstrip()) > width and len(row) > 1:
            lines.append(tuple(row))
            row = [Piece(" " * LABEL)]
        row += [Piece(sign, tone), Piece(text, Tone.DIM)]
    return [*lines, tuple(row)]


def losses(
    survey: Survey, ranking: Ranking, verdicts: Mapping[int, Verdict | None], width: int
) -> list[Line]:
    """What electing each replica that answered would lose, in words, best first; why nobody is suggested. Nothing
    for a partition with a leader.
    """
    lines: list[Line] = []
    if not survey.state.offline:
        return lines
    for broker in _ranked(survey, ranking):
        lost, epoch = loss(survey, broker), last_epoch(survey.log(broker))
        which = lost_ranges(lost)
        pieces = [
            Piece(f"elect {broker}: "),
            Piece(f"loses {harm_text(lost, epoch)}", loss_tone(lost, epoch)),
            Piece(which and f": {which}"),
        ]
        verdict = verdicts.get(broker)
        if verdict is not None:
            pieces += [Piece("; "), Piece(verdict_text(verdict), verdict_tone(verdict))]
        lines += fold(line(*pieces), width, "    ")
    refused = rank(survey, ranking)
    if lines and isinstance(refused, Unknown):
        lines += fold(line(Piece(f"no suggestion: {printable(str(refused))}", Tone.WARN)), width, "    ")
    return lines
