"""Spark's queries for a history: from the rows of snapshots to incidents, and from observations to events.

A snapshot that is used is a moment: a ``number`` in its cluster, a time, and a segment, which is a time without
gaps (:mod:`pipeline.history.timeline`). What a snapshot says of a partition for one kind of incident is ``bad``:
true, false, or null where it does not show it.
"""

from __future__ import annotations

KINDS = ("offline", "under min ISR", "ELR in use")
"""No leader; a leader and an ISR of fewer replicas than min ISR; a leader and somebody in the ELR."""

STATES = """
SELECT cluster_id, topic, topic_id, partition, number, number AS last_number, segment, known_before, has_full,
    coalesce(deleted, false) AS gone, leader, CASE
        WHEN coalesce(topic, '') = '' OR coalesce(partition, -1) < 0 THEN {nameless}
        WHEN gone THEN NULL
        WHEN coalesce(leader, -2) < -1 THEN {no_leader}
        -- Null where the ISR or one of its members is: compiled, where the functions of lists are interpreted.
        WHEN array_contains(isr, -2147483648) IS NULL THEN {broken_isr}
        END AS flaw,
    int(NULL) AS of_kind,
    IF(flaw IS NULL, NOT gone AND leader = -1, NULL) AS bad_0,
    CASE WHEN flaw IS NOT NULL THEN NULL WHEN gone OR leader = -1 THEN false ELSE size(isr) < min_isr END AS bad_1,
    IF(flaw IS NULL, NOT gone AND leader <> -1 AND coalesce(size(elr), 0) > 0, NULL) AS bad_2,
    IF(bad_0 OR bad_1 OR bad_2, isr, NULL) AS isr, IF(bad_0 OR bad_1 OR bad_2, elr, NULL) AS elr
FROM {rows}
"""
"""Without WITH: Spark would not recognize what is persisted of it, because it numbers those of a whole query.
``rows``: what is read of a row, and its moment. ``flaw``: why the row is broken; null: it is not. ``bad_0`` and
so on: ``bad`` for each of :data:`KINDS`.
"""

CARRIED_LINES = """
SELECT cluster_id, topic, topic_id, partition, number, last_number, segment, known_before, has_full,
    false AS gone,    int(NULL) AS leader, string(NULL) AS flaw, of_kind, IF(of_kind = 0, carried, NULL) AS bad_0,
    IF(of_kind = 1, carried, NULL) AS bad_1, IF(of_kind = 2, carried, NULL) AS bad_2, isr, elr
FROM {rows}
"""
"""The states that an earlier run left, each of one kind, in the columns of :data:`STATES`."""

FLAWS = """
SELECT cluster_id, IF(copies > 1, replace({copies}, '{{}}', string(copies)), flaw) AS reason, sum(copies) AS rows
FROM {rows} WHERE kind IS NULL GROUP BY cluster_id, 2
"""
"""``copies``: so often the partition stands in the snapshot; nobody knows which row is right."""

PLACED = """
WITH placed AS (
    SELECT found.*, one.at AS began_at, one.newest, one.has_full, one.segment_end, other.to_newest,
        after.at AS after_at, after.before AS after_before, other.shown_until,
        next_number IS NOT NULL AS follows, coalesce(next_segment = found.segment, false) AS same,
        other.next_full IS NOT NULL AND NOT coalesce(
            next_segment = found.segment AND next_number <= other.next_full, false) AS vanished,
        -- Of a topic that was made since, the snapshot before cannot show anything.
        IF(IF(coalesce(previous_segment = found.segment, false),
            previous_bad IS NOT NULL OR remade, found.known_before), one.before, NULL) AS sound_at
    FROM {rows} AS found
    JOIN {moments} AS one ON found.cluster_id = one.cluster_id AND first_number = one.number
    JOIN {moments} AS other ON found.cluster_id = other.cluster_id AND found.last_number = other.number
    LEFT JOIN {moments} AS after ON found.cluster_id = after.cluster_id AND next_number = after.number
    WHERE kind IS NOT NULL
)
SELECT *, same AND NOT vanished AS closed, follows AND next_remade AS made_again FROM placed
"""
"""``rows``: islands (:data:`pipeline.history.islands.ISLANDS`). ``sound_at``: the snapshot before one, in which it
was not so; null if no snapshot shows that. ``follows``: there is a later island; ``closed``: it is in the next
snapshot, without a gap. ``vanished``: the next full snapshot does not show the partition.
"""

INCIDENTS = """
WITH ended AS (
    SELECT *, CASE
            WHEN closed AND made_again THEN 'deleted'
            WHEN closed AND next_bad IS NULL THEN 'unknown'
            WHEN closed AND next_gone THEN 'deleted'
            WHEN closed THEN 'recovered'
            WHEN NOT follows AND to_newest AND NOT vanished THEN 'ongoing'
            ELSE 'unknown' END AS outcome,
        -- The last snapshot that shows it: the one before the end, or the last before the gap.
        CASE WHEN closed THEN after_before WHEN vanished THEN shown_until ELSE segment_end END AS last_seen_at,
        CASE WHEN closed AND (made_again OR next_bad IS NOT NULL) THEN after_at END AS ended_at
    FROM {islands} WHERE bad
)
SELECT cluster_id, topic, partition, kind, began_at, last_seen_at, ended_at,
    (unix_micros(last_seen_at) - unix_micros(began_at)) / 1e6D AS at_least_s,
    (unix_micros(ended_at) - unix_micros(sound_at)) / 1e6D AS at_most_s,
    -- As in the table, where every column may be null.
    nullif(outcome, '') AS outcome,
    CASE WHEN kind <> 'offline' OR outcome <> 'recovered' THEN NULL
        WHEN coalesce(array_contains(isr, next_leader), false) THEN 'elected from the ISR'
        WHEN coalesce(array_contains(elr, next_leader), false) THEN 'elected from the ELR'
        ELSE 'elected outside ISR and ELR' END AS how,
    string(NULL) AS who, string(NULL) AS act, topic_id
FROM ended
"""
"""A row for each incident, without who ended it.

``at_least_s`` and ``at_most_s`` bound its duration. At least: from the first snapshot that shows it to the last. At
most: from the snapshot before the first to the one after the last; null if one of these is missing, or if there is
a gap. ``outcome``: recovered, ongoing, deleted, or unknown if there is a gap before the next snapshot, or the next
snapshot does not show it.
"""

CARRIED = """
SELECT cluster_id, topic, partition, kind, bad, first_number, last_number,
    sound_at IS NOT NULL AS known_before, isr, elr, topic_id
FROM {islands}
WHERE NOT follows AND newest AND NOT (bad <=> false AND has_full)
"""
"""What a later run must know of the time before: an incident that may go on, and a state that was unknown. That a
partition was sound follows from a full snapshot of the segment, if there is one.
"""

ACTED = """
WITH mine AS (
    SELECT found.*, CASE WHEN kind = 'offline' THEN array_max(filter(
        actions, one -> one.at BETWEEN began_at AND coalesce(ended_at, last_seen_at))) END AS action
    FROM {incidents} AS found LEFT JOIN {actions} USING (cluster_id, topic, partition)
)
SELECT * EXCEPT (who, act, action), action.who, action.act FROM mine
"""
"""Adds who ended each incident: the journal's last action on that partition between the start of the incident and
its end, or the last snapshot that still shows it. A later action may have ended it without a snapshot in between.
"""

FACTS = """
SELECT cluster_id, number, segment, at, 'quorum leader' AS subject,
    CASE WHEN quorum.unknown IS NULL THEN string(quorum.leader) ELSE 'unknown' END AS value
FROM {observations} WHERE quorum IS NOT NULL
UNION ALL
SELECT cluster_id, number, segment, at, 'quorum voters',
    CASE WHEN quorum.unknown IS NULL
        THEN array_join(transform(array_sort(array_compact(quorum.voters.id)), id -> string(id)), ', ')
        ELSE 'unknown' END
FROM {observations} WHERE quorum IS NOT NULL
UNION ALL
SELECT cluster_id, number, segment, at, 'broker ' || id, CASE WHEN fenced THEN 'fenced'
    WHEN unanswered IS NULL THEN 'up' ELSE 'did not answer: ' || unanswered.why END
FROM (SELECT cluster_id, number, segment, at, inline(brokers) FROM {observations})
UNION ALL
SELECT cluster_id, number, segment, at, 'log dir ' || path || ' of broker ' || broker,
    coalesce('failed: ' || error, 'online')
FROM (
    SELECT cluster_id, number, segment, at, id AS broker, inline(log_dirs)
    FROM (SELECT cluster_id, number, segment, at, inline(brokers) FROM {observations})
)
"""
"""What snapshots say of the quorum, the brokers and the log dirs."""

EVENTS = """
WITH compared AS (
    SELECT *, lag(value) OVER line AS was, lag(segment) OVER line <> segment AS in_a_gap
    FROM {facts} WINDOW line AS (PARTITION BY cluster_id, subject ORDER BY number)
)
SELECT cluster_id, at, subject, was, value AS now, in_a_gap FROM compared WHERE was <> value
"""
"""Where a value is another than in the snapshot before that has the same subject."""

NEWEST_FACTS = """
WITH newest AS (
    SELECT cluster_id, subject, max_by(value, number) AS value, max(number) AS number
    FROM {facts} WHERE subject IS NOT NULL GROUP BY cluster_id, subject
)
SELECT cluster_id, array_sort(collect_list(struct(subject, value, number))) AS facts FROM newest GROUP BY cluster_id
"""
"""What is known last of each cluster."""
