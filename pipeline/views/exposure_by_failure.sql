-- What each failure would take, by the newest run of exposure; place 1 is the worst of its cluster.
-- Tables: runs, exposures, fleet.
SELECT newest.made_at, e.cluster_id, coalesce(f.cluster_name, e.cluster_id) AS cluster_name, e.kind, e.failed,
    e.partitions, e.offline, e.unclean, e.under_min_isr, e.already_under_min_isr, e.min_isr_unknown,
    e.acknowledged_at_risk, e.acknowledged_outside_isr, e.elected_whatever_it_lost,
    e.elected_at_once,
    rank() OVER (
        PARTITION BY e.cluster_id
        ORDER BY e.acknowledged_at_risk DESC, e.offline DESC, e.under_min_isr DESC, e.partitions DESC
    ) AS place
FROM exposures e
JOIN (
    SELECT run_id, made_at, row_number() OVER (ORDER BY made_at DESC, run_id DESC) AS place
    FROM runs
    WHERE job = 'exposure'
) newest ON newest.run_id = e.run_id AND newest.place = 1
LEFT JOIN fleet f ON f.run_id = e.run_id AND f.cluster_id = e.cluster_id
