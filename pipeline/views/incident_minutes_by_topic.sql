-- How long the partitions of each topic were offline, all together, in the incidents that have ended. end_unknown
-- counts those whose end nobody saw: their minutes are in no sum.
-- Table of ktriage pipeline watch: metadata_incidents.
SELECT cluster_id, coalesce(max(cluster_name), cluster_id) AS cluster_name, topic, count(*) AS incidents,
    count(CASE WHEN outcome = 'unclean election' THEN 1 END) AS unclean_elections,
    sum(offline_s) / 60 AS minutes,
    count(CASE WHEN offline_s IS NULL THEN 1 END) AS end_unknown,
    min(since) AS first_since, max(since) AS last_since
FROM metadata_incidents
GROUP BY cluster_id, topic
