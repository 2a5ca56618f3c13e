-- A row for each cluster: its partitions now, and whether the last time that it was asked was in vain (failure).
-- Tables: observations, and the view current_partitions.
SELECT asked_last.cluster_id, coalesce(nullif(asked_last.asked, ''), asked_last.cluster_id) AS cluster_name,
    states.seen_at, coalesce(states.partitions, 0) AS partitions, coalesce(states.offline, 0) AS offline,
    coalesce(states.under_min_isr, 0) AS under_min_isr, coalesce(states.min_isr_unknown, 0) AS min_isr_unknown,
    asked_last.taken_at AS asked_at, nullif(asked_last.failure, '') AS failure
FROM (
    SELECT cluster_id, asked, taken_at, failure,
        row_number() OVER (PARTITION BY cluster_id ORDER BY taken_at DESC, snapshot DESC) AS place
    FROM observations
) asked_last
LEFT JOIN (
    SELECT cluster_id, max(seen_at) AS seen_at, count(*) AS partitions,
        count(CASE WHEN leader = -1 THEN 1 END) AS offline,
        count(CASE WHEN leader <> -1 AND cardinality(isr) < min_isr THEN 1 END) AS under_min_isr,
        count(CASE WHEN leader <> -1 AND min_isr IS NULL THEN 1 END) AS min_isr_unknown
    FROM current_partitions
    GROUP BY cluster_id
) states ON states.cluster_id = asked_last.cluster_id
WHERE asked_last.place = 1
