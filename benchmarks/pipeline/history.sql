-- Of the table rows (topic, partition, snapshot, taken_at, leader, isr, elr, min_isr): the incidents of each partition
-- with their bounds. Only rows of partitions that were in an incident at some time go through the windows.
CREATE TEMP TABLE moments AS
SELECT snapshot, any_value(taken_at) AS seen_at,
    lag(any_value(taken_at)) OVER (ORDER BY snapshot) AS before_at
FROM rows GROUP BY snapshot;

CREATE TEMP TABLE hit AS
SELECT DISTINCT topic, partition FROM rows
WHERE leader = -1 OR len(isr) < min_isr OR coalesce(len(elr), 0) > 0;

CREATE TEMP TABLE states AS
SELECT topic, partition, snapshot, seen_at, before_at, leader, isr, elr, unnest([
    {'kind': 'offline', 'bad': leader = -1},
    {'kind': 'under min ISR', 'bad': leader <> -1 AND len(isr) < min_isr},
    {'kind': 'ELR in use', 'bad': leader <> -1 AND coalesce(len(elr), 0) > 0}], recursive := true)
FROM rows JOIN moments USING (snapshot) SEMI JOIN hit USING (topic, partition);

CREATE TEMP TABLE islands AS
SELECT topic, partition, kind, island, any_value(bad) AS bad, min(seen_at) AS began_at, arg_min(before_at, seen_at) AS sound_at,
    arg_max(isr, seen_at) AS isr, arg_max(elr, seen_at) AS elr, arg_min(leader, seen_at) AS leader
FROM (
    SELECT *, sum(begins::INT) OVER line AS island FROM (
        SELECT *, lag(bad) OVER line IS DISTINCT FROM bad AS begins FROM states
        WINDOW line AS (PARTITION BY topic, partition, kind ORDER BY seen_at)
    ) WINDOW line AS (PARTITION BY topic, partition, kind ORDER BY seen_at)
)
GROUP BY topic, partition, kind, island;

CREATE TEMP TABLE incidents AS
SELECT topic, partition, kind, began_at, coalesce(next_sound_at, newest) AS last_seen_at,
    next_began_at AS ended_at, epoch(last_seen_at - began_at) AS at_least_s, epoch(next_began_at - sound_at) AS at_most_s,
    CASE WHEN next_began_at IS NULL THEN 'ongoing' ELSE 'recovered' END AS outcome,
    CASE WHEN next_began_at IS NULL OR kind <> 'offline' THEN NULL
        WHEN list_contains(isr, next_leader) THEN 'elected from the ISR'
        WHEN list_contains(elr, next_leader) THEN 'elected from the ELR'
        ELSE 'elected outside ISR and ELR' END AS how
FROM (
    SELECT islands.*, newest, lead(began_at) OVER line AS next_began_at, lead(sound_at) OVER line AS next_sound_at,
        lead(leader) OVER line AS next_leader
    FROM islands CROSS JOIN (SELECT max(seen_at) AS newest FROM moments)
    WINDOW line AS (PARTITION BY topic, partition, kind ORDER BY island)
)
WHERE bad;
