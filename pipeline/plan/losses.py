"""What each candidate would destroy, in SQL: :mod:`recovery.loss` over nested replicas.

Most partitions' replicas are equal as far as they are known, and lose nothing: only the others are worked out.
"""

from __future__ import annotations

from pipeline.plan.sql import NO_BROKERS, NO_SPANS, clip, fresh, length, let, span, union

KNOWN = "{r}.unknown IS NULL AND {r}.lineage_unknown IS NULL"


def known(replica: str) -> str:
    """Whether the replica told its log with its lineage."""
    return KNOWN.format(r=replica)


def uniform(replicas: str) -> str:
    """Whether all replicas whose lineage is known are equal: then nothing is lost that is known of."""
    r, k, first = fresh("r"), fresh("k"), fresh("f")
    same = (
        f"{r}.log_start = {first}.log_start AND {r}.last_epoch = {first}.last_epoch"
        f" AND {r}.floor = {first}.floor AND {r}.spans = {first}.spans"
    )
    equal = f"transform(array({k}[0]), {first} -> forall({k}, {r} -> {same}))[0]"
    return f"transform(array(filter({replicas}, {r} -> {known(r)})), {k} -> size({k}) < 2 OR {equal})[0]"


def silent(replicas: str, chosen: str) -> str:
    """The replicas that hold nobody knows what, beside ``chosen``."""
    r = fresh("r")
    doubtful = f"{r}.broker <> {chosen}.broker AND ({chosen}.lineage_unknown IS NOT NULL OR NOT ({known(r)}))"
    return f"transform(filter({replicas}, {r} -> {doubtful}), {r} -> {r}.broker)"


def nothing_lost(replicas: str, chosen: str) -> str:
    """The loss of a candidate where all that is known is equal."""
    unanswered = let("u", silent(replicas, chosen))
    return unanswered.within(_loss("0L", "0L", NO_SPANS, NO_SPANS, unanswered.name))


def lost(replicas: str, chosen: str) -> str:
    """The loss of a candidate, worked out from the lineages (:func:`recovery.loss.loss`)."""
    unanswered = let("u", silent(replicas, chosen))
    pieces = let("p", _pieces(replicas, chosen))
    merged = let("m", union(_spans(pieces.name, "{p}.sure")))
    likely = union(_spans(pieces.name, "{p}.sure OR {p}.epoch <> -1"))
    nameless = length(_spans(pieces.name, "NOT {p}.sure AND {p}.epoch = -1"))
    at_most = f"{length(likely)} + {nameless}"
    tail = clip(merged.name, f"{chosen}.log_start", f"{2**63 - 1}L")
    head = clip(merged.name, "0L", f"{chosen}.log_start")
    whole = _loss(length(merged.name), at_most, tail, head, unanswered.name)
    return unanswered.within(pieces.within(merged.within(whole)))


def _loss(at_least: str, at_most: str, tail: str, head: str, unanswered: str) -> str:
    bound = f"CASE WHEN size({unanswered}) = 0 THEN {at_most} END"
    return (
        f"named_struct('at_least', {at_least}, 'at_most', {bound}, 'tail', {tail}, 'head', {head},"
        f" 'unanswered', coalesce({unanswered}, {NO_BROKERS}))"
    )


def _spans(pieces: str, condition: str) -> str:
    p = fresh("p")
    wanted = f"filter({pieces}, {p} -> {condition.format(p=p)})"
    return f"transform({wanted}, {p} -> {span(f'{p}.epoch', f'{p}.start', f'{p}.end')})"


def _pieces(replicas: str, chosen: str) -> str:
    """What the other replicas hold and ``chosen`` does not; ``sure``: certainly, else perhaps."""
    r = fresh("r")
    differs = (
        f"{r}.broker <> {chosen}.broker AND {chosen}.lineage_unknown IS NULL AND {known(r)}"
        f" AND NOT ({r}.log_start = {chosen}.log_start AND {r}.last_epoch = {chosen}.last_epoch"
        f" AND {r}.floor = {chosen}.floor AND {r}.spans = {chosen}.spans)"
    )
    blind = span("-1", f"{r}.log_start", f"{r}.floor")
    held = let(
        "h", f"concat(CASE WHEN {r}.log_start < {r}.floor THEN array({blind}) ELSE {NO_SPANS} END, {r}.spans)"
    )
    parting = let("d", _divergence(r, chosen))
    told = (
        f"CASE WHEN {parting.name} IS NOT NULL THEN {_behind(r, chosen, held.name, parting.name)}"
        f" ELSE {_apart(r, chosen, held.name)} END"
    )
    return f"flatten(transform(filter({replicas}, {r} -> {differs}), {r} -> {held.within(parting.within(told))}))"


def _divergence(log: str, chosen: str) -> str:
    """The offset from which they differ: in the highest epoch that both hold, the shorter one's end."""
    s, t = fresh("s"), fresh("t")
    common = f"filter({log}.spans, {t} -> {t}.epoch = {s}.epoch)"
    ends = f"transform({common}, {t} -> named_struct('epoch', {s}.epoch, 'end', least({s}.end, {t}.end)))"
    return f"array_max(flatten(transform({chosen}.spans, {s} -> {ends}))).end"


def _behind(log: str, chosen: str, held: str, parting: str) -> str:
    # Without its epoch a record may be one that another replica's span already counts.
    before = _tagged(clip(held, "0L", f"least({parting}, {chosen}.log_start)"), "{s}.epoch <> -1")
    after = _tagged(clip(f"{log}.spans", parting, f"{log}.log_end"), "true")
    return f"concat({before}, {after})"


def _apart(log: str, chosen: str, held: str) -> str:
    """No epoch in common as far down as was asked."""
    s = fresh("s")
    alone = f"array({s})"
    low, end = f"greatest({chosen}.log_start, {chosen}.floor)", f"{log}.log_end"
    older = (
        f"concat({_tagged(clip(alone, f'{chosen}.log_start', f'{chosen}.floor'), 'false')},"
        f" {_tagged(clip(alone, '0L', f'{chosen}.log_start'), 'true')},"
        f" {_tagged(clip(alone, low, end), 'true')})"
    )
    told = (
        f"CASE WHEN {s}.epoch = -1 THEN {_tagged(alone, 'false')}"
        f" WHEN {s}.epoch > {chosen}.last_epoch THEN {_tagged(alone, 'true')} ELSE {older} END"
    )
    return f"flatten(transform({held}, {s} -> {told}))"


def _tagged(spans: str, sure: str) -> str:
    s = fresh("s")
    return (
        f"transform({spans}, {s} -> named_struct('epoch', {s}.epoch, 'start', {s}.start, 'end', {s}.end,"
        f" 'sure', {sure.format(s=s)}))"
    )
