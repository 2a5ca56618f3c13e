-- The state of each partition now: its newest row in the chain of its cluster's newest snapshot. Rows of a snapshot
-- without an observation do not count: its writer was stopped.
-- Tables: observations, partition_states.
WITH seen AS (
    SELECT cluster_id, snapshot, base, taken_at, asked,
        row_number() OVER (PARTITION BY cluster_id ORDER BY taken_at DESC, snapshot DESC) AS place
    FROM observations
    WHERE kind <> 'failed'
), ranked AS (
    SELECT s.*, newest.asked, newest.taken_at AS seen_at,
        rank() OVER (PARTITION BY s.cluster_id, s.topic, s.partition ORDER BY s.snapshot DESC) AS place
    FROM partition_states s
    JOIN seen ON seen.cluster_id = s.cluster_id AND seen.snapshot = s.snapshot
    JOIN seen newest ON newest.cluster_id = s.cluster_id AND newest.base = s.base AND newest.place = 1
)
SELECT cluster_id, coalesce(nullif(asked, ''), cluster_id) AS cluster_name, topic, topic_id, partition, leader,
    leader_epoch, assignment, isr, elr, last_known_elr, min_isr, unclean_elections, marks, replicas,
    taken_at AS changed_at, seen_at, snapshot
FROM ranked
WHERE place = 1 AND NOT coalesce(deleted, false)
