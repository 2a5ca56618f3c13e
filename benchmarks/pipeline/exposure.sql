-- Of the tables rows (partitions with a leader) and racks: the counts of each failure, each pair and each topic.
CREATE TEMP TABLE replicas AS
SELECT r, topic, x.broker AS broker, x.log_dir AS log_dir, least, no_elr, in_sync, alive AND in_elr AS eligible,
    alive, alive AND NOT in_sync AS behind, silent
FROM (
    SELECT r, topic, x, no_elr, coalesce(least(min_isr, len(replicas)), -1) AS least,
        list_contains(isr, x.broker) AS in_sync, coalesce(list_contains(elr, x.broker), false) AS in_elr,
        x.standing = 'electable' AS alive, x.unknown IS NOT NULL OR x.lineage_unknown IS NOT NULL AS silent
    FROM (SELECT r, topic, min_isr, no_elr, isr, elr, replicas, unnest(replicas) AS x FROM rows)
);

CREATE TEMP TABLE totals AS
SELECT r, sum(in_sync::INT) AS in_sync, sum(eligible::INT) AS eligible, sum(alive::INT) AS alive,
    sum(behind::INT) AS behind, sum(silent::INT) AS silent
FROM replicas GROUP BY r;

CREATE TEMP TABLE groups AS
SELECT r, topic, kind, name, any_value(least) AS least, any_value(no_elr) AS no_elr, sum(in_sync::INT) AS in_sync,
    sum(eligible::INT) AS eligible, sum(alive::INT) AS alive, sum(behind::INT) AS behind,
    sum(silent::INT) AS silent, count(*) AS lost
FROM (
    SELECT replicas.*, 'broker' AS kind, broker::VARCHAR AS name FROM replicas
    UNION ALL
    SELECT replicas.*, 'rack', rack FROM replicas JOIN racks USING (broker) WHERE rack IS NOT NULL
    UNION ALL
    SELECT replicas.*, 'log dir', broker || ':' || log_dir FROM replicas WHERE log_dir <> ''
)
GROUP BY r, topic, kind, name;

CREATE TEMP TABLE losses AS
SELECT '' AS what, kind, [name] AS failed, r, least, no_elr, in_sync, eligible, alive, behind, silent, lost
FROM groups
UNION ALL
SELECT '', a.kind, [a.name, b.name], a.r, a.least, a.no_elr, a.in_sync + b.in_sync, a.eligible + b.eligible,
    a.alive + b.alive, a.behind + b.behind, a.silent + b.silent, a.lost + b.lost
FROM groups a JOIN groups b ON a.r = b.r AND a.kind = b.kind AND a.name < b.name
UNION ALL
SELECT 'topic', topic, [name], r, least, no_elr, in_sync, eligible, alive, behind, silent, lost
FROM groups WHERE kind = 'broker';

CREATE TEMP TABLE exposures AS
WITH left_over AS (
    SELECT l.*, t.in_sync - l.in_sync AS isr, t.eligible - l.eligible AS elr, t.alive - l.alive AS up,
        t.behind - l.behind AS lagging, t.silent - l.silent + l.lost AS unheard, t.in_sync AS before
    FROM losses l JOIN totals t USING (r)
), judged AS (
    SELECT *, isr = 0 AND elr = 0 AS off, least >= 0 AND before < least AS low,
        least >= 0 AND unheard < least AS kept
    FROM left_over
)
SELECT what, kind, failed, count(*) AS partitions, count_if(off) AS offline, count_if(off AND up > 0) AS unclean,
    count_if(least >= 0 AND NOT low AND isr < least) AS under_min_isr, count_if(low) AS already_under_min_isr,
    count_if(least < 0) AS min_isr_unknown, count_if(off AND lagging > 0) AS saved_by_one_more_in_sync,
    count_if(least > 1 AND NOT low AND isr = least - 1 AND NOT off) AS writable_with_min_isr_one_less,
    count_if(off AND NOT kept) AS acknowledged_at_risk, count_if(off AND kept) AS acknowledged_outside_isr,
    count_if(off AND no_elr) AS elected_whatever_it_lost,
    0 AS elected_at_once -- no topic of the generated clusters elects uncleanly by itself
FROM judged GROUP BY what, kind, failed;
